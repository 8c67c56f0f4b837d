//! Random commands at random times: nothing panics, nothing denied changes anything, and the facts
//! alone make the state.

use kapi_core::actor::Actor;
use kapi_goal::rules::state::GoalStatus;
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::test_runner::Config;

use crate::rules::command::WorkflowCommand;
use crate::rules::decide::decide;
use crate::rules::effect::next;
use crate::rules::event::WorkflowEvent;
use crate::rules::evolve::evolve;
use crate::rules::modes::ModeCommand;
use crate::rules::modes::ralph::answer::RalphAnswer;
use crate::rules::modes::ralph::command::RalphCommand;
use crate::rules::modes::ralph::fixture::outcomes::{answered, failed, landed, report, rested};
use crate::rules::modes::ralph::fixture::{
    Build, GIVEN, account, agent, finding, findings, human, objections, parallel, synthesis,
    task_id, terms,
};
use crate::rules::modes::ralph::plan::Consensus;
use crate::rules::modes::ralph::review::FindingCategory;
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::state::Workflow;

/// Returns an outcome of any kind, whether it fits or not.
fn outcome(pick: u8, head: &str) -> WorkflowOutcome {
    let run = format!("run-{head}");
    match pick % 14 {
        0 => answered(&run, RalphAnswer::Thesis(parallel())),
        1 => answered(&run, RalphAnswer::Antithesis(objections())),
        2 => {
            let found = synthesis(Consensus::Consensus, &[], parallel());
            answered(&run, RalphAnswer::Synthesis(found))
        }
        3 => {
            let found = synthesis(Consensus::Revise, &["no"], parallel());
            answered(&run, RalphAnswer::Synthesis(found))
        }
        4 => answered(&run, RalphAnswer::Review(findings(Vec::new()))),
        5 => {
            let wrong = vec![finding(FindingCategory::Regression, true)];
            answered(&run, RalphAnswer::Review(findings(wrong)))
        }
        6 => answered(&run, account()),
        7 => WorkflowOutcome::Prepared {
            branch: "feat/ralph-fix-login".to_owned(),
            worktree: "wt".to_owned(),
            baseline: None,
        },
        8 => rested("012-a", GoalStatus::Done, Some(head)),
        9 => rested("012-a", GoalStatus::Paused, None),
        10 => landed(head, pick > 127),
        11 => WorkflowOutcome::Conflicted {
            paths: vec!["a".to_owned()],
        },
        12 => failed(pick > 127),
        _ => WorkflowOutcome::Verified(report(head, &["sh all.sh".to_owned()], &[])),
    }
}

fn command(workflow: &Workflow, kind: u8, pick: u8, n: usize) -> WorkflowCommand {
    let wanted = next(workflow);
    let at = |len: usize| usize::from(pick) % len.max(1);
    let flying: Vec<_> = workflow.in_flight.keys().cloned().collect();
    let task = || {
        task_id(if pick.is_multiple_of(2) {
            "T-001"
        } else {
            "T-002"
        })
    };
    match kind % 8 {
        0..=2 if !wanted.is_empty() => WorkflowCommand::Intend {
            effect: wanted[at(wanted.len())].id.clone(),
        },
        3..=5 if !flying.is_empty() => WorkflowCommand::Report {
            effect: flying[at(flying.len())].clone(),
            outcome: Box::new(outcome(
                kind.wrapping_mul(31).wrapping_add(pick),
                &format!("h{n}"),
            )),
        },
        6 => {
            let pending = workflow.pending.as_ref();
            let sha256 = pending.map_or_else(String::new, |pending| pending.sha256.clone());
            WorkflowCommand::Approve {
                found: sha256.clone(),
                sha256,
                means: crate::rules::pending::Means::YesFlag,
                accepts_risks: pick > 127,
            }
        }
        _ if pick < 40 => {
            WorkflowCommand::Mode(ModeCommand::Ralph(RalphCommand::Retry { task: task() }))
        }
        _ if pick < 50 => WorkflowCommand::Mode(ModeCommand::Ralph(RalphCommand::ReopenPlan {
            reason: "no".to_owned(),
        })),
        _ if pick < 60 => WorkflowCommand::Revise {
            text: "no".to_owned(),
        },
        _ => WorkflowCommand::Unblock {},
    }
}

proptest! {
    #![proptest_config(Config::with_cases(64))]
    #[test]
    fn facts_alone_make_the_state(steps in vec((any::<u8>(), any::<u8>(), 0..8_u8), 1..120)) {
        let mut build = Build::start(terms());
        for (n, (kind, pick, who)) in steps.into_iter().enumerate() {
            let command = command(&build.workflow, kind, pick, n);
            let is_engines = matches!(command, WorkflowCommand::Intend { .. } | WorkflowCommand::Report { .. });
            let actor = match who {
                0 => agent(),
                1 => Actor::Engine,
                _ if is_engines => Actor::Engine,
                _ => human(),
            };
            let before = build.workflow.clone();
            match decide(Some(&build.workflow), &actor, &command, &GIVEN) {
                Ok(_) => {
                    build.ask(&actor, &command);
                }
                Err(_) => prop_assert_eq!(&build.workflow, &before),
            }
            prop_assert!(!before.status.is_terminal() || before.status == build.workflow.status);
        }
        let mut replayed = None;
        for event in &build.log {
            let line = serde_json::to_string(event).unwrap();
            let read: WorkflowEvent = serde_json::from_str(&line).unwrap();
            evolve(&mut replayed, &read);
        }
        prop_assert_eq!(replayed, Some(build.workflow));
    }
}
