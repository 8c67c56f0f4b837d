//! What a worker may do with a task that it holds, and what becomes of a task whose worker is lost.

use std::collections::BTreeSet;

use kapi_core::evidence::EvidenceFile;
use kapi_core::task_id::{Holder, TaskId};
use kapi_core::usage::Usage;

use crate::rules::command::Hold;
use crate::rules::decide::{Answer, Decided, done, later, next_fence};
use crate::rules::denied::Denied;
use crate::rules::event::{KernelEvent, Setback};
use crate::rules::state::Kernel;
use crate::rules::task::{End, Failure, FailureKind, Phase, Report, Task};
use crate::rules::task_state::State;

/// How often a task's worker may be lost before the task is taken for the reason.
pub(super) const LOSSES_MAX: u32 = 10;

/// Returns the task, if the lease that is named still holds.
pub(super) fn held(kernel: &Kernel, hold: Hold) -> Result<&Task, Denied> {
    let task = kernel
        .task(hold.task)
        .ok_or(Denied::NoTask { task: hold.task })?;
    let held = task.lease.as_ref().map(|lease| lease.fence);
    if held == Some(hold.fence) {
        return Ok(task);
    }
    Err(Denied::Fenced {
        task: hold.task,
        fence: hold.fence,
        held,
    })
}

/// Gives a worker the next task it may work on, if there is one.
pub(super) fn claim(
    kernel: &Kernel,
    task: Option<TaskId>,
    holder: &Holder,
    expires_at_ms: i64,
) -> Decided {
    let Some(task) = task else {
        return Decided {
            events: Vec::new(),
            answer: Answer::Nothing,
        };
    };
    let fence = next_fence(kernel);
    let event = KernelEvent::Claimed {
        task,
        holder: holder.clone(),
        fence,
        expires_at_ms,
    };
    Decided {
        events: vec![event],
        answer: Answer::Claimed(task, fence),
    }
}

pub(super) fn beat(
    kernel: &Kernel,
    hold: Hold,
    expires_at_ms: i64,
    usage: Usage,
) -> Result<Decided, Denied> {
    held(kernel, hold)?;
    Ok(done(vec![KernelEvent::Beat {
        task: hold.task,
        expires_at_ms,
        usage,
    }]))
}

pub(super) fn begin(kernel: &Kernel, hold: Hold) -> Result<Decided, Denied> {
    let task = held(kernel, hold)?;
    if task.state != State::Leased || task.cancelling.is_some() {
        return Err(Denied::WrongState {
            task: hold.task,
            state: task.state,
            action: "begun",
        });
    }
    Ok(done(vec![KernelEvent::Begun { task: hold.task }]))
}

pub(super) fn phase(kernel: &Kernel, hold: Hold, asked: Phase) -> Result<(), Denied> {
    let task = held(kernel, hold)?;
    let now = task.phase();
    if task.state == State::Running && now == Some(asked) {
        return Ok(());
    }
    Err(Denied::WrongPhase {
        task: hold.task,
        now,
        asked,
    })
}

pub(super) fn record_run(
    kernel: &Kernel,
    hold: Hold,
    run: &str,
    files: &[EvidenceFile],
) -> Result<Decided, Denied> {
    held(kernel, hold)?;
    Ok(done(vec![KernelEvent::RunRecorded {
        task: hold.task,
        run: run.to_owned(),
        files: files.to_vec(),
    }]))
}

pub(super) fn finish(
    kernel: &Kernel,
    hold: Hold,
    report: &Report,
    now_ms: i64,
) -> Result<Decided, Denied> {
    let task = held(kernel, hold)?;
    if task.state != State::Running && report.end != End::Cancelled {
        return Err(Denied::WrongState {
            task: hold.task,
            state: task.state,
            action: "finished",
        });
    }
    let retry = &task.request.retry;
    if let End::Failed(failure) = &report.end
        && failure.kind.is_worth_a_retry()
        && task.retries < retry.times
        && task.cancelling.is_none()
    {
        return Ok(done(vec![KernelEvent::Requeued {
            task: hold.task,
            not_before_ms: later(now_ms, retry.pause_ms(task.retries.saturating_add(1))),
            cause: Setback::Retry,
            why: failure.message.clone(),
            usage: report.usage,
        }]));
    }
    Ok(done(vec![KernelEvent::Ended {
        task: hold.task,
        report: Box::new(report.clone()),
    }]))
}

pub(super) fn give_back(
    kernel: &Kernel,
    hold: Hold,
    why: &str,
    usage: &Usage,
    not_before_ms: i64,
) -> Result<Decided, Denied> {
    let task = held(kernel, hold)?;
    let event = if task.cancelling.is_some() {
        cancelled(task, *usage)
    } else {
        KernelEvent::Requeued {
            task: hold.task,
            not_before_ms,
            cause: Setback::GivenBack,
            why: why.to_owned(),
            usage: *usage,
        }
    };
    Ok(Decided {
        events: vec![event],
        answer: Answer::Done,
    })
}

/// Takes tasks, and the lead, from workers whose lease has run out or who are known to be gone.
pub(super) fn expire(kernel: &Kernel, gone: &BTreeSet<Holder>, now_ms: i64) -> Vec<KernelEvent> {
    let is_over =
        |holder: &Holder, expires_at_ms: i64| expires_at_ms <= now_ms || gone.contains(holder);
    let is_lost = |task: &&Task| {
        let lease = task.lease.as_ref();
        lease.is_some_and(|lease| is_over(&lease.holder, lease.expires_at_ms))
    };
    let tasks = kernel.tasks.values().filter(is_lost);
    let mut events: Vec<KernelEvent> = tasks.map(|task| lost(task, now_ms)).collect();
    let leader = kernel.leader.as_ref();
    if leader.is_some_and(|leader| is_over(&leader.holder, leader.expires_at_ms)) {
        // Whoever leads next does so by a lease of its own, though it may have the same name.
        events.push(KernelEvent::Resigned {});
    }
    events
}

fn lost(task: &Task, now_ms: i64) -> KernelEvent {
    if task.cancelling.is_some() {
        return cancelled(task, Usage::default());
    }
    let cause = match task.state {
        State::Running => Setback::Lost,
        State::Pending | State::Leased | State::Completed | State::Failed | State::Cancelled => {
            Setback::LostBefore
        }
    };
    if cause == Setback::Lost && task.losses >= LOSSES_MAX {
        let failure = Failure {
            kind: FailureKind::Lost,
            message: format!("its worker died {} times", task.losses + 1),
            exit_code: None,
        };
        return KernelEvent::Ended {
            task: task.id,
            report: Box::new(Report::of(End::Failed(failure))),
        };
    }
    let holder = task.lease.as_ref().map(|lease| lease.holder.to_string());
    KernelEvent::Requeued {
        task: task.id,
        not_before_ms: now_ms,
        cause,
        why: format!("{} died", holder.unwrap_or_default()),
        usage: Usage::default(),
    }
}

fn cancelled(task: &Task, usage: Usage) -> KernelEvent {
    let mut report = Report::of(End::Cancelled);
    report.usage = usage;
    KernelEvent::Ended {
        task: task.id,
        report: Box::new(report),
    }
}
