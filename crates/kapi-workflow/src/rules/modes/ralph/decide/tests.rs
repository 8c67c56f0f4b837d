//! Every way a build can go, and everything it denies.

use kapi_core::actor::Actor;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_goal::rules::plan::task::PlanTaskId;
use kapi_goal::rules::state::GoalStatus;

use crate::rules::command::WorkflowCommand;
use crate::rules::denied::WorkflowRule;
use crate::rules::event::WorkflowEvent;
use crate::rules::evidence::Weight;
use crate::rules::modes::ralph::command::RalphCommand;
use crate::rules::modes::ralph::event::RalphEvent;
use crate::rules::modes::ralph::fixture::outcomes::{answered, landed, rested};
use crate::rules::modes::ralph::fixture::{
    Build, account, agent, finding, findings, human, in_a_row, objections, parallel, synthesis,
    task_id, terms,
};
use crate::rules::modes::ralph::plan::Consensus;
use crate::rules::modes::ralph::review::FindingCategory;
use crate::rules::modes::ralph::role::RalphRole;
use crate::rules::modes::ralph::state::{RalphPhase, Stand};
use crate::rules::modes::{ModeCommand, ModeEvent};
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::pending::Means;
use crate::rules::terms::PlanApproval;

mod argue;
mod close;
mod limits;
mod run;
mod strayed;

/// Returns the facts of the mode among some events, by name.
fn facts(events: &[WorkflowEvent]) -> Vec<String> {
    let name = |event: &WorkflowEvent| {
        let json = serde_json::to_value(event).unwrap();
        if matches!(event, WorkflowEvent::Mode(ModeEvent::Ralph(_))) {
            let data = json.get("data").unwrap().as_object().unwrap();
            data.keys().next().unwrap().clone()
        } else {
            json.get("type").unwrap().as_str().unwrap().to_owned()
        }
    };
    let skipped = ["effect_ended", "evidence_recorded", "worker_refreshed"];
    let names = events.iter().map(name);
    names
        .filter(|name| !skipped.contains(&name.as_str()))
        .collect()
}

fn reopen() -> WorkflowCommand {
    WorkflowCommand::Mode(ModeCommand::Ralph(RalphCommand::ReopenPlan {
        reason: "It is wrong.".to_owned(),
    }))
}

fn retry(task: &str) -> WorkflowCommand {
    WorkflowCommand::Mode(ModeCommand::Ralph(RalphCommand::Retry {
        task: task_id(task),
    }))
}

fn revise() -> WorkflowCommand {
    WorkflowCommand::Revise {
        text: "In another way.".to_owned(),
    }
}

/// Asks for something that is denied, and returns the rule's code. Nothing may have changed.
fn denied(build: &Build, actor: &Actor, command: &WorkflowCommand) -> &'static str {
    let before = serde_json::to_string(&build.workflow).unwrap();
    let denied = build.try_ask(actor, command).unwrap_err();
    assert_eq!(serde_json::to_string(&build.workflow).unwrap(), before);
    assert!(!denied.next_commands.is_empty());
    denied.why.code()
}

#[test]
fn a_build_goes_from_its_purpose_to_its_end() {
    let mut build = Build::run(terms(), &parallel());
    assert_eq!(build.wanted(), ["t001-work-T-001-a1", "t001-work-T-002-a1"]);
    build.prove("T-001", "c1");
    build.prove("T-002", "c2");
    assert_eq!(build.wanted(), ["t001-land-T-001-a1"]);
    build.land("T-001", "h1", false);
    assert_eq!(build.wanted(), ["t001-land-T-002-a1"]);
    build.land("T-002", "h2", true);
    assert_eq!(build.wanted(), ["t001-verify-merged-a1"]);
    let events = build.verify(&[]);
    assert_eq!(facts(&events), ["head_verified", "review_asked"]);
    let events = build.review(findings(vec![finding(
        FindingCategory::Simplification,
        true,
    )]));
    assert_eq!(
        facts(&events),
        ["reviewed"],
        "a simplification holds nothing back"
    );
    assert_eq!(build.wanted(), ["t001-verify-all-a2"]);
    build.verify(&[]);
    let events = build.answer(RalphRole::Accountant, account());
    assert_eq!(facts(&events), ["accounted", "worker_closed", "completed"]);
    assert_eq!(build.workflow.status, WorkflowStatus::Completed);
    assert!(build.wanted().is_empty());
    let accepted = &build.ralph().account.as_ref().unwrap().acceptance;
    let said: Vec<Vec<&str>> = accepted
        .iter()
        .map(|accepted| {
            let numbers = accepted.evidence.iter();
            let found = numbers.map(|n| &build.workflow.evidence[*n as usize - 1]);
            found.map(|found| found.reference.as_str()).collect()
        })
        .collect();
    assert_eq!(said, [vec!["git:h2"], vec!["git:h2"]]);
    for command in [
        reopen(),
        retry("T-001"),
        revise(),
        WorkflowCommand::Unblock {},
    ] {
        assert_eq!(denied(&build, &human(), &command), "already_terminal");
    }
}

#[test]
fn only_a_person_steers() {
    let mut build = Build::start(terms());
    build.agree(&in_a_row());
    for actor in [agent(), Actor::Engine] {
        for command in [build.approval(true), revise()] {
            assert_eq!(denied(&build, &actor, &command), "not_human");
        }
    }
    let build = Build::run(terms(), &in_a_row());
    for actor in [agent(), Actor::Engine] {
        for command in [reopen(), retry("T-001"), revise()] {
            assert_eq!(denied(&build, &actor, &command), "not_human");
        }
    }
}

#[test]
fn what_is_asked_in_the_wrong_place_is_denied() {
    let mut build = Build::start(terms());
    assert_eq!(denied(&build, &human(), &reopen()), "wrong_phase");
    assert_eq!(denied(&build, &human(), &retry("T-001")), "wrong_phase");
    assert_eq!(
        denied(&build, &human(), &build.approval(true)),
        "no_pending_decision"
    );
    build.agree(&in_a_row());
    assert_eq!(denied(&build, &human(), &reopen()), "wrong_phase");
    let run = Build::run(terms(), &in_a_row());
    assert_eq!(denied(&run, &human(), &retry("T-009")), "malformed");
    assert_eq!(denied(&run, &human(), &retry("T-001")), "not_ready");
    let empty = WorkflowCommand::Mode(ModeCommand::Ralph(RalphCommand::ReopenPlan {
        reason: " ".to_owned(),
    }));
    assert_eq!(denied(&run, &human(), &empty), "malformed");
}

#[test]
fn an_outcome_of_another_kind_is_denied() {
    let mut build = Build::start(terms());
    let effect = build.intend("thesis");
    let outcome = Box::new(landed("h1", false));
    let command = WorkflowCommand::Report { effect, outcome };
    assert_eq!(denied(&build, &Actor::Engine, &command), "malformed");
}
