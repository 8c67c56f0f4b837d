//! What a worker may do with a task that it holds, and what becomes of a task whose worker is lost.

use std::collections::BTreeSet;

use kapi_core::evidence::EvidenceFile;
use kapi_core::task_id::{Holder, KernelTaskId};
use kapi_core::usage::Usage;

use crate::rules::command::Hold;
use crate::rules::decide::{KernelDecision, KernelReply, done, later, next_fence};
use crate::rules::denied::KernelDenial;
use crate::rules::event::{KernelEvent, RetryCause};
use crate::rules::state::KernelState;
use crate::rules::task::{
    AttemptFailure, AttemptReport, End, FailureKind, KernelTask, LOSSES_MAX, LoopPhase,
};
use crate::rules::task_state::KernelTaskState;

/// How often a worker may be lost, too, that only settles a task.
pub(super) const SETTLING_LOSSES_MAX: u32 = 3;

/// Returns the task, if the lease that is named still holds.
pub(super) fn held(kernel: &KernelState, hold: Hold) -> Result<&KernelTask, KernelDenial> {
    let task = kernel
        .task(hold.task)
        .ok_or(KernelDenial::NoTask { task: hold.task })?;
    let held = task.lease.as_ref().map(|lease| lease.fence);
    if held == Some(hold.fence) {
        return Ok(task);
    }
    Err(KernelDenial::Fenced {
        task: hold.task,
        fence: hold.fence,
        held,
    })
}

/// Gives a worker the next task it may work on, if there is one.
pub(super) fn claim(
    kernel: &KernelState,
    task: Option<KernelTaskId>,
    holder: &Holder,
    expires_at_ms: i64,
) -> KernelDecision {
    let Some(task) = task else {
        return KernelDecision {
            events: Vec::new(),
            answer: KernelReply::Nothing,
        };
    };
    let fence = next_fence(kernel);
    let event = KernelEvent::Claimed {
        task,
        holder: holder.clone(),
        fence,
        expires_at_ms,
    };
    KernelDecision {
        events: vec![event],
        answer: KernelReply::Claimed(task, fence),
    }
}

pub(super) fn beat(
    kernel: &KernelState,
    hold: Hold,
    expires_at_ms: i64,
    usage: Usage,
) -> Result<KernelDecision, KernelDenial> {
    held(kernel, hold)?;
    Ok(done(vec![KernelEvent::Beat {
        task: hold.task,
        expires_at_ms,
        usage,
    }]))
}

pub(super) fn begin(kernel: &KernelState, hold: Hold) -> Result<KernelDecision, KernelDenial> {
    let task = held(kernel, hold)?;
    let is_unwanted = task.cancelling.is_some() && !task.is_only_settled();
    if task.state != KernelTaskState::Leased || is_unwanted {
        return Err(KernelDenial::WrongState {
            task: hold.task,
            state: task.state,
            action: "begun",
        });
    }
    Ok(done(vec![KernelEvent::Begun { task: hold.task }]))
}

pub(super) fn phase(
    kernel: &KernelState,
    hold: Hold,
    asked: LoopPhase,
) -> Result<(), KernelDenial> {
    let task = held(kernel, hold)?;
    let now = task.phase();
    if task.state == KernelTaskState::Running && now == Some(asked) {
        return Ok(());
    }
    Err(KernelDenial::WrongPhase {
        task: hold.task,
        now,
        asked,
    })
}

pub(super) fn record_run(
    kernel: &KernelState,
    hold: Hold,
    run: &str,
    files: &[EvidenceFile],
) -> Result<KernelDecision, KernelDenial> {
    held(kernel, hold)?;
    Ok(done(vec![KernelEvent::RunRecorded {
        task: hold.task,
        run: run.to_owned(),
        files: files.to_vec(),
    }]))
}

pub(super) fn finish(
    kernel: &KernelState,
    hold: Hold,
    report: &AttemptReport,
    now_ms: i64,
) -> Result<KernelDecision, KernelDenial> {
    let task = held(kernel, hold)?;
    if task.state != KernelTaskState::Running && report.end != End::Cancelled {
        return Err(KernelDenial::WrongState {
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
            cause: RetryCause::Retry,
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
    kernel: &KernelState,
    hold: Hold,
    why: &str,
    usage: &Usage,
    not_before_ms: i64,
) -> Result<KernelDecision, KernelDenial> {
    let task = held(kernel, hold)?;
    let event = if task.cancelling.is_some() {
        cancelled(task, *usage)
    } else {
        KernelEvent::Requeued {
            task: hold.task,
            not_before_ms,
            cause: RetryCause::GivenBack,
            why: why.to_owned(),
            usage: *usage,
        }
    };
    Ok(KernelDecision {
        events: vec![event],
        answer: KernelReply::Done,
    })
}

/// Takes tasks, and the lead, from workers whose lease has run out or who are known to be gone.
pub(super) fn expire(
    kernel: &KernelState,
    gone: &BTreeSet<Holder>,
    now_ms: i64,
) -> Vec<KernelEvent> {
    let is_over =
        |holder: &Holder, expires_at_ms: i64| expires_at_ms <= now_ms || gone.contains(holder);
    let is_lost = |task: &&KernelTask| {
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

fn lost(task: &KernelTask, now_ms: i64) -> KernelEvent {
    let cause = match task.state {
        KernelTaskState::Running => RetryCause::Lost,
        KernelTaskState::Pending
        | KernelTaskState::Leased
        | KernelTaskState::Completed
        | KernelTaskState::Failed
        | KernelTaskState::Cancelled => RetryCause::LostBefore,
    };
    let is_lost_too_often =
        cause == RetryCause::Lost && task.losses >= LOSSES_MAX + SETTLING_LOSSES_MAX;
    if task.cancelling.is_some() && (is_lost_too_often || !task.is_unsettled()) {
        return cancelled(task, Usage::default());
    }
    if is_lost_too_often {
        let failure = AttemptFailure {
            kind: FailureKind::Lost,
            message: format!("its worker died {} times", task.losses + 1),
            hint: None,
            exit_code: None,
        };
        return KernelEvent::Ended {
            task: task.id,
            report: Box::new(AttemptReport::of(End::Failed(failure))),
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

fn cancelled(task: &KernelTask, usage: Usage) -> KernelEvent {
    let mut report = AttemptReport::of(End::Cancelled);
    report.usage = usage;
    KernelEvent::Ended {
        task: task.id,
        report: Box::new(report),
    }
}
