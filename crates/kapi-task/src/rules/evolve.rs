//! The fold of the kernel: what was recorded is true, so no rule is applied and nothing fails.

use std::collections::BTreeSet;

use kapi_core::task_id::{KernelTaskId, LoopName};
use kapi_core::usage::Usage;

use super::loop_run::RunTrigger;
use super::task_state::KernelTaskState;
use crate::rules::event::{KernelEvent, RetryCause};
use crate::rules::request::KernelRequest;
use crate::rules::state::{KernelState, KeyEntry, LastRun, LastSkip, LeaderRecord, TaskTotals};
use crate::rules::task::{
    AttemptReport, End, FailureKind, KernelTask, Lease, LoopPhase, PhaseRecord, PhaseStatus,
};

/// Requests after which keys that have run out are forgotten.
const FORGET_EVERY: u64 = 64;
/// Groups that are remembered after they were served.
const SERVED_MAX: usize = 1_024;

/// Applies one fact that was recorded at `at_ms`.
pub fn evolve(kernel: &mut KernelState, event: &KernelEvent, at_ms: i64) {
    match event {
        KernelEvent::Submitted { task, request } => submitted(kernel, *task, request, at_ms),
        KernelEvent::Claimed {
            task,
            holder,
            fence,
            expires_at_ms,
        } => {
            let lease = Lease {
                holder: holder.clone(),
                fence: *fence,
                acquired_at_ms: at_ms,
                heartbeat_at_ms: at_ms,
                expires_at_ms: *expires_at_ms,
            };
            claimed(kernel, *task, lease);
        }
        KernelEvent::Begun { task }
        | KernelEvent::Beat { task, .. }
        | KernelEvent::CancelAsked { task, .. }
        | KernelEvent::Requeued { task, .. } => {
            if let Some(task) = kernel.tasks.get_mut(task) {
                evolve_task(task, event, at_ms);
                if let KernelEvent::Beat { usage, .. } | KernelEvent::Requeued { usage, .. } = event
                {
                    kernel.grants(usage, at_ms);
                }
            }
        }
        KernelEvent::PhaseEnded {
            task,
            phase,
            status,
            detail,
            report,
        } => {
            let record = PhaseRecord {
                phase: *phase,
                status: *status,
                detail: detail.clone(),
                at_ms,
            };
            phase_ended(kernel, *task, record, report.as_deref());
        }
        KernelEvent::Ended { task, report } => ended(kernel, *task, report, at_ms),
        KernelEvent::LoopSkipped { .. }
        | KernelEvent::LoopSwitched { .. }
        | KernelEvent::LoopSeen { .. } => evolve_loop(kernel, event, at_ms),
        KernelEvent::Led {
            holder,
            fence,
            expires_at_ms,
        } => {
            kernel.last_fence = (*fence).max(kernel.last_fence);
            kernel.leader = Some(LeaderRecord {
                holder: holder.clone(),
                fence: *fence,
                expires_at_ms: *expires_at_ms,
            });
        }
        KernelEvent::Resigned {} => kernel.leader = None,
        KernelEvent::RunRecorded { .. } => {}
    }
}

/// Applies a fact about a task that stays where it is.
fn evolve_task(task: &mut KernelTask, event: &KernelEvent, at_ms: i64) {
    if let KernelEvent::Begun { .. } = event {
        task.state = KernelTaskState::Running;
        task.attempts = task.attempts.saturating_add(1);
        task.started_at_ms.get_or_insert(at_ms);
    }
    if let KernelEvent::Beat {
        expires_at_ms,
        usage,
        ..
    } = event
    {
        task.usage.add(usage);
        if let Some(lease) = &mut task.lease {
            lease.heartbeat_at_ms = at_ms;
            lease.expires_at_ms = *expires_at_ms;
        }
    }
    if let KernelEvent::CancelAsked { why, .. } = event {
        task.cancelling = Some(why.clone());
    }
    if let KernelEvent::Requeued {
        not_before_ms,
        cause,
        why,
        usage,
        ..
    } = event
    {
        requeue(task, *not_before_ms, *cause, why, usage);
    }
}

/// Applies a fact about a loop.
fn evolve_loop(kernel: &mut KernelState, event: &KernelEvent, at_ms: i64) {
    if let KernelEvent::LoopSkipped {
        name,
        trigger,
        reason,
        is_refused,
    } = event
    {
        fired(kernel, name, trigger);
        let state = kernel.loops.entry(name.clone()).or_default();
        state.last_skip = Some(LastSkip {
            at_ms,
            reason: reason.clone(),
            is_refused: *is_refused,
        });
    }
    if let KernelEvent::LoopSwitched { name, is_enabled } = event {
        let state = kernel.loops.entry(name.clone()).or_default();
        state.is_enabled = Some(*is_enabled);
        if *is_enabled {
            // What was due while it was off is not made up for.
            state.fired_at_ms = state.fired_at_ms.max(Some(at_ms));
        }
    }
    if let KernelEvent::LoopSeen { name, mark } = event {
        let state = kernel.loops.entry(name.clone()).or_default();
        state.seen_at_ms.get_or_insert(at_ms);
        state.mark.clone_from(mark);
    }
}

fn claimed(kernel: &mut KernelState, id: KernelTaskId, lease: Lease) {
    kernel.last_fence = lease.fence.max(kernel.last_fence);
    if let Some(task) = kernel.tasks.get_mut(&id) {
        kernel
            .served
            .insert(task.request.origin.group(), lease.fence);
        task.state = KernelTaskState::Leased;
        task.lease = Some(lease);
    }
    forget_served(kernel);
}

fn submitted(kernel: &mut KernelState, id: KernelTaskId, request: &KernelRequest, at_ms: i64) {
    kernel.last_task = kernel.last_task.max(id.number());
    if id.number().is_multiple_of(FORGET_EVERY) {
        let tasks = &kernel.tasks;
        kernel
            .keys
            .retain(|_, entry| entry.expires_at_ms > at_ms || tasks.contains_key(&entry.task));
    }
    if let Some(key) = &request.key {
        let ttl_ms = i64::try_from(key.ttl_ms).unwrap_or(i64::MAX);
        let entry = KeyEntry {
            task: id,
            expires_at_ms: at_ms.saturating_add(ttl_ms),
        };
        kernel.keys.insert(key.text.clone(), entry);
    }
    if let Some(run) = &request.loop_run {
        fired(kernel, run.name(), &run.trigger);
    }
    let task = KernelTask {
        id,
        request: request.clone(),
        state: KernelTaskState::Pending,
        submitted_at_ms: at_ms,
        not_before_ms: at_ms,
        attempts: 0,
        losses: 0,
        retries: 0,
        lease: None,
        started_at_ms: None,
        ended_at_ms: None,
        usage: Usage::default(),
        cancelling: None,
        retry_cause: None,
        phases: Vec::new(),
        report: None,
    };
    let detail = task
        .loop_run()
        .map(|run| (run.trigger.kind(), run.trigger.source()));
    kernel.tasks.insert(id, task);
    if let Some((kind, source)) = detail {
        let record = PhaseRecord {
            phase: LoopPhase::Trigger,
            status: PhaseStatus::Ok,
            detail: Some(source.map_or_else(|| kind.to_owned(), |it| format!("{kind}: {it}"))),
            at_ms,
        };
        phase_ended(kernel, id, record, None);
    }
}

/// Notes that an occurrence of what sets a loop off was dealt with.
fn fired(kernel: &mut KernelState, name: &LoopName, trigger: &RunTrigger) {
    let state = kernel.loops.entry(name.clone()).or_default();
    match trigger {
        RunTrigger::Cron { due_at_ms } => {
            state.fired_at_ms = state.fired_at_ms.max(Some(*due_at_ms));
        }
        RunTrigger::Event { mark, .. } => state.mark = Some(mark.clone()),
        RunTrigger::Manual { .. } | RunTrigger::Retrigger { .. } => {}
    }
}

fn phase_ended(
    kernel: &mut KernelState,
    id: KernelTaskId,
    record: PhaseRecord,
    report: Option<&AttemptReport>,
) {
    if let Some(task) = kernel.tasks.get_mut(&id) {
        task.phases.push(record);
        if let Some(report) = report {
            task.report = Some(Box::new(report.clone()));
        }
    }
}

fn requeue(task: &mut KernelTask, not_before_ms: i64, cause: RetryCause, why: &str, usage: &Usage) {
    task.state = KernelTaskState::Pending;
    task.not_before_ms = not_before_ms;
    task.lease = None;
    task.retry_cause = Some(why.to_owned());
    task.usage.add(usage);
    match cause {
        RetryCause::Retry => {
            task.retries = task.retries.saturating_add(1);
            // The next attempt is told of this one, so its prompt is made anew.
            task.phases
                .retain(|record| record.phase < LoopPhase::Context);
            task.report = None;
        }
        RetryCause::Lost => task.losses = task.losses.saturating_add(1),
        RetryCause::GivenBack | RetryCause::LostBefore => {}
    }
}

fn ended(kernel: &mut KernelState, id: KernelTaskId, report: &AttemptReport, at_ms: i64) {
    let Some(mut task) = kernel.tasks.remove(&id) else {
        return;
    };
    task.state = match &report.end {
        End::Completed | End::Skipped { .. } => KernelTaskState::Completed,
        End::Failed(_) => KernelTaskState::Failed,
        End::Cancelled => KernelTaskState::Cancelled,
    };
    task.lease = None;
    task.ended_at_ms = Some(at_ms);
    task.usage.add(&report.usage);
    kernel.grants(&report.usage, at_ms);
    task.report = Some(Box::new(report.clone()));
    let was_skipped = matches!(report.end, End::Skipped { .. });
    if task.state != KernelTaskState::Completed || (was_skipped && is_by_hand(&task)) {
        // A request that failed, or came to nothing, may be made again at once.
        forget_key(kernel, &task);
    }
    count(&mut kernel.totals, task.state);
    if let Some(run) = task.loop_run() {
        let state = kernel.loops.entry(run.name().clone()).or_default();
        count(&mut state.totals, task.state);
        state.last_run = Some(LastRun {
            task: id,
            started_at_ms: task.started_at_ms.unwrap_or(task.submitted_at_ms),
            ended_at_ms: at_ms,
            state: task.state,
            was_skipped,
            commit: report.work.commit.clone(),
            start: report.work.start.clone(),
        });
        if has_worked(&task, &report.end) {
            state.worked_at_ms = Some(at_ms);
        }
        if report.handoff.is_some() {
            state.handoff.clone_from(&report.handoff);
        }
        for (name, value) in &report.metrics {
            state.metrics.insert(name.clone(), value.clone());
        }
    }
    kernel.ended.insert(id, task);
}

/// Tells whether a run has worked on anything: one that had nothing to do, or whose agent could not be
/// started, has not.
fn has_worked(run: &KernelTask, end: &End) -> bool {
    let was_agents = |record: &PhaseRecord| {
        record.phase == LoopPhase::Execute && record.status == PhaseStatus::Ok
    };
    match end {
        End::Skipped { .. } => false,
        End::Failed(failure) if failure.kind == FailureKind::NotLaunched => {
            run.phases.iter().any(was_agents)
        }
        End::Completed | End::Failed(_) | End::Cancelled => true,
    }
}

/// Tells whether a run was asked for by hand. What an instant or a delivery triggers, it triggers once.
fn is_by_hand(task: &KernelTask) -> bool {
    let run = task.loop_run();
    run.is_some_and(|run| matches!(run.trigger, RunTrigger::Manual { .. }))
}

fn forget_key(kernel: &mut KernelState, task: &KernelTask) {
    let Some(key) = &task.request.key else {
        return;
    };
    let is_its_own = |entry: &KeyEntry| entry.task == task.id;
    if kernel.keys.get(&key.text).is_some_and(is_its_own) {
        kernel.keys.remove(&key.text);
    }
}

const fn count(totals: &mut TaskTotals, state: KernelTaskState) {
    let total = match state {
        KernelTaskState::Completed => &mut totals.completed,
        KernelTaskState::Failed => &mut totals.failed,
        KernelTaskState::Cancelled => &mut totals.cancelled,
        KernelTaskState::Pending | KernelTaskState::Leased | KernelTaskState::Running => return,
    };
    *total = total.saturating_add(1);
}

/// Keeps the memory of who was served short: a group without tasks begins anew.
fn forget_served(kernel: &mut KernelState) {
    if kernel.served.len() <= SERVED_MAX {
        return;
    }
    let alive: BTreeSet<String> = kernel
        .tasks
        .values()
        .map(|task| task.request.origin.group())
        .collect();
    kernel.served.retain(|group, _| alive.contains(group));
}
