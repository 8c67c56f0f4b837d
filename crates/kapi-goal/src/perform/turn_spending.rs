//! The turns of a goal within the caps on spending.

use kapi_core::usage::Usage;
use kapi_machine::watch::{Activity, Watch};
use kapi_run::spending::turn::BookedTurn;
use kapi_run::spending::{BookedResult, Spending, SpendingStop};

use crate::rules::outcome::Outcome;

/// Performs a turn within the caps, and books it.
pub(crate) fn within_caps(
    spending: &Spending<'_>,
    turn: &BookedTurn,
    watch: &Watch<'_>,
    act: impl FnOnce(&Watch<'_>) -> Outcome,
) -> Outcome {
    let booked = spending.booked(turn, watch, |watch| {
        let outcome = act(watch);
        BookedResult {
            rest: unreported(&outcome),
            has_run: has_run(&outcome),
            value: outcome,
        }
    });
    match booked {
        Err(stopped) => outcome_of(stopped),
        Ok((Outcome::Cancelled { usage, .. }, Some(stopped))) => {
            // This outcome has no place for it.
            (watch.notice)(Activity::Used(usage));
            outcome_of(stopped)
        }
        Ok((outcome, _)) => outcome,
    }
}

fn outcome_of(stopped: SpendingStop) -> Outcome {
    match stopped {
        SpendingStop::Cap(cap) => Outcome::CapReached { cap },
        SpendingStop::Ledger(failure) => Outcome::Failed(failure),
    }
}

/// Returns what an outcome says was used and no notice reported.
fn unreported(outcome: &Outcome) -> Usage {
    match outcome {
        Outcome::Agent(run) => run.usage,
        Outcome::Judged(run) => run.usage,
        Outcome::Cancelled { usage, .. } => *usage,
        Outcome::Workspace { .. }
        | Outcome::Committed(_)
        | Outcome::Verified(_)
        | Outcome::Published { .. }
        | Outcome::Waited
        | Outcome::CapReached { .. }
        | Outcome::Failed(_) => Usage::default(),
    }
}

/// Tells whether somebody was really asked, whether or not anybody counted it.
const fn has_run(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Agent(_) | Outcome::Judged(_))
}

#[cfg(test)]
mod tests;
