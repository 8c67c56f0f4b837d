//! The rules: which events a command leads to, or why it is denied.
//!
//! Pure: the time is an argument, and a denial changes nothing.

use kapi_core::actor::Actor;
use kapi_core::id::EffectId;
use kapi_core::usage::Usage;

use crate::rules::budget::Raise;
use crate::rules::command::GoalCommand;
use crate::rules::contract::{Contract, TURNS_MAX};
use crate::rules::denied::GoalDenial;
use crate::rules::event::{ApprovalMeans, GoalEvent, Stop, TurnVerdict};
use crate::rules::evolve::evolve;
use crate::rules::state::{Goal, GoalStage, GoalStatus};

mod again;
mod judgement;
mod person;
mod proof;
mod report;
mod tool;
mod turn_end;

/// Decides a command at a time given in milliseconds since the epoch.
///
/// # Errors
/// When a rule refuses; nothing has changed then.
pub fn decide(
    state: Option<&Goal>,
    actor: &Actor,
    command: &GoalCommand,
    now_ms: i64,
) -> Result<Vec<GoalEvent>, GoalDenial> {
    check_authority(actor, command)?;
    match state {
        None => create(command, now_ms),
        Some(goal) => decide_goal(goal, actor, command, now_ms),
    }
}

fn create(command: &GoalCommand, now_ms: i64) -> Result<Vec<GoalEvent>, GoalDenial> {
    let GoalCommand::Create {
        id,
        contract,
        contract_hash,
        setup,
    } = command
    else {
        return Err(GoalDenial::NoGoal);
    };
    if let Some((field, rule)) = contract.fault() {
        return Err(GoalDenial::BadContract { field, rule });
    }
    Ok(vec![GoalEvent::GoalCreated {
        id: id.clone(),
        contract: contract.clone(),
        contract_hash: contract_hash.clone(),
        at_ms: now_ms,
        setup: *setup,
    }])
}

fn decide_goal(
    goal: &Goal,
    actor: &Actor,
    command: &GoalCommand,
    now_ms: i64,
) -> Result<Vec<GoalEvent>, GoalDenial> {
    match command {
        GoalCommand::Create { .. } => Err(GoalDenial::GoalExists),
        GoalCommand::Draft {
            contract,
            contract_hash,
        } => draft(goal, actor, contract, contract_hash),
        GoalCommand::Approve {
            contract_hash,
            means,
        } => approve(goal, contract_hash, *means),
        GoalCommand::Intend { effect } => intend(goal, effect, now_ms),
        GoalCommand::Progress {
            effect,
            usage,
            elapsed_ms,
        } => progress(goal, effect, *usage, *elapsed_ms),
        GoalCommand::RecordRun { effect, files } => {
            require_under_way(goal, effect)?;
            let (effect, files) = (effect.clone(), files.clone());
            Ok(vec![GoalEvent::RunRecorded { effect, files }])
        }
        GoalCommand::Report {
            effect,
            outcome,
            elapsed_ms,
        } => report::decide_report(goal, effect, outcome, *elapsed_ms, now_ms),
        GoalCommand::Interrupt => interrupt(goal),
        GoalCommand::Resume => resume(goal),
        GoalCommand::Cancel { reason } => {
            require(goal, !goal.status.is_terminal(), "cancelled")?;
            let stop = Stop::Cancelled {
                reason: reason.clone(),
            };
            Ok(vec![GoalEvent::GoalStopped { stop }])
        }
        GoalCommand::RaiseBudget(raise) => raise_budget(goal, raise),
        GoalCommand::Person(command) => person::decide_person(goal, command, now_ms),
        GoalCommand::Tool(call) => tool::decide_tool(goal, actor, call, now_ms),
        GoalCommand::AskConsent { pattern, command } => {
            tool::ask_consent(goal, pattern, command, now_ms)
        }
        GoalCommand::Wake { number, why } => wake(goal, *number, why),
        GoalCommand::AnswerSideQuestion {
            question,
            answer,
            usage,
        } => Ok(vec![GoalEvent::SideQuestionAnswered {
            question: question.clone(),
            answer: answer.clone(),
            usage: *usage,
        }]),
    }
}

/// An approval is of the contract with this hash, and of no other.
fn approve(goal: &Goal, shown: &str, means: ApprovalMeans) -> Result<Vec<GoalEvent>, GoalDenial> {
    require(goal, goal.status == GoalStatus::Proposed, "approved")?;
    if shown != goal.contract_hash {
        return Err(GoalDenial::WrongHash {
            shown: shown.to_owned(),
        });
    }
    if means == ApprovalMeans::Plan && goal.contract.working.workflow.is_none() {
        return Err(GoalDenial::Refused {
            code: "no_plan",
            message: "the contract does not name an approved plan".to_owned(),
        });
    }
    let contract_hash = shown.to_owned();
    Ok(vec![GoalEvent::ContractApproved {
        contract_hash,
        means,
    }])
}

/// A draft takes the place of a contract that nobody has approved, and of no other.
fn draft(
    goal: &Goal,
    actor: &Actor,
    contract: &Contract,
    contract_hash: &str,
) -> Result<Vec<GoalEvent>, GoalDenial> {
    if !matches!(goal.status, GoalStatus::Setup | GoalStatus::Proposed) {
        return Err(GoalDenial::Refused {
            code: "goal_exists",
            message: format!(
                "the goal is {}, and its contract cannot change; only the user can start another",
                goal.status
            ),
        });
    }
    if let Actor::Agent { run } = actor {
        let under_way = goal.in_flight.as_ref();
        let name = under_way.map(|in_flight| goal.run_name(&in_flight.effect));
        if name.as_ref() != Some(run) {
            return Err(GoalDenial::Refused {
                code: "wrong_run",
                message: format!("{actor} may not draft this goal's contract"),
            });
        }
    }
    if let Some((field, rule)) = contract.fault() {
        return Err(GoalDenial::BadContract { field, rule });
    }
    if contract_hash == goal.contract_hash && goal.status == GoalStatus::Proposed {
        return Ok(Vec::new());
    }
    Ok(vec![GoalEvent::ContractDrafted {
        contract: Box::new(contract.clone()),
        contract_hash: contract_hash.to_owned(),
    }])
}

fn interrupt(goal: &Goal) -> Result<Vec<GoalEvent>, GoalDenial> {
    let can = matches!(
        goal.status,
        GoalStatus::Active
            | GoalStatus::Setup
            | GoalStatus::Waiting
            | GoalStatus::Blocked
            | GoalStatus::Stalled
    );
    if goal.stage == GoalStage::Distill && goal.is_driven() {
        return Ok(vec![GoalEvent::DistillSkipped]);
    }
    require(goal, can, "paused")?;
    Ok(vec![GoalEvent::GoalStopped {
        stop: Stop::Interrupted,
    }])
}

/// A wait is ended once: by its number, and only while it lasts.
fn wake(goal: &Goal, number: u32, why: &str) -> Result<Vec<GoalEvent>, GoalDenial> {
    let is_this = goal.wait.as_ref().is_some_and(|wait| wait.number == number);
    require(goal, goal.status == GoalStatus::Waiting && is_this, "woken")?;
    if let Some(limit) = goal.budget.used_up(&goal.spent) {
        return Ok(vec![GoalEvent::GoalStopped {
            stop: Stop::BudgetUsedUp { limit },
        }]);
    }
    Ok(vec![GoalEvent::GoalWoken {
        number,
        why: why.to_owned(),
    }])
}

/// Only a person approves, resumes, cancels, interrupts or raises; only the engine reports; an
/// agent proposes, records and asks.
fn check_authority(actor: &Actor, command: &GoalCommand) -> Result<(), GoalDenial> {
    let human_action = match command {
        // A proposal waits for a person; a setup starts the agent that drafts.
        GoalCommand::Create { setup: false, .. } => return check_drafter(actor),
        GoalCommand::Create { setup: true, .. } => Some("start a goal"),
        GoalCommand::Approve { .. } => Some("approve a contract"),
        GoalCommand::Interrupt => Some("interrupt a goal"),
        GoalCommand::Resume => Some("resume a goal"),
        GoalCommand::Cancel { .. } => Some("cancel a goal"),
        GoalCommand::RaiseBudget(_) => Some("raise a budget"),
        GoalCommand::Person(command) => Some(command.action()),
        GoalCommand::Draft { .. } => return check_drafter(actor),
        GoalCommand::Tool(_) | GoalCommand::AskConsent { .. } => None,
        GoalCommand::Intend { .. }
        | GoalCommand::Progress { .. }
        | GoalCommand::RecordRun { .. }
        | GoalCommand::Report { .. }
        | GoalCommand::Wake { .. }
        | GoalCommand::AnswerSideQuestion { .. } => None,
    };
    if tool::is_agents(command) {
        return match actor {
            Actor::Agent { .. } => Ok(()),
            Actor::Human { .. } | Actor::Engine => Err(GoalDenial::OnlyAgent {
                actor: actor.to_string(),
            }),
        };
    }
    match (actor, human_action) {
        (Actor::Human { .. }, Some(_)) | (Actor::Engine, None) => Ok(()),
        (Actor::Agent { .. } | Actor::Engine, Some(action)) => Err(GoalDenial::OnlyHuman {
            action,
            actor: actor.to_string(),
        }),
        (Actor::Agent { .. } | Actor::Human { .. }, None) => Err(GoalDenial::OnlyEngine {
            actor: actor.to_string(),
        }),
    }
}

/// A contract is drafted by a person, or by the agent that was asked to.
fn check_drafter(actor: &Actor) -> Result<(), GoalDenial> {
    match actor {
        Actor::Human { .. } | Actor::Agent { .. } => Ok(()),
        Actor::Engine => Err(GoalDenial::OnlyHuman {
            action: "draft a contract",
            actor: actor.to_string(),
        }),
    }
}

fn require(goal: &Goal, holds: bool, action: &'static str) -> Result<(), GoalDenial> {
    if holds {
        Ok(())
    } else {
        Err(GoalDenial::WrongStatus {
            status: goal.status,
            action,
        })
    }
}

fn intend(goal: &Goal, effect: &EffectId, now_ms: i64) -> Result<Vec<GoalEvent>, GoalDenial> {
    require(goal, goal.is_driven(), "worked on")?;
    let wanted = if goal.wait_until_ms.is_some() {
        goal.wait_effect()
    } else {
        goal.stage_effect()
    };
    if *effect != wanted {
        return Err(GoalDenial::NotUnderWay {
            effect: effect.clone(),
        });
    }
    if goal.stage == GoalStage::Publish && goal.said.is_some() && goal.in_flight.is_none() {
        // A result is not accepted over somebody who is still talking.
        return Ok(vec![GoalEvent::TurnEnded {
            turn: goal.turn,
            verdict: TurnVerdict::PersonSpoke,
        }]);
    }
    match &goal.in_flight {
        // Intended before a crash and still wanted: it is performed again under the same id.
        Some(in_flight) if in_flight.effect == *effect => Ok(Vec::new()),
        Some(_) | None => Ok(vec![GoalEvent::EffectIntended {
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
) -> Result<Vec<GoalEvent>, GoalDenial> {
    require_under_way(goal, effect)?;
    let event = GoalEvent::EffectProgressed {
        effect: effect.clone(),
        usage,
        elapsed_ms,
    };
    let after = folded(goal, std::slice::from_ref(&event));
    let mut events = vec![event];
    if let Some(limit) = after.limit_within_turn() {
        match after.status {
            GoalStatus::Active | GoalStatus::Setup => events.push(GoalEvent::GoalStopped {
                stop: Stop::BudgetUsedUp { limit },
            }),
            // What is done stays done; only the account of it is left out.
            GoalStatus::Done | GoalStatus::Unverified if after.is_driven() => {
                events.push(GoalEvent::DistillSkipped);
            }
            GoalStatus::Done
            | GoalStatus::Unverified
            | GoalStatus::Proposed
            | GoalStatus::Waiting
            | GoalStatus::Blocked
            | GoalStatus::Stalled
            | GoalStatus::Paused
            | GoalStatus::Impossible
            | GoalStatus::Cancelled => {}
        }
    }
    Ok(events)
}

fn require_under_way(goal: &Goal, effect: &EffectId) -> Result<(), GoalDenial> {
    match &goal.in_flight {
        Some(in_flight) if in_flight.effect == *effect => Ok(()),
        Some(_) | None => Err(GoalDenial::NotUnderWay {
            effect: effect.clone(),
        }),
    }
}

fn resume(goal: &Goal) -> Result<Vec<GoalEvent>, GoalDenial> {
    match goal.status {
        GoalStatus::Active | GoalStatus::Setup => Ok(Vec::new()),
        GoalStatus::Waiting if goal.waits_for_person() => Err(GoalDenial::Refused {
            code: "needs_consent",
            message:
                "it is waiting for approval; approve it with `kapi goal allow`, or pause the goal"
                    .to_owned(),
        }),
        GoalStatus::Paused | GoalStatus::Blocked | GoalStatus::Stalled | GoalStatus::Waiting => {
            match goal.budget.used_up(&goal.spent) {
                Some(limit) => Err(GoalDenial::BudgetUsedUp { limit }),
                None => Ok(vec![GoalEvent::GoalResumed]),
            }
        }
        GoalStatus::Proposed
        | GoalStatus::Impossible
        | GoalStatus::Cancelled
        | GoalStatus::Unverified
        | GoalStatus::Done => Err(GoalDenial::WrongStatus {
            status: goal.status,
            action: "resumed",
        }),
    }
}

fn raise_budget(goal: &Goal, raise: &Raise) -> Result<Vec<GoalEvent>, GoalDenial> {
    require(goal, goal.takes_budget(), "given a larger budget")?;
    if *raise == Raise::default() {
        return Err(GoalDenial::BadRaise {
            rule: "it must raise at least one limit",
        });
    }
    if let Some(limit) = goal.budget.unlimited_in(raise) {
        return Err(GoalDenial::NoLimit { limit });
    }
    if goal.budget.turns.saturating_add(raise.turns) > TURNS_MAX {
        return Err(GoalDenial::BadRaise {
            rule: "the turn budget must stay at or below 20000",
        });
    }
    Ok(vec![GoalEvent::BudgetRaised { raise: *raise }])
}

/// Returns the state after these events, for rules that depend on what was just recorded.
fn folded(goal: &Goal, events: &[GoalEvent]) -> Goal {
    let mut state = Some(goal.clone());
    for event in events {
        evolve(&mut state, event);
    }
    state.unwrap_or_else(|| goal.clone())
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_journey;
#[cfg(test)]
mod tests_judge;
#[cfg(test)]
mod tests_session;
#[cfg(test)]
mod tests_spec;
#[cfg(test)]
mod tests_spec_edges;
#[cfg(test)]
mod tests_words;
