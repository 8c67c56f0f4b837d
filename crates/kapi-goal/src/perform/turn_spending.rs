//! The turns of a goal within the caps on spending.

use kapi_core::usage::Usage;
use kapi_machine::watch::{Activity, EffectWatch};
use kapi_run::spending::turn::BookedTurn;
use kapi_run::spending::{BookedResult, Spending, SpendingStop};

use crate::rules::outcome::GoalOutcome;

/// Performs a turn within the caps, and books it.
pub(crate) fn within_caps(
    spending: &Spending<'_>,
    turn: &BookedTurn,
    watch: &EffectWatch<'_>,
    act: impl FnOnce(&EffectWatch<'_>) -> GoalOutcome,
) -> GoalOutcome {
    let booked = spending.booked(turn, watch, |watch| {
        let outcome = act(watch);
        BookedResult {
            rest: unreported(&outcome),
            has_run: has_run(&outcome),
            value: outcome,
        }
    });
    match booked {
        Err(stopped) => outcome_of(stopped, None),
        Ok((GoalOutcome::Cancelled { usage, session }, Some(stopped))) => {
            // This outcome has no place for it.
            (watch.notice)(Activity::Used(usage));
            outcome_of(stopped, session)
        }
        Ok((outcome, _)) => outcome,
    }
}

fn outcome_of(stopped: SpendingStop, session: Option<String>) -> GoalOutcome {
    match stopped {
        SpendingStop::Cap(cap) => GoalOutcome::CapReached { cap, session },
        SpendingStop::Ledger(failure) => GoalOutcome::Failed(failure),
    }
}

/// Returns what an outcome says was used and no notice reported.
fn unreported(outcome: &GoalOutcome) -> Usage {
    match outcome {
        GoalOutcome::Agent(run) => run.usage,
        GoalOutcome::Judged(run) => run.usage,
        GoalOutcome::Cancelled { usage, .. } => *usage,
        GoalOutcome::Workspace { .. }
        | GoalOutcome::Committed(_)
        | GoalOutcome::Verified(_)
        | GoalOutcome::Published { .. }
        | GoalOutcome::Waited
        | GoalOutcome::CapReached { .. }
        | GoalOutcome::Failed(_) => Usage::default(),
    }
}

/// Tells whether somebody was really asked, whether or not anybody counted it.
const fn has_run(outcome: &GoalOutcome) -> bool {
    matches!(outcome, GoalOutcome::Agent(_) | GoalOutcome::Judged(_))
}

#[cfg(test)]
mod tests;
