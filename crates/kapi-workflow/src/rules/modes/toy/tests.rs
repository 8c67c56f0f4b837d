//! The toy from its beginning to its end, and everything that can be asked of it on the way.

use kapi_core::actor::Actor;
use kapi_core::failure::Failure;
use kapi_core::id::GoalId;
use kapi_core::usage::Usage;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_goal::rules::state::GoalStatus;

use crate::rules::changed::LandedPaths;
use crate::rules::command::{WorkflowCommand, WorkflowStart};
use crate::rules::denied::WorkflowRule;
use crate::rules::effect::{WorkflowAction, next};
use crate::rules::event::WorkflowEvent;
use crate::rules::evolve::evolve;
use crate::rules::model::{Alphabet, print, search};
use crate::rules::modes::toy::answer::ToyAnswer;
use crate::rules::modes::toy::begin::ToyBegin;
use crate::rules::modes::toy::command::ToyCommand;
use crate::rules::modes::toy::event::ToyEvent;
use crate::rules::modes::toy::state::Toy;
use crate::rules::modes::{Begin, Body, ModeAnswer, ModeCommand};
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::scenario::{
    WorkflowTestScenario, agent, answered, approve, hash, human, identity, terms,
};
use crate::rules::state::Workflow;

fn begun() -> WorkflowTestScenario {
    let begin = Begin::Toy(ToyBegin {
        base: "c0ffee".to_owned(),
    });
    WorkflowTestScenario::begin(&WorkflowCommand::Start(Box::new(WorkflowStart {
        id: GoalId::parse("001-weigh-it").unwrap(),
        purpose: "Weigh it".to_owned(),
        terms: terms(),
        begin,
    })))
}

fn toy(workflow: &Workflow) -> &Toy {
    let Body::Toy(toy) = &workflow.body else {
        panic!("not a toy");
    };
    toy
}

fn scale() -> ToyAnswer {
    ToyAnswer {
        text: "A scale.".to_owned(),
        script: "sh weigh.sh".to_owned(),
    }
}

fn rested(commit: Option<&str>) -> WorkflowOutcome {
    WorkflowOutcome::Rested {
        goal: GoalId::parse("002-scale").unwrap(),
        worktree: None,
        status: GoalStatus::Done,
        commit: commit.map(str::to_owned),
        reason: None,
    }
}

/// Returns how an effect can end: well, and in each way that it cannot.
fn outcomes(action: &WorkflowAction) -> Vec<WorkflowOutcome> {
    let prepared = WorkflowOutcome::Prepared {
        branch: "chore/toy".to_owned(),
        worktree: "/w".to_owned(),
        baseline: None,
    };
    let mut ends = if let WorkflowAction::Ask(_) = action {
        let unreadable = WorkflowOutcome::Unreadable {
            by: identity("r2"),
            why: "it is no JSON".to_owned(),
            usage: Usage::default(),
        };
        vec![answered(ModeAnswer::Toy(scale())), unreadable]
    } else if let WorkflowAction::Prepare { .. } = action {
        vec![prepared]
    } else if let WorkflowAction::Work(_) = action {
        vec![rested(Some("beef")), rested(None), prepared]
    } else if let WorkflowAction::Land(_) = action {
        let landed = WorkflowOutcome::Landed {
            head: "beef".to_owned(),
            tree: "tree".to_owned(),
            merged: false,
            changed: LandedPaths::of(Vec::new()),
        };
        vec![landed, WorkflowOutcome::Conflicted { paths: Vec::new() }]
    } else {
        super::verb::tests::outcomes()
    };
    ends.push(WorkflowOutcome::Cancelled {
        usage: Usage::default(),
    });
    ends.extend([true, false].map(|may_pass| WorkflowOutcome::Failed {
        failure: Failure {
            message: "reach it".to_owned(),
            hint: None,
        },
        may_pass,
        usage: Usage::default(),
    }));
    ends
}

fn commands(workflow: &Workflow) -> Vec<(Actor, WorkflowCommand)> {
    let wanted = next(workflow);
    let mut all: Vec<(Actor, WorkflowCommand)> = Vec::new();
    for effect in &wanted {
        let effect = effect.id.clone();
        all.push((Actor::Engine, WorkflowCommand::Intend { effect }));
    }
    for effect in workflow.in_flight.keys() {
        let action = wanted.iter().find(|wanted| wanted.id == *effect);
        let ends = action.map(|wanted| outcomes(&wanted.action));
        let stale = || vec![answered(ModeAnswer::Toy(scale()))];
        for outcome in ends.unwrap_or_else(stale) {
            let (effect, outcome) = (effect.clone(), Box::new(outcome));
            all.push((Actor::Engine, WorkflowCommand::Report { effect, outcome }));
        }
    }
    let pending = workflow.pending.as_ref();
    let hash = pending.map_or("none", |pending| pending.sha256.as_str());
    let asked = [
        approve(hash, hash, false),
        approve(hash, "other", false),
        WorkflowCommand::Revise {
            text: "Heavier.".to_owned(),
        },
        WorkflowCommand::Mode(ModeCommand::Toy(ToyCommand::Reweigh)),
        WorkflowCommand::Unblock {},
        WorkflowCommand::Abandon {
            reason: "no more".to_owned(),
        },
    ];
    for command in asked {
        let actors = [human(), agent(), Actor::Engine];
        all.extend(actors.map(|actor| (actor, command.clone())));
    }
    all
}

fn key(workflow: &Workflow) -> String {
    let toy = toy(workflow);
    let wanted = next(workflow).first().map(|wanted| wanted.id.clone());
    let is_wanted = |id| wanted.as_ref() == Some(id);
    format!(
        "{:?} {:?} {:?} {} {} {:?} {} {}",
        workflow.status,
        workflow.phase(),
        toy.proved,
        toy.branch.is_some(),
        toy.landed().is_some(),
        wanted.as_ref().and_then(|id| workflow.failures.get(id)),
        workflow.in_flight.keys().any(is_wanted),
        workflow.in_flight.keys().any(|id| !is_wanted(id)),
    )
}

fn holds(workflow: &Workflow) -> Result<(), String> {
    let toy = toy(workflow);
    let is_approved = toy.is_approved == (workflow.approvals.len() == 1);
    let is_carried = toy.carried.is_some() == (workflow.status == WorkflowStatus::Completed);
    let is_in_order = toy.is_approved || toy.branch.is_none();
    match (is_approved, is_carried, is_in_order) {
        (true, true, true) => Ok(()),
        found => Err(format!("approved, carried, in order: {found:?}")),
    }
}

#[test]
fn everything_that_can_be_asked_of_it_leads_to_its_end() {
    let alphabet = Alphabet {
        starts: vec![begun().workflow().clone()],
        commands,
        key,
        waits: |_| false,
        is_success: |workflow| workflow.status == WorkflowStatus::Completed,
        holds,
    };
    let found = search(&alphabet);
    print("toy", &found, &alphabet);
    assert!(found.statuses.contains_key("blocked"), "{found:?}");
    assert!(
        found.states > 30 && found.transitions > found.states,
        "{found:?}"
    );
}

#[test]
fn it_goes_from_question_to_approval_to_landing_to_its_own_effect() {
    let mut scenario = begun();
    scenario.answer(ModeAnswer::Toy(scale()));
    let pending = scenario.workflow().pending.clone().unwrap();
    let list = format!(
        "{}  toy.md\n{}  toy.sh\n",
        hash(b"A scale.\n"),
        hash(b"sh weigh.sh\n")
    );
    assert_eq!(pending.sha256, hash(list.as_bytes()));
    scenario.send(
        &human(),
        &WorkflowCommand::Mode(ModeCommand::Toy(ToyCommand::Reweigh)),
    );
    assert_eq!(scenario.workflow().phase(), ("describe", Some("asking")));
    scenario.answer(ModeAnswer::Toy(scale()));
    scenario.approve();
    while scenario.workflow().status == WorkflowStatus::Active {
        let wanted = next(scenario.workflow()).remove(0);
        scenario.perform(outcomes(&wanted.action).remove(0));
    }
    assert_eq!(scenario.workflow().status, WorkflowStatus::Completed);
    let reweigh = WorkflowCommand::Mode(ModeCommand::Toy(ToyCommand::Reweigh));
    let denied = scenario.ask(&human(), &reweigh).unwrap_err();
    assert!(matches!(denied.why, WorkflowRule::AlreadyTerminal { .. }));
    // What its log says leads to where it stands.
    let mut folded = None;
    for event in &scenario.events {
        let line = serde_json::to_string(event).unwrap();
        assert_eq!(
            serde_json::from_str::<WorkflowEvent>(&line).unwrap(),
            *event
        );
        evolve(&mut folded, event);
    }
    assert_eq!(folded.as_ref(), Some(scenario.workflow()));
}

#[test]
fn its_facts_stand_in_the_log_as_those_of_any_mode() {
    let line = |event: ToyEvent| serde_json::to_string(&WorkflowEvent::from(event)).unwrap();
    let lines = [
        ToyEvent::Described {
            scale: Box::new(scale()),
        },
        ToyEvent::Reopened {},
        ToyEvent::TriedInVain {},
        ToyEvent::BranchMade {
            branch: "b".to_owned(),
            worktree: "w".to_owned(),
        },
        ToyEvent::Proved {
            commit: "c".to_owned(),
        },
        ToyEvent::Landed {
            head: "h".to_owned(),
            tree: "t".to_owned(),
        },
        ToyEvent::Carried {
            what: "h".to_owned(),
        },
    ]
    .map(line);
    let data = [
        r#"{"described":{"scale":{"text":"A scale.","script":"sh weigh.sh"}}}"#,
        r#"{"reopened":{}}"#,
        r#"{"tried_in_vain":{}}"#,
        r#"{"branch_made":{"branch":"b","worktree":"w"}}"#,
        r#"{"proved":{"commit":"c"}}"#,
        r#"{"landed":{"head":"h","tree":"t"}}"#,
        r#"{"carried":{"what":"h"}}"#,
    ];
    assert_eq!(
        lines,
        data.map(|data| format!(r#"{{"type":"toy","data":{data}}}"#))
    );
}
