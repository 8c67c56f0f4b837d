//! The only place where a rule of the kernel says no.
//!
//! A denial changes nothing. What is decided here is true once it is recorded; that the record is
//! made by one process at a time is the business of whoever keeps it.

mod attempt;
mod lead;
mod submit;

use kapi_core::actor::Actor;
use kapi_core::task_id::{Fence, KernelTaskId};

use super::task_state::KernelTaskState;
use crate::rules::admission;
use crate::rules::command::KernelCommand;
use crate::rules::denied::KernelDenial;
use crate::rules::event::KernelEvent;
use crate::rules::request::TaskOrigin;
use crate::rules::state::KernelState;
use crate::rules::task::{AttemptReport, End};

/// What a request comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelDecision {
    /// The facts to record; none when it asks for what already holds.
    pub events: Vec<KernelEvent>,
    /// What whoever asked is told.
    pub answer: KernelReply,
}

/// What whoever asked is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelReply {
    /// It is let in.
    Submitted(KernelTaskId),
    /// It is the same as this one.
    Duplicate(KernelTaskId),
    /// It does not run now.
    Skipped(String),
    /// The worker has this task, by this lease.
    Claimed(KernelTaskId, Fence),
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
    kernel: &KernelState,
    actor: &Actor,
    command: &KernelCommand,
    now_ms: i64,
) -> Result<KernelDecision, KernelDenial> {
    authorise(actor, command)?;
    match command {
        KernelCommand::Submit { request, admission } => {
            submit::submit(kernel, actor, request, *admission, now_ms)
        }
        KernelCommand::Claim {
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
        KernelCommand::Begin(hold) => attempt::begin(kernel, *hold),
        KernelCommand::Beat {
            hold,
            ttl_ms,
            usage,
        } => attempt::beat(kernel, *hold, later(now_ms, *ttl_ms), *usage),
        KernelCommand::EndPhase {
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
        KernelCommand::RecordRun { hold, run, files } => {
            attempt::record_run(kernel, *hold, run, files)
        }
        KernelCommand::Finish { hold, report } => attempt::finish(kernel, *hold, report, now_ms),
        KernelCommand::GiveBack {
            hold,
            why,
            usage,
            pause_ms,
        } => attempt::give_back(kernel, *hold, why, usage, later(now_ms, *pause_ms)),
        KernelCommand::Cancel { task, why } => cancel(kernel, actor, *task, why),
        KernelCommand::Expire { gone } => Ok(done(attempt::expire(kernel, gone, now_ms))),
        KernelCommand::Skip {
            name,
            trigger,
            reason,
            is_refused,
        } => Ok(done(vec![KernelEvent::LoopSkipped {
            name: name.clone(),
            trigger: trigger.clone(),
            reason: reason.clone(),
            is_refused: *is_refused,
        }])),
        KernelCommand::Switch { name, is_enabled } => Ok(lead::switch(kernel, name, *is_enabled)),
        KernelCommand::See { name, mark } => Ok(lead::see(kernel, name, mark.as_ref())),
        KernelCommand::Lead {
            holder,
            ttl_ms,
            gone,
        } => lead::lead(kernel, holder, *ttl_ms, gone, now_ms),
        KernelCommand::Resign { holder } => Ok(lead::resign(kernel, holder)),
    }
}

/// Refuses what is not for whoever asks.
fn authorise(actor: &Actor, command: &KernelCommand) -> Result<(), KernelDenial> {
    let action = match command {
        // Whose task it is decides.
        KernelCommand::Submit { .. } | KernelCommand::Cancel { .. } => return Ok(()),
        KernelCommand::Switch { .. } => return only_human(actor, "enable and disable loops"),
        KernelCommand::Claim { .. } => "claim tasks",
        KernelCommand::Begin(_) => "start tasks",
        KernelCommand::Beat { .. } => "keep tasks",
        KernelCommand::EndPhase { .. } => "end phases",
        KernelCommand::RecordRun { .. } => "record runs",
        KernelCommand::Finish { .. } => "finish tasks",
        KernelCommand::GiveBack { .. } => "return tasks",
        KernelCommand::Expire { .. } => "expire leases",
        KernelCommand::Skip { .. } => "skip loops",
        KernelCommand::See { .. } => "watch events",
        KernelCommand::Lead { .. } => "lead",
        KernelCommand::Resign { .. } => "resign",
    };
    only_engine(actor, action)
}

fn cancel(
    kernel: &KernelState,
    actor: &Actor,
    id: KernelTaskId,
    why: &str,
) -> Result<KernelDecision, KernelDenial> {
    let task = kernel.task(id).ok_or(KernelDenial::NoTask { task: id })?;
    match actor {
        Actor::Human { .. } | Actor::Engine => {}
        Actor::Agent { run } => {
            let is_theirs = matches!(
                &task.request.origin,
                TaskOrigin::Agent { run: by, .. } if by == run
            );
            if !is_theirs {
                return Err(KernelDenial::NotYours {
                    task: id,
                    actor: actor.to_string(),
                });
            }
        }
    }
    match task.state {
        KernelTaskState::Pending if !task.is_unsettled() => Ok(done(vec![KernelEvent::Ended {
            task: id,
            report: Box::new(AttemptReport::of(End::Cancelled)),
        }])),
        // Whoever has it ends it: its process must be gone before the task is. What attempts used and left
        // of one that nobody has is settled by the next worker.
        KernelTaskState::Pending | KernelTaskState::Leased | KernelTaskState::Running
            if task.cancelling.is_some() =>
        {
            Ok(done(Vec::new()))
        }
        KernelTaskState::Pending | KernelTaskState::Leased | KernelTaskState::Running => {
            Ok(done(vec![KernelEvent::CancelAsked {
                task: id,
                why: why.to_owned(),
            }]))
        }
        KernelTaskState::Completed | KernelTaskState::Failed | KernelTaskState::Cancelled => {
            Err(KernelDenial::WrongState {
                task: id,
                state: task.state,
                action: "cancelled",
            })
        }
    }
}

const fn done(events: Vec<KernelEvent>) -> KernelDecision {
    KernelDecision {
        events,
        answer: KernelReply::Done,
    }
}

const fn next_fence(kernel: &KernelState) -> Fence {
    Fence(kernel.last_fence.0.saturating_add(1))
}

fn later(now_ms: i64, by_ms: u64) -> i64 {
    now_ms.saturating_add(i64::try_from(by_ms).unwrap_or(i64::MAX))
}

fn only_engine(actor: &Actor, action: &'static str) -> Result<(), KernelDenial> {
    match actor {
        Actor::Engine => Ok(()),
        Actor::Human { .. } | Actor::Agent { .. } => Err(KernelDenial::OnlyEngine {
            action,
            actor: actor.to_string(),
        }),
    }
}

fn only_human(actor: &Actor, action: &'static str) -> Result<(), KernelDenial> {
    match actor {
        Actor::Human { .. } => Ok(()),
        Actor::Agent { .. } | Actor::Engine => Err(KernelDenial::OnlyHuman {
            action,
            actor: actor.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests;
