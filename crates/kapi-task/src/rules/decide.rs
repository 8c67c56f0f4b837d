//! The only place where a rule of the kernel says no.
//!
//! A denial changes nothing. What is decided here is true once it is recorded; that the record is
//! made by one process at a time is the business of whoever keeps it.

mod attempt;
mod lead;
mod submit;

use kapi_core::actor::Actor;
use kapi_core::task_id::{Fence, TaskId};

use super::task_state::State;
use crate::rules::admission;
use crate::rules::command::Command;
use crate::rules::denied::Denied;
use crate::rules::event::KernelEvent;
use crate::rules::request::Origin;
use crate::rules::state::Kernel;
use crate::rules::task::{End, Report};

/// What a request comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// The facts to record; none when it asks for what already holds.
    pub events: Vec<KernelEvent>,
    /// What whoever asked is told.
    pub answer: Answer,
}

/// What whoever asked is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is let in.
    Submitted(TaskId),
    /// It is the same as this one.
    Duplicate(TaskId),
    /// It does not run now.
    Skipped(String),
    /// The worker has this task, by this lease.
    Claimed(TaskId, Fence),
    /// There is nothing to work on.
    Nothing,
    /// So be it.
    Done,
}

/// Decides a request.
///
/// # Errors
/// When a rule refuses it; nothing has changed then.
pub fn decide(
    kernel: &Kernel,
    actor: &Actor,
    command: &Command,
    now_ms: i64,
) -> Result<Decided, Denied> {
    authorise(actor, command)?;
    match command {
        Command::Submit { request, admission } => {
            submit::submit(kernel, actor, request, *admission, now_ms)
        }
        Command::Claim {
            holder,
            ttl_ms,
            capacity,
            only,
            reach,
        } => {
            let task = admission::pick(kernel, capacity, *only, reach.as_deref(), now_ms);
            let expires_at_ms = later(now_ms, *ttl_ms);
            Ok(attempt::claim(kernel, task, holder, expires_at_ms))
        }
        Command::Begin(hold) => attempt::begin(kernel, *hold),
        Command::Beat {
            hold,
            ttl_ms,
            usage,
        } => attempt::beat(kernel, *hold, later(now_ms, *ttl_ms), *usage),
        Command::EndPhase {
            hold,
            phase,
            status,
            detail,
            report,
        } => {
            attempt::phase(kernel, *hold, *phase)?;
            Ok(done(vec![KernelEvent::PhaseEnded {
                task: hold.task,
                phase: *phase,
                status: *status,
                detail: detail.clone(),
                report: report.clone(),
            }]))
        }
        Command::RecordRun { hold, run, files } => attempt::record_run(kernel, *hold, run, files),
        Command::Finish { hold, report } => attempt::finish(kernel, *hold, report, now_ms),
        Command::GiveBack {
            hold,
            why,
            usage,
            pause_ms,
        } => attempt::give_back(kernel, *hold, why, usage, later(now_ms, *pause_ms)),
        Command::Cancel { task, why } => cancel(kernel, actor, *task, why),
        Command::Expire { gone } => Ok(done(attempt::expire(kernel, gone, now_ms))),
        Command::Skip {
            name,
            trigger,
            reason,
        } => Ok(done(vec![KernelEvent::LoopSkipped {
            name: name.clone(),
            trigger: trigger.clone(),
            reason: reason.clone(),
        }])),
        Command::Switch { name, is_enabled } => Ok(lead::switch(kernel, name, *is_enabled)),
        Command::See { name, mark } => Ok(lead::see(kernel, name, mark.as_ref())),
        Command::Lead {
            holder,
            ttl_ms,
            gone,
        } => lead::lead(kernel, holder, *ttl_ms, gone, now_ms),
        Command::Resign { holder } => Ok(lead::resign(kernel, holder)),
    }
}

/// Refuses what is not for whoever asks.
fn authorise(actor: &Actor, command: &Command) -> Result<(), Denied> {
    let action = match command {
        // Whose task it is decides.
        Command::Submit { .. } | Command::Cancel { .. } => return Ok(()),
        Command::Switch { .. } => return only_human(actor, "enable and disable loops"),
        Command::Claim { .. } => "claim tasks",
        Command::Begin(_) => "start tasks",
        Command::Beat { .. } => "keep tasks",
        Command::EndPhase { .. } => "end phases",
        Command::RecordRun { .. } => "record runs",
        Command::Finish { .. } => "finish tasks",
        Command::GiveBack { .. } => "return tasks",
        Command::Expire { .. } => "expire leases",
        Command::Skip { .. } => "skip loops",
        Command::See { .. } => "watch events",
        Command::Lead { .. } => "lead",
        Command::Resign { .. } => "resign",
    };
    only_engine(actor, action)
}

fn cancel(kernel: &Kernel, actor: &Actor, id: TaskId, why: &str) -> Result<Decided, Denied> {
    let task = kernel.task(id).ok_or(Denied::NoTask { task: id })?;
    match actor {
        Actor::Human { .. } | Actor::Engine => {}
        Actor::Agent { run } => {
            let is_theirs = matches!(
                &task.request.origin,
                Origin::Agent { run: by, .. } if by == run
            );
            if !is_theirs {
                return Err(Denied::NotYours {
                    task: id,
                    actor: actor.to_string(),
                });
            }
        }
    }
    match task.state {
        State::Pending => Ok(done(vec![KernelEvent::Ended {
            task: id,
            report: Box::new(Report::of(End::Cancelled)),
        }])),
        // Whoever has it ends it: its process must be gone before the task is.
        State::Leased | State::Running if task.cancelling.is_some() => Ok(done(Vec::new())),
        State::Leased | State::Running => Ok(done(vec![KernelEvent::CancelAsked {
            task: id,
            why: why.to_owned(),
        }])),
        State::Completed | State::Failed | State::Cancelled => Err(Denied::WrongState {
            task: id,
            state: task.state,
            action: "cancelled",
        }),
    }
}

const fn done(events: Vec<KernelEvent>) -> Decided {
    Decided {
        events,
        answer: Answer::Done,
    }
}

const fn next_fence(kernel: &Kernel) -> Fence {
    Fence(kernel.last_fence.0.saturating_add(1))
}

fn later(now_ms: i64, by_ms: u64) -> i64 {
    now_ms.saturating_add(i64::try_from(by_ms).unwrap_or(i64::MAX))
}

fn only_engine(actor: &Actor, action: &'static str) -> Result<(), Denied> {
    match actor {
        Actor::Engine => Ok(()),
        Actor::Human { .. } | Actor::Agent { .. } => Err(Denied::OnlyEngine {
            action,
            actor: actor.to_string(),
        }),
    }
}

fn only_human(actor: &Actor, action: &'static str) -> Result<(), Denied> {
    match actor {
        Actor::Human { .. } => Ok(()),
        Actor::Agent { .. } | Actor::Engine => Err(Denied::OnlyHuman {
            action,
            actor: actor.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests;
