//! Workflows under power failures at every write.

use kapi_core::actor::Actor;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_store::hash::sha256_hex;
use kapi_sys::sim_disk::Mutation;
use kapi_testkit::workflow_sim::kinds::every_kind;
use kapi_testkit::workflow_sim::{FailureModes, crash_everywhere};
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::decide::decide;
use kapi_workflow::rules::decision_context::DecisionContext;
use kapi_workflow::rules::denied::WorkflowRule;
use kapi_workflow::rules::effect::next;
use kapi_workflow::rules::event::WorkflowEvent;
use kapi_workflow::rules::evolve::evolve;

use crate::support::person;
use crate::workflow_support::Governed;

/// One operation in so many: each takes a while; `cargo xtask sim --workflows 1` takes them all.
const ONE_IN: u64 = 389;
/// What no rule leads to; the fold takes it all the same.
const NEVER_RECORDED: [&str; 1] = ["Failed"];

#[test]
fn no_power_failure_loses_what_was_accepted() {
    let tally = crash_everywhere(ONE_IN, FailureModes::InTurn, None).unwrap();
    assert!(tally.cases >= tally.ops / ONE_IN, "{tally:?}");
    assert!(
        tally.crashes > tally.cases,
        "most cases crash twice: {tally:?}"
    );
    // The stories lead to everything that can be recorded.
    let every = every_kind();
    let missing: Vec<_> = every.difference(&tally.kinds).copied().collect();
    assert_eq!(missing, NEVER_RECORDED, "{tally:?}");
}

#[test]
fn a_workflow_that_failed_has_ended() {
    let governed = Governed::new();
    let key = governed.interview("Keep sessions over a crash");
    let mut folded = Workflows::of(&governed.project()).workflow(&key).ok();
    let reason = "It cannot be done.".to_owned();
    evolve(&mut folded, &WorkflowEvent::Failed { reason });
    let workflow = folded.unwrap();
    assert_eq!(workflow.status, WorkflowStatus::Failed);
    assert_eq!(next(&workflow), []);
    let given = DecisionContext {
        now_ms: 0,
        sha256: sha256_hex,
    };
    let reason = "Not wanted.".to_owned();
    for command in [
        WorkflowCommand::Unblock {},
        WorkflowCommand::Abandon { reason },
    ] {
        let denied = decide(Some(&workflow), &person(), &command, &given).unwrap_err();
        assert!(
            matches!(
                denied.why,
                WorkflowRule::AlreadyTerminal {
                    status: "failed",
                    ..
                }
            ),
            "{denied:?}"
        );
    }
    let effect = next(&Workflows::of(&governed.project()).workflow(&key).unwrap())
        .remove(0)
        .id;
    let begun = decide(
        Some(&workflow),
        &Actor::Engine,
        &WorkflowCommand::Intend { effect },
        &given,
    );
    assert!(begun.is_err(), "{begun:?}");
}

fn check_found_out(mistake: &Mutation, (one_in, ways): (u64, FailureModes)) {
    let found = crash_everywhere(one_in, ways, Some(mistake));
    assert!(found.is_err(), "{mistake:?} was not noticed");
}

#[test]
fn a_lost_event_is_found_out() {
    check_found_out(&Mutation::SkipFileSync, (3, FailureModes::All));
}

#[test]
fn a_directory_that_is_never_synced_is_found_out() {
    check_found_out(&Mutation::SkipDirSync, (3, FailureModes::All));
}

#[test]
fn a_torn_tail_that_is_never_cut_is_found_out() {
    // Few operations leave a torn log behind; the second of these is one.
    check_found_out(&Mutation::SkipTruncate, (97, FailureModes::Torn));
}

#[test]
fn an_effect_before_its_intent_is_found_out() {
    let intent = "\"effect_intended\"".to_owned();
    check_found_out(
        &Mutation::DelayAppendMatching(intent),
        (3, FailureModes::All),
    );
}
