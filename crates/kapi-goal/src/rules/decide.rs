//! The rules: which events a command leads to, or why it is denied.
//!
//! Pure: the time is an argument, and a denial changes nothing.

use kapi_core::actor::Actor;
use kapi_core::id::EffectId;
use kapi_core::usage::Usage;

use crate::rules::budget::Raise;
use crate::rules::command::Command;
use crate::rules::contract::{Contract, TURNS_MAX};
use crate::rules::denied::Denied;
use crate::rules::event::{ApprovalMeans, Event, Stop, TurnVerdict};
use crate::rules::evolve::evolve;
use crate::rules::state::{Goal, Stage, Status};

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
    command: &Command,
    now_ms: i64,
) -> Result<Vec<Event>, Denied> {
    check_authority(actor, command)?;
    match state {
        None => create(command, now_ms),
        Some(goal) => decide_goal(goal, actor, command, now_ms),
    }
}

fn create(command: &Command, now_ms: i64) -> Result<Vec<Event>, Denied> {
    let Command::Create {
        id,
        contract,
        contract_hash,
        setup,
    } = command
    else {
        return Err(Denied::NoGoal);
    };
    if let Some((field, rule)) = contract.fault() {
        return Err(Denied::BadContract { field, rule });
    }
    Ok(vec![Event::GoalCreated {
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
    command: &Command,
    now_ms: i64,
) -> Result<Vec<Event>, Denied> {
    match command {
        Command::Create { .. } => Err(Denied::GoalExists),
        Command::Draft {
            contract,
            contract_hash,
        } => draft(goal, actor, contract, contract_hash),
        Command::Approve {
            contract_hash,
            means,
        } => approve(goal, contract_hash, *means),
        Command::Intend { effect } => intend(goal, effect, now_ms),
        Command::Progress {
            effect,
            usage,
            elapsed_ms,
        } => progress(goal, effect, *usage, *elapsed_ms),
        Command::RecordRun { effect, files } => {
            require_under_way(goal, effect)?;
            let (effect, files) = (effect.clone(), files.clone());
            Ok(vec![Event::RunRecorded { effect, files }])
        }
        Command::Report {
            effect,
            outcome,
            elapsed_ms,
        } => report::decide_report(goal, effect, outcome, *elapsed_ms, now_ms),
        Command::Interrupt => interrupt(goal),
        Command::Resume => resume(goal),
        Command::Cancel { reason } => {
            require(goal, !goal.status.is_terminal(), "cancelled")?;
            let stop = Stop::Cancelled {
                reason: reason.clone(),
            };
            Ok(vec![Event::GoalStopped { stop }])
        }
        Command::RaiseBudget(raise) => raise_budget(goal, raise),
        Command::Person(command) => person::decide_person(goal, command, now_ms),
        Command::Tool(call) => tool::decide_tool(goal, actor, call, now_ms),
        Command::AskConsent { pattern, command } => {
            tool::ask_consent(goal, pattern, command, now_ms)
        }
        Command::Wake { number, why } => wake(goal, *number, why),
        Command::AnswerSideQuestion {
            question,
            answer,
            usage,
        } => Ok(vec![Event::SideQuestionAnswered {
            question: question.clone(),
            answer: answer.clone(),
            usage: *usage,
        }]),
    }
}

/// An approval is of the contract with this hash, and of no other.
fn approve(goal: &Goal, shown: &str, means: ApprovalMeans) -> Result<Vec<Event>, Denied> {
    require(goal, goal.status == Status::Proposed, "approved")?;
    if shown != goal.contract_hash {
        return Err(Denied::WrongHash {
            shown: shown.to_owned(),
        });
    }
    if means == ApprovalMeans::Plan && goal.contract.working.workflow.is_none() {
        return Err(Denied::Refused {
            code: "no_plan",
            message: "the contract does not name an approved plan".to_owned(),
        });
    }
    let contract_hash = shown.to_owned();
    Ok(vec![Event::ContractApproved {
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
) -> Result<Vec<Event>, Denied> {
    if !matches!(goal.status, Status::Setup | Status::Proposed) {
        return Err(Denied::Refused {
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
            return Err(Denied::Refused {
                code: "wrong_run",
                message: format!("{actor} may not draft this goal's contract"),
            });
        }
    }
    if let Some((field, rule)) = contract.fault() {
        return Err(Denied::BadContract { field, rule });
    }
    if contract_hash == goal.contract_hash && goal.status == Status::Proposed {
        return Ok(Vec::new());
    }
    Ok(vec![Event::ContractDrafted {
        contract: Box::new(contract.clone()),
        contract_hash: contract_hash.to_owned(),
    }])
}

fn interrupt(goal: &Goal) -> Result<Vec<Event>, Denied> {
    let can = matches!(
        goal.status,
        Status::Active | Status::Setup | Status::Waiting | Status::Blocked | Status::Stalled
    );
    if goal.stage == Stage::Distill && goal.is_driven() {
        return Ok(vec![Event::DistillSkipped]);
    }
    require(goal, can, "interrupted")?;
    Ok(vec![Event::GoalStopped {
        stop: Stop::Interrupted,
    }])
}

/// A wait is ended once: by its number, and only while it lasts.
fn wake(goal: &Goal, number: u32, why: &str) -> Result<Vec<Event>, Denied> {
    let is_this = goal.wait.as_ref().is_some_and(|wait| wait.number == number);
    require(goal, goal.status == Status::Waiting && is_this, "woken")?;
    if let Some(limit) = goal.budget.used_up(&goal.spent) {
        return Ok(vec![Event::GoalStopped {
            stop: Stop::BudgetUsedUp { limit },
        }]);
    }
    Ok(vec![Event::GoalWoken {
        number,
        why: why.to_owned(),
    }])
}

/// Only a person approves, resumes, cancels, interrupts or raises; only the engine reports; an
/// agent proposes, records and asks.
fn check_authority(actor: &Actor, command: &Command) -> Result<(), Denied> {
    let human_action = match command {
        // A proposal waits for a person; a setup starts the agent that drafts.
        Command::Create { setup: false, .. } => return check_drafter(actor),
        Command::Create { setup: true, .. } => Some("start a goal"),
        Command::Approve { .. } => Some("approve a contract"),
        Command::Interrupt => Some("interrupt a goal"),
        Command::Resume => Some("resume a goal"),
        Command::Cancel { .. } => Some("cancel a goal"),
        Command::RaiseBudget(_) => Some("raise a budget"),
        Command::Person(command) => Some(command.action()),
        Command::Draft { .. } => return check_drafter(actor),
        Command::Tool(_) | Command::AskConsent { .. } => None,
        Command::Intend { .. }
        | Command::Progress { .. }
        | Command::RecordRun { .. }
        | Command::Report { .. }
        | Command::Wake { .. }
        | Command::AnswerSideQuestion { .. } => None,
    };
    if tool::is_agents(command) {
        return match actor {
            Actor::Agent { .. } => Ok(()),
            Actor::Human { .. } | Actor::Engine => Err(Denied::OnlyAgent {
                actor: actor.to_string(),
            }),
        };
    }
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

/// A contract is drafted by a person, or by the agent that was asked to.
fn check_drafter(actor: &Actor) -> Result<(), Denied> {
    match actor {
        Actor::Human { .. } | Actor::Agent { .. } => Ok(()),
        Actor::Engine => Err(Denied::OnlyHuman {
            action: "draft a contract",
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
    require(goal, goal.is_driven(), "worked on")?;
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
    if goal.stage == Stage::Publish && goal.said.is_some() && goal.in_flight.is_none() {
        // A result is not accepted over somebody who is still talking.
        return Ok(vec![Event::TurnEnded {
            turn: goal.turn,
            verdict: TurnVerdict::PersonSpoke,
        }]);
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
    if let Some(limit) = after.limit_within_turn() {
        match after.status {
            Status::Active | Status::Setup => events.push(Event::GoalStopped {
                stop: Stop::BudgetUsedUp { limit },
            }),
            // What is done stays done; only the account of it is left out.
            Status::Done | Status::Unverified if after.is_driven() => {
                events.push(Event::DistillSkipped);
            }
            Status::Done
            | Status::Unverified
            | Status::Proposed
            | Status::Waiting
            | Status::Blocked
            | Status::Stalled
            | Status::Paused
            | Status::Impossible
            | Status::Cancelled => {}
        }
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
        Status::Active | Status::Setup => Ok(Vec::new()),
        Status::Waiting if goal.waits_for_person() => Err(Denied::Refused {
            code: "needs_consent",
            message:
                "it is waiting for approval; approve it with `kapi goal allow`, or pause the goal"
                    .to_owned(),
        }),
        Status::Paused | Status::Blocked | Status::Stalled | Status::Waiting => {
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
    require(goal, goal.takes_budget(), "given a larger budget")?;
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
#[cfg(test)]
mod tests_journey;
#[cfg(test)]
mod tests_judge;
#[cfg(test)]
mod tests_spec;
#[cfg(test)]
mod tests_spec_edges;
#[cfg(test)]
mod tests_words;
