//! The rules for what only a person asks of a goal that was approved: turns, words, consent.
//!
//! None of these makes a goal active that nobody approved.

use crate::rules::command::PersonCommand;
use crate::rules::contract::{TEXT_BYTES_MAX, TURNS_MAX};
use crate::rules::decide::require;
use crate::rules::decide::tool::deadline_ms;
use crate::rules::denied::GoalDenial;
use crate::rules::event::{GoalEvent, Stop};
use crate::rules::state::{Goal, GoalStatus};
use crate::rules::wait::{GoalWait, WaitFor};

/// Decides what a person asks.
pub(super) fn decide_person(
    goal: &Goal,
    command: &PersonCommand,
    now_ms: i64,
) -> Result<Vec<GoalEvent>, GoalDenial> {
    match command {
        PersonCommand::SetTurns { turns } => set_turns(goal, *turns),
        PersonCommand::Reopen { reason } => reopen(goal, reason),
        PersonCommand::Say { text } => say(goal, text),
        PersonCommand::Allow { what } => allow(goal, what),
        PersonCommand::ChangeJudge { judge } => change_judge(goal, judge),
        PersonCommand::Park {
            until,
            reason,
            timeout_ms,
        } => park(goal, until, reason.as_ref(), *timeout_ms, now_ms),
    }
}

/// Sets the limit, up or down, but never below what is under way.
fn set_turns(goal: &Goal, turns: u32) -> Result<Vec<GoalEvent>, GoalDenial> {
    require(goal, goal.takes_budget(), "given another budget")?;
    if turns == 0 || turns > TURNS_MAX {
        return Err(GoalDenial::BadRaise {
            rule: "the turn budget must be 1 to 20000",
        });
    }
    if turns == goal.budget.turns {
        return Ok(Vec::new());
    }
    Ok(vec![GoalEvent::TurnsSet { turns }])
}

/// A result that a person does not accept is worked on again, with their reason.
fn reopen(goal: &Goal, reason: &str) -> Result<Vec<GoalEvent>, GoalDenial> {
    let is_done = matches!(goal.status, GoalStatus::Done | GoalStatus::Unverified);
    require(goal, is_done && goal.approval.is_some(), "reopened")?;
    check_text(reason)?;
    if let Some(limit) = goal.budget.used_up(&goal.spent) {
        return Err(GoalDenial::BudgetUsedUp { limit });
    }
    Ok(vec![GoalEvent::GoalReopened {
        reason: reason.trim().to_owned(),
    }])
}

/// What a person says cuts into the turn under way and stands first in the next one.
fn say(goal: &Goal, text: &str) -> Result<Vec<GoalEvent>, GoalDenial> {
    let hears = !goal.status.is_terminal() && goal.approval.is_some();
    require(goal, hears, "sent a message")?;
    check_text(text)?;
    Ok(vec![GoalEvent::PersonSaid {
        text: text.trim().to_owned(),
    }])
}

/// Consent is given to an entry of the contract's list, or to what a parked goal waits for.
fn allow(goal: &Goal, what: &str) -> Result<Vec<GoalEvent>, GoalDenial> {
    require(goal, !goal.status.is_terminal(), "allowed anything")?;
    let is_listed = goal.contract.working.ask_before.iter().any(|it| it == what);
    let waited = goal
        .wait
        .as_ref()
        .filter(|_| goal.status == GoalStatus::Waiting)
        .filter(|wait| matches!(&wait.until, WaitFor::Approval { what: wanted } if wanted == what));
    if !is_listed && waited.is_none() {
        return Err(GoalDenial::Refused {
            code: "not_found",
            message: format!("nothing asked for {what:?}"),
        });
    }
    let mut events = Vec::new();
    if !goal.consent.allowed.contains(what) {
        events.push(GoalEvent::ConsentGiven {
            what: what.to_owned(),
        });
    }
    if let (Some(_), Some(limit)) = (waited, goal.budget.used_up(&goal.spent)) {
        events.push(GoalEvent::GoalStopped {
            stop: Stop::BudgetUsedUp { limit },
        });
    } else if let Some(wait) = waited {
        events.push(GoalEvent::GoalWoken {
            number: wait.number,
            why: format!("the user allowed {what:?}"),
        });
    }
    Ok(events)
}

/// A person names another judge of a goal that has one. A goal that only waited for its judge goes
/// on with the candidate that was verified.
fn change_judge(goal: &Goal, judge: &str) -> Result<Vec<GoalEvent>, GoalDenial> {
    let can = matches!(
        goal.status,
        GoalStatus::Active
            | GoalStatus::Paused
            | GoalStatus::Blocked
            | GoalStatus::Stalled
            | GoalStatus::Waiting
    );
    require(goal, can && goal.approval.is_some(), "given another judge")?;
    check_text(judge)?;
    let Some(before) = goal.judge_agent() else {
        return Err(GoalDenial::Refused {
            code: "no_judge",
            message: "its contract has no judge".to_owned(),
        });
    };
    let mut events = Vec::new();
    if before != judge {
        let judge = judge.to_owned();
        events.push(GoalEvent::JudgeChanged { judge });
    }
    if !goal.lacks_a_judge() {
        return Ok(events);
    }
    if let Some(limit) = goal.budget.used_up(&goal.spent) {
        return Err(GoalDenial::BudgetUsedUp { limit });
    }
    events.push(match &goal.wait {
        Some(wait) => GoalEvent::GoalWoken {
            number: wait.number,
            why: format!("the user chose {judge} as the judge"),
        },
        None => GoalEvent::GoalResumed,
    });
    Ok(events)
}

/// A person parks a goal that goes on or stands still.
fn park(
    goal: &Goal,
    until: &WaitFor,
    reason: Option<&String>,
    timeout_ms: Option<u64>,
    now_ms: i64,
) -> Result<Vec<GoalEvent>, GoalDenial> {
    let can = matches!(
        goal.status,
        GoalStatus::Active
            | GoalStatus::Paused
            | GoalStatus::Blocked
            | GoalStatus::Stalled
            | GoalStatus::Waiting
    );
    require(goal, can && goal.approval.is_some(), "parked")?;
    if let Some(rule) = until.fault(now_ms, false) {
        return Err(GoalDenial::Refused {
            code: "bad_wait",
            message: rule.to_owned(),
        });
    }
    if let Some(limit) = goal.budget.used_up(&goal.spent) {
        return Err(GoalDenial::BudgetUsedUp { limit });
    }
    let stop = GoalEvent::GoalStopped {
        stop: Stop::Interrupted,
    };
    let parked = GoalEvent::GoalParked {
        wait: GoalWait {
            number: goal.waits.saturating_add(1),
            until: until.clone(),
            reason: reason.cloned(),
            since_ms: now_ms,
            deadline_ms: deadline_ms(timeout_ms, now_ms),
        },
    };
    if goal.status == GoalStatus::Active {
        Ok(vec![stop, parked])
    } else {
        Ok(vec![parked])
    }
}

fn check_text(text: &str) -> Result<(), GoalDenial> {
    if text.trim().is_empty() || text.len() > TEXT_BYTES_MAX {
        return Err(GoalDenial::Refused {
            code: "bad_input",
            message: "it must be a text of at most 64 KiB".to_owned(),
        });
    }
    Ok(())
}
