//! The rules: which events a command leads to, or why it is denied.
//!
//! Pure: the time is an argument, and a denial changes nothing.

use crate::actor::Actor;
use crate::goal::budget::Raise;
use crate::goal::command::Command;
use crate::goal::contract::TURNS_MAX;
use crate::goal::denied::Denied;
use crate::goal::event::{Event, Stop};
use crate::goal::evolve::evolve;
use crate::goal::state::{Goal, Status};
use crate::id::EffectId;
use crate::usage::Usage;

mod report;

/// Decides a command at a time given in milliseconds since the epoch.
///
/// # Errors
/// When a rule refuses; nothing has changed then.
pub fn decide(
    state: Option<&Goal>,
    actor: &Actor,
    command: &Command,
    now_ms: i64,
) -> Result<Vec<Event>, Denied> {
    check_authority(actor, command)?;
    if let Command::Create {
        id,
        contract,
        contract_hash,
    } = command
    {
        if state.is_some() {
            return Err(Denied::GoalExists);
        }
        if let Some((field, rule)) = contract.fault() {
            return Err(Denied::BadContract { field, rule });
        }
        return Ok(vec![Event::GoalCreated {
            id: id.clone(),
            contract: contract.clone(),
            contract_hash: contract_hash.clone(),
            at_ms: now_ms,
        }]);
    }
    let goal = state.ok_or(Denied::NoGoal)?;
    match command {
        Command::Create { .. } => Err(Denied::GoalExists),
        Command::Approve {
            contract_hash,
            means,
        } => {
            require(goal, goal.status == Status::Proposed, "approved")?;
            if *contract_hash != goal.contract_hash {
                return Err(Denied::WrongHash {
                    shown: contract_hash.clone(),
                });
            }
            let contract_hash = contract_hash.clone();
            Ok(vec![Event::ContractApproved {
                contract_hash,
                means: *means,
            }])
        }
        Command::Intend { effect } => intend(goal, effect, now_ms),
        Command::Progress {
            effect,
            usage,
            elapsed_ms,
        } => progress(goal, effect, *usage, *elapsed_ms),
        Command::Report {
            effect,
            outcome,
            elapsed_ms,
        } => report::decide_report(goal, effect, outcome, *elapsed_ms, now_ms),
        Command::Interrupt => {
            require(goal, goal.status == Status::Active, "interrupted")?;
            Ok(vec![Event::GoalStopped {
                stop: Stop::Interrupted,
            }])
        }
        Command::Resume => resume(goal),
        Command::Cancel { reason } => {
            require(goal, !goal.status.is_terminal(), "cancelled")?;
            let stop = Stop::Cancelled {
                reason: reason.clone(),
            };
            Ok(vec![Event::GoalStopped { stop }])
        }
        Command::RaiseBudget(raise) => raise_budget(goal, raise),
    }
}

/// Only a person approves, resumes, cancels, interrupts or raises; only the engine reports.
fn check_authority(actor: &Actor, command: &Command) -> Result<(), Denied> {
    let human_action = match command {
        Command::Create { .. } => Some("start a goal"),
        Command::Approve { .. } => Some("approve a contract"),
        Command::Interrupt => Some("interrupt a goal"),
        Command::Resume => Some("resume a goal"),
        Command::Cancel { .. } => Some("cancel a goal"),
        Command::RaiseBudget(_) => Some("raise a budget"),
        Command::Intend { .. } | Command::Progress { .. } | Command::Report { .. } => None,
    };
    match (actor, human_action) {
        (Actor::Human { .. }, Some(_)) | (Actor::Engine, None) => Ok(()),
        (Actor::Agent { .. } | Actor::Engine, Some(action)) => Err(Denied::OnlyHuman {
            action,
            actor: actor.to_string(),
        }),
        (Actor::Agent { .. } | Actor::Human { .. }, None) => Err(Denied::OnlyEngine {
            actor: actor.to_string(),
        }),
    }
}

fn require(goal: &Goal, holds: bool, action: &'static str) -> Result<(), Denied> {
    if holds {
        Ok(())
    } else {
        Err(Denied::WrongStatus {
            status: goal.status,
            action,
        })
    }
}

fn intend(goal: &Goal, effect: &EffectId, now_ms: i64) -> Result<Vec<Event>, Denied> {
    require(goal, goal.status == Status::Active, "worked on")?;
    let wanted = if goal.wait_until_ms.is_some() {
        goal.wait_effect()
    } else {
        goal.stage_effect()
    };
    if *effect != wanted {
        return Err(Denied::NotUnderWay {
            effect: effect.clone(),
        });
    }
    match &goal.in_flight {
        // Intended before a crash and still wanted: it is performed again under the same id.
        Some(in_flight) if in_flight.effect == *effect => Ok(Vec::new()),
        Some(_) | None => Ok(vec![Event::EffectIntended {
            effect: effect.clone(),
            at_ms: now_ms,
        }]),
    }
}

fn progress(
    goal: &Goal,
    effect: &EffectId,
    usage: Usage,
    elapsed_ms: u64,
) -> Result<Vec<Event>, Denied> {
    require_under_way(goal, effect)?;
    let event = Event::EffectProgressed {
        effect: effect.clone(),
        usage,
        elapsed_ms,
    };
    let after = folded(goal, std::slice::from_ref(&event));
    let mut events = vec![event];
    if let Some(limit) = after.limit_within_turn()
        && after.status == Status::Active
    {
        events.push(Event::GoalStopped {
            stop: Stop::BudgetUsedUp { limit },
        });
    }
    Ok(events)
}

fn require_under_way(goal: &Goal, effect: &EffectId) -> Result<(), Denied> {
    match &goal.in_flight {
        Some(in_flight) if in_flight.effect == *effect => Ok(()),
        Some(_) | None => Err(Denied::NotUnderWay {
            effect: effect.clone(),
        }),
    }
}

fn resume(goal: &Goal) -> Result<Vec<Event>, Denied> {
    match goal.status {
        Status::Active => Ok(Vec::new()),
        Status::Paused | Status::Blocked | Status::Stalled => {
            match goal.budget.used_up(&goal.spent) {
                Some(limit) => Err(Denied::BudgetUsedUp { limit }),
                None => Ok(vec![Event::GoalResumed]),
            }
        }
        Status::Proposed
        | Status::Impossible
        | Status::Cancelled
        | Status::Unverified
        | Status::Done => Err(Denied::WrongStatus {
            status: goal.status,
            action: "resumed",
        }),
    }
}

fn raise_budget(goal: &Goal, raise: &Raise) -> Result<Vec<Event>, Denied> {
    require(goal, !goal.status.is_terminal(), "given a larger budget")?;
    if *raise == Raise::default() {
        return Err(Denied::BadRaise {
            rule: "it must raise at least one limit",
        });
    }
    if let Some(limit) = goal.budget.unlimited_in(raise) {
        return Err(Denied::NoLimit { limit });
    }
    if goal.budget.turns.saturating_add(raise.turns) > TURNS_MAX {
        return Err(Denied::BadRaise {
            rule: "the turn budget must stay at or below 20000",
        });
    }
    Ok(vec![Event::BudgetRaised { raise: *raise }])
}

/// Returns the state after these events, for rules that depend on what was just recorded.
fn folded(goal: &Goal, events: &[Event]) -> Goal {
    let mut state = Some(goal.clone());
    for event in events {
        evolve(&mut state, event);
    }
    state.unwrap_or_else(|| goal.clone())
}

#[cfg(test)]
mod tests;
