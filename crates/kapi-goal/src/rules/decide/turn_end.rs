//! How a turn ends: with its verdict, and with a stop where the goal spins.
//!
//! Shared by everything that ends one; knows no effect.

use super::folded;
use crate::rules::breaker::BreakerTrip;
use crate::rules::event::{GoalEvent, Stop, TurnVerdict};
use crate::rules::plan::{CLEAN_END_PROMPTS_MAX, CleanEnd, Plan};
use crate::rules::state::Goal;

pub(crate) fn end_turn(goal: &Goal, ended: GoalEvent, verdict: TurnVerdict) -> Vec<GoalEvent> {
    let mut events = vec![
        ended,
        GoalEvent::TurnEnded {
            turn: goal.turn,
            verdict,
        },
    ];
    let after = folded(goal, &events);
    if let Some(stop) = idle_stop(goal, &after, verdict) {
        events.push(GoalEvent::GoalStopped { stop });
        return events;
    }
    let stop = match after.breaker.tripped(goal.contract.stall_after) {
        Some(BreakerTrip::Still(turns)) => Some(Stop::NoProgress { turns }),
        Some(BreakerTrip::SameFailure(turns)) => Some(Stop::SameFailure { turns }),
        None => None,
    };
    // What was not counted cannot have tripped it now.
    if verdict.is_counted() && !after.is_persons_turn {
        events.extend(stop.map(|stop| GoalEvent::GoalStopped { stop }));
    }
    events
}

/// Returns the stop of a turn in which the agent did nothing, or was reminded in vain.
///
/// A turn in which a person spoke is theirs: answering them is not spinning.
pub(crate) fn idle_stop(before: &Goal, after: &Goal, verdict: TurnVerdict) -> Option<Stop> {
    let is_over = |plan: &Plan| plan.clean_end() == CleanEnd::Pause;
    if verdict == TurnVerdict::Unclaimed && before.journey.plan.as_ref().is_some_and(is_over) {
        return Some(Stop::CleanEnd {
            nudges: CLEAN_END_PROMPTS_MAX,
        });
    }
    let is_idle = after.is_unchanged && after.score == Some(0) && !after.is_persons_turn;
    if !is_idle || verdict == TurnVerdict::PersonSpoke {
        return None;
    }
    let is_refused = before.consent.refused_in_turn > 0;
    match before.consent.asked.last().filter(|_| is_refused) {
        Some(asked) => Some(Stop::ConsentNeeded {
            pattern: asked.pattern.clone(),
            command: asked.command.clone(),
        }),
        None => Some(Stop::SpinGuard),
    }
}
