//! How an effect of a workflow is metered, and what it came to.

use kapi_core::failure::Failure;
use kapi_core::usage::Usage;
use kapi_machine::flight::{Flight, cut_off, panicked};
use kapi_machine::watch::Activity;

use crate::rules::effect::{Effect, Uses};
use crate::rules::outcome::Outcome;

/// Counts what a model used. A goal keeps its own account.
pub(super) fn notice(flight: &mut Flight<'_, Effect>, activity: &Activity) {
    match flight.effect.action.uses() {
        Uses::Model => flight.meter.notice(activity),
        Uses::Goal | Uses::Nothing => {}
    }
}

/// Waits for the thread, and returns the outcome with what was used and not reported yet.
pub(super) fn end(flight: Flight<'_, Effect>, outcome: Option<Outcome>) -> Outcome {
    let used = flight.meter.usage();
    let (effect, is_raised) = (flight.effect.id.clone(), flight.cancel.is_raised());
    let has_panicked = flight.join();
    assert!(
        has_panicked != outcome.is_some(),
        "a thread says how its effect ended, or it has panicked"
    );
    let mut outcome = match outcome {
        None => failed(panicked(&effect), false),
        Some(outcome) if outcome.is_cancelled() && !is_raised => failed(cut_off(&effect), true),
        Some(outcome) => outcome,
    };
    outcome.add_usage(&used);
    outcome
}

fn failed(failure: Failure, may_pass: bool) -> Outcome {
    Outcome::Failed {
        failure,
        may_pass,
        usage: Usage::default(),
    }
}
