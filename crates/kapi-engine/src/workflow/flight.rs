//! How an effect of a workflow is metered, and what it came to.

use kapi_core::goal::outcome::Failure;
use kapi_core::usage::Usage;
use kapi_core::workflow::effect::{Action, Effect};
use kapi_core::workflow::outcome::Outcome;

use crate::flight::{Flight, cut_off, panicked};
use crate::world::Activity;

/// Counts what a model used. A goal keeps its own account.
pub(super) fn notice(flight: &mut Flight<'_, Effect>, activity: &Activity) {
    match flight.effect.action {
        Action::Ask(_) => flight.meter.notice(activity),
        Action::Prepare { .. } | Action::Work(_) | Action::Land(_) | Action::Verify(_) => {}
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
        Some(Outcome::Cancelled { .. }) if !is_raised => failed(cut_off(&effect), true),
        Some(outcome) => outcome,
    };
    match &mut outcome {
        Outcome::Answered { usage, .. }
        | Outcome::Unreadable { usage, .. }
        | Outcome::Cancelled { usage }
        | Outcome::Failed { usage, .. } => usage.add(&used),
        // Nothing of this is metered.
        Outcome::Prepared { .. }
        | Outcome::Rested { .. }
        | Outcome::Landed { .. }
        | Outcome::Conflicted { .. }
        | Outcome::Verified(_) => {}
    }
    outcome
}

fn failed(failure: Failure, may_pass: bool) -> Outcome {
    Outcome::Failed {
        failure,
        may_pass,
        usage: Usage::default(),
    }
}
