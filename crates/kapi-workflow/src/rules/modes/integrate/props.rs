//! Random requests and outcomes: nothing panics, nothing denied changes anything, the facts alone make the
//! state, and dev moves only to a head that was verified, reviewed and agreed on.

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::actor::Actor;
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::test_runner::Config;

use crate::rules::command::WorkflowCommand;
use crate::rules::decide::decide;
use crate::rules::effect::combine::{CombineReport, CombineStep, Coverage, CoverageFault};
use crate::rules::effect::{WorkflowAction, next};
use crate::rules::event::WorkflowEvent;
use crate::rules::evolve::evolve;
use crate::rules::modes::integrate::answer::{IntegrateAnswer, LandingVerdict, RevisionCause};
use crate::rules::modes::integrate::command::IntegrateCommand;
use crate::rules::modes::integrate::fixture::{
    Batch, NAMES, clash, combined, finding, good, id, left, lock_clash, of, regenerated, report,
    resolution, ruling, said,
};
use crate::rules::modes::integrate::leave::IntegrateLeave;
use crate::rules::modes::integrate::role::IntegrateRole;
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::scenario::{given, human};
use crate::rules::state::Workflow;

/// Returns an outcome that fits what is wanted, good or bad.
fn outcome(workflow: &Workflow, pick: u8, n: usize) -> WorkflowOutcome {
    let Some(effect) = next(workflow).into_iter().next() else {
        return WorkflowOutcome::Conflicted { paths: Vec::new() };
    };
    if pick > 90 {
        return good(workflow);
    }
    match effect.action {
        WorkflowAction::Verify(asked) => {
            let failing: Vec<&str> = asked
                .commands
                .iter()
                .skip(usize::from(pick) % 3)
                .take(1)
                .map(String::as_str)
                .collect();
            WorkflowOutcome::Verified(report(&asked.commit, &asked.commands, &failing))
        }
        WorkflowAction::Propose(_) => {
            let commit = format!("resolved-{n}");
            let commit = (pick > 30).then_some(commit.as_str());
            left(workflow, resolution(pick.is_multiple_of(7)), commit)
        }
        WorkflowAction::Advance(_) => WorkflowOutcome::Moved { found: None },
        WorkflowAction::Combine(step) => combined(step_report(&step, pick)),
        WorkflowAction::Ask(question) => {
            let causes = [
                RevisionCause::Verification,
                RevisionCause::Resolution,
                RevisionCause::Scope,
                RevisionCause::Intent,
            ];
            let cause = causes[usize::from(pick) % causes.len()];
            let verdict = if pick > 70 {
                LandingVerdict::Block
            } else {
                LandingVerdict::Revise
            };
            let answer = match IntegrateRole::of(question.role) {
                Some(IntegrateRole::Synthesis) => {
                    IntegrateAnswer::Synthesis(ruling(verdict, Some(cause)))
                }
                _ => IntegrateAnswer::Resolution(resolution(false)),
            };
            said(workflow, answer)
        }
        _ => good(workflow),
    }
}

fn step_report(step: &CombineStep, pick: u8) -> CombineReport {
    match step {
        CombineStep::Inspect { .. } => CombineReport::Unfit {
            reasons: vec!["it was moved".to_owned()],
        },
        CombineStep::Apply(asked) => CombineReport::Conflicted {
            at: format!("conflict-{}", asked.onto),
            paths: if pick.is_multiple_of(2) {
                clash()
            } else {
                [clash(), lock_clash()].concat()
            },
        },
        CombineStep::Regenerate(_) => regenerated(None),
        CombineStep::Settle { .. } => CombineReport::MarkersLeft { paths: Vec::new() },
        CombineStep::Try { .. } => CombineReport::Tried { commit: None },
        CombineStep::Trace { head, .. } => CombineReport::Traced(Box::new(Coverage {
            head: head.clone(),
            findings: vec![finding(CoverageFault::Reverted)],
            n_more: u64::from(pick.is_multiple_of(5)),
            ..Coverage::default()
        })),
        CombineStep::Mark { .. } => CombineReport::Marked,
    }
}

fn command(workflow: &Workflow, kind: u8, pick: u8, n: usize) -> WorkflowCommand {
    let flying = workflow.in_flight.keys().next().cloned();
    let source = id(NAMES[usize::from(pick) % NAMES.len()]);
    match (kind % 24, flying) {
        (0, _) => WorkflowCommand::Revise {
            text: "anew".to_owned(),
        },
        (1, _) => {
            let why = "later".to_owned();
            IntegrateCommand::Evict { source, why }.into()
        }
        (2, _) => {
            let text = "for speed".to_owned();
            IntegrateCommand::Clarify { source, text }.into()
        }
        (3 | 4, _) => WorkflowCommand::Unblock {},
        (5..=8, _) => {
            let pending = workflow.pending.as_ref();
            let sha256 = pending.map_or_else(String::new, |it| it.sha256.clone());
            WorkflowCommand::Approve {
                found: sha256.clone(),
                sha256,
                means: crate::rules::pending::Means::YesFlag,
                accepts_risks: true,
            }
        }
        (_, Some(effect)) => WorkflowCommand::Report {
            effect,
            outcome: Box::new(outcome(workflow, pick, n)),
        },
        (_, None) => WorkflowCommand::Intend {
            effect: next(workflow).first().map_or_else(
                || kapi_core::id::EffectId::new(9, "none", 9),
                |effect| effect.id.clone(),
            ),
        },
    }
}

proptest! {
    #![proptest_config(Config::with_cases(64))]
    #[test]
    fn facts_alone_make_the_state(
        evicts in any::<bool>(),
        steps in vec((any::<u8>(), any::<u8>()), 1..250),
    ) {
        let leave = IntegrateLeave { evicts, brings_checkout: false };
        let mut batch = Batch::begin(3, leave);
        for (n, (kind, pick)) in steps.into_iter().enumerate() {
            let command = command(batch.workflow(), kind, pick, n);
            let is_engines = matches!(
                command,
                WorkflowCommand::Intend { .. } | WorkflowCommand::Report { .. }
            );
            let actor = if is_engines { Actor::Engine } else { human() };
            let before = batch.0.workflow.clone();
            let decided = decide(batch.0.workflow.as_ref(), &actor, &command, &given());
            let reported = batch.0.ask(&actor, &command);
            prop_assert_eq!(&decided, &reported, "a decision is not the same twice");
            if reported.is_err() {
                prop_assert_eq!(&batch.0.workflow, &before);
            }
        }
        let mut replayed = None;
        for event in &batch.0.events {
            let line = serde_json::to_string(event).unwrap();
            let read: WorkflowEvent = serde_json::from_str(&line).unwrap();
            evolve(&mut replayed, &read);
        }
        prop_assert_eq!(&replayed, &batch.0.workflow);
        let state = of(batch.workflow());
        if let Some(landed) = &state.landed {
            prop_assert_eq!(landed.to.as_str(), state.head());
            prop_assert!(state.is_agreed());
            prop_assert!(state.verified.as_ref().is_some_and(VerifyReport::passed));
        }
        prop_assert!(state.there().iter().all(|id| !state.is_evicted(id)));
    }
}
