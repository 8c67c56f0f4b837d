//! The end of a turn in a session that a stop gate holds: the goal is driven up to its next turn, or to its
//! rest.
//!
//! A turn's end is a claim here: a session that stops says that it is done.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use kapi_core::actor::Actor;
use kapi_core::agent_end::{AgentEnd, Claim};
use kapi_core::usage::Usage;
use kapi_goal::perform::session::seat::{SessionRun, SessionSeat};
use kapi_goal::perform::session::{SessionVoice, SessionWorld, TurnOffer};
use kapi_goal::record::drive::{DriveControl, drive};
use kapi_goal::rules::command::{GoalCommand, PersonCommand};
use kapi_goal::rules::contract::TURNS_MAX;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_goal::rules::words;
use kapi_machine::pace::Pace;
use kapi_sys::clock::monotonic_ms;

use crate::commands::rpc::attached::AttachedGoal;
use crate::context::Context;
use crate::driving::interrupts;
use crate::error::Error;

/// How often it is looked whether the turn that has ended is awaited.
const LOOK: Duration = Duration::from_millis(50);

/// What the end of a turn means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    /// Nothing: the gate does not hold.
    Open,
    /// The agent goes on, for this reason.
    Hold(String),
    /// The turn ends, and the person is told why.
    LetGo(String),
}

/// Ends the turn under way, and proves the work as it stands.
pub(crate) fn at_stop(gated: &AttachedGoal<'_>) -> Result<TurnEnd, Error> {
    if gated.goal()?.status != GoalStatus::Active {
        return Ok(TurnEnd::Open);
    }
    let next = Mutex::new(None);
    let goal = drive_to_next(gated, &next)?;
    let next = next.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(match next.filter(|_| goal.status == GoalStatus::Active) {
        Some(message) => TurnEnd::Hold(format!(
            "{message}\n\nContinue until the checks pass. The user pauses this with /kapi:pause."
        )),
        None => TurnEnd::LetGo(let_go(&goal)),
    })
}

/// Drives a goal until it offers the turn after the one that ends now, or rests.
fn drive_to_next(gated: &AttachedGoal<'_>, next: &Mutex<Option<String>>) -> Result<Goal, Error> {
    let interrupts = interrupts()?;
    let cancel = interrupts.cancel();
    let (lets_go, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let seat = SessionSeat::default();
    // The model is at work until the turn that ends now is awaited.
    seat.begins();
    let offer = |offer: &TurnOffer| {
        let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
        *next = Some(offer.message.clone());
        lets_go.store(true, Ordering::SeqCst);
    };
    let world = SessionWorld {
        real: &gated.real,
        seat: &seat,
        voice: SessionVoice {
            offer: &offer,
            hold: &offer,
        },
        // A hook of a client cannot ask its models anything.
        models: None,
    };
    let control = DriveControl {
        person: Actor::Engine,
        interrupted: &|| lets_go.load(Ordering::SeqCst) || cancel.is_raised(),
        monotonic_ms: &monotonic_ms,
        pace: Pace::STANDARD,
    };
    let driven = thread::scope(|scope| {
        scope.spawn(|| {
            let is_over = || is_over.load(Ordering::SeqCst);
            let mut is_awaited = false;
            while !is_awaited && !is_over() {
                is_awaited = seat.awaited(LOOK).is_some();
            }
            if is_awaited {
                seat.ends(claimed());
            }
        });
        let driven = drive(&gated.project, &gated.id, &world, &control, &mut |_| {});
        is_over.store(true, Ordering::SeqCst);
        driven
    });
    driven.map_err(|error| Error::drive(&error, &gated.id.to_string()))
}

/// Returns how the turn ended. What it used is the client's to say.
fn claimed() -> SessionRun {
    SessionRun {
        end: AgentEnd::Finished,
        claim: Some(Claim::Done),
        message: String::new(),
        usage: Usage::default(),
        session: None,
    }
}

/// Takes note that the person spoke: what was held so far is not counted against the limit.
pub(crate) fn spoken(context: &Context, gated: &AttachedGoal<'_>) -> Result<(), Error> {
    let goal = gated.goal()?;
    let turns = goal.turn.saturating_sub(1);
    let turns = turns.saturating_add(goal.contract.budget.turns);
    if goal.status == GoalStatus::Active && turns > goal.budget.turns {
        let turns = turns.min(TURNS_MAX);
        let command = GoalCommand::Person(PersonCommand::SetTurns { turns });
        gated.submit(context, &command)?;
    }
    Ok(())
}

/// Says that a turn ends although the gate is there.
fn let_go(goal: &Goal) -> String {
    let id = &goal.id;
    let reason = words::reason(goal).map_or_else(String::new, |reason| format!(": {reason}"));
    match goal.status {
        GoalStatus::Done => {
            let commit = goal.result.as_deref().unwrap_or_default();
            format!("Kapi: proved{reason}. The proved commit of goal {id} is {commit}.")
        }
        GoalStatus::Unverified => {
            format!("Kapi: the checks pass, which proves nothing{reason}.")
        }
        GoalStatus::Setup
        | GoalStatus::Proposed
        | GoalStatus::Active
        | GoalStatus::Waiting
        | GoalStatus::Blocked
        | GoalStatus::Stalled
        | GoalStatus::Paused
        | GoalStatus::Impossible
        | GoalStatus::Cancelled => format!(
            "Kapi: the stop gate lets go: goal {id} is {}{reason}. The work is NOT proved. \
             /kapi:resume lets it hold again.",
            goal.status
        ),
    }
}
