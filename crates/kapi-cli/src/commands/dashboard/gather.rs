//! What stands on the screen, put together from queue, files and locks. Changes nothing.

use kapi_core::failure::chain;
use kapi_core::task_id::LoopName;
use kapi_settings::fault::SettingsFault;
use kapi_sys::clock::Clock as _;
use kapi_task::record::queue::Queue;
use kapi_task::record::schedule;
use kapi_task::record::schedule::Schedule;
use kapi_task::rules::definition::Definition;
use kapi_task::rules::definition::trigger::LoopTrigger;
use kapi_task::rules::state::{KernelState, LoopState, is_on};
use kapi_task::rules::task_state::KernelTaskState;
use kapi_wire::kernel::dashboard::{
    DashboardLoop, DashboardView, DomainView, LeaderView, QueueView, SettingView, WarningView,
    WorkerView,
};
use kapi_wire::kernel::task::{KernelTaskView, status_word};

use crate::error::Error;
use crate::kernel::ProjectKernel;
use crate::kernel::workers::Living;

/// Tasks that are shown, the first ones.
const TASKS_MAX: usize = 20;

/// Gathers everything; `errors` are those of configuration files.
pub(super) fn gather(kernel: &ProjectKernel<'_>, errors: &[Error]) -> Result<DashboardView, Error> {
    let queue = kernel.queue()?;
    let living = kernel.living(&queue)?;
    let mut warnings: Vec<WarningView> = errors.iter().map(of_error).collect();
    let loops = kernel.loops();
    warnings.extend(kernel.policy.faults().map(|fault| WarningView {
        what: format!("{}:{}: {}", fault.file, fault.line, fault.what),
        remedy: Some(format!("{}; until then it denies everything", fault.remedy)),
    }));
    warnings.extend(loops.faults.iter().map(of_fault));
    warnings.extend(kernel.profiles.faults.iter().map(of_fault));
    warnings.extend(kernel.missing_agents(&loops).iter().map(of_fault));
    let guardrails = guardrails(kernel, &mut warnings);
    let fold = queue.kernel();
    let now_ms = kernel.context.clock.now_ms();
    let settings = kernel.settings.iter().map(|setting| SettingView {
        key: setting.key.clone(),
        value: setting.value.clone(),
        source: setting.source.to_string(),
    });
    Ok(DashboardView {
        kind: "dashboard",
        project: kernel.project.layout.root().display().to_string(),
        queue: tasks(kernel, &queue),
        leader: leader(fold, &living),
        loops: loops
            .definitions
            .iter()
            .map(|definition| loop_line(fold, definition, now_ms))
            .collect(),
        workers: living.into_iter().map(worker).collect(),
        guardrails,
        settings: settings.collect(),
        warnings,
    })
}

fn tasks(kernel: &ProjectKernel<'_>, queue: &Queue<'_>) -> QueueView {
    let fold = queue.kernel();
    let now_ms = kernel.context.clock.now_ms();
    let waits = kernel.waits(queue);
    let n_pending = fold
        .tasks
        .values()
        .filter(|task| task.state == KernelTaskState::Pending)
        .count();
    let mut shown: Vec<_> = fold.tasks.values().collect();
    // What runs stands first, then what waits, the oldest first.
    shown.sort_by_key(|task| (task.state == KernelTaskState::Pending, task.id));
    shown.truncate(TASKS_MAX);
    QueueView {
        queued: n_pending,
        running: fold.tasks.len() - n_pending,
        locations: kernel.terms.project_max,
        completed: fold.totals.completed,
        failed: fold.totals.failed,
        cancelled: fold.totals.cancelled,
        tasks: shown
            .into_iter()
            .map(|task| KernelTaskView::of(task, waits.get(&task.id).cloned(), now_ms))
            .collect(),
    }
}

fn worker(living: Living) -> WorkerView {
    WorkerView {
        holder: living.holder,
        owner: living.owner,
    }
}

fn leader(fold: &KernelState, living: &[Living]) -> Option<LeaderView> {
    let leader = fold.leader.as_ref()?;
    let holder = leader.holder.to_string();
    Some(LeaderView {
        is_alive: living.iter().any(|worker| worker.holder == holder),
        holder,
        expires_at_ms: leader.expires_at_ms,
    })
}

fn loop_line(fold: &KernelState, definition: &Definition, now_ms: i64) -> DashboardLoop {
    let nothing = LoopState::default();
    let state = fold.loops.get(&definition.name).unwrap_or(&nothing);
    let last = state.last_run.as_ref();
    DashboardLoop {
        name: definition.name.to_string(),
        description: definition.description.clone(),
        trigger: match definition.trigger {
            LoopTrigger::Manual => "manual",
            LoopTrigger::Cron { .. } => "cron",
            LoopTrigger::Event { .. } => "event",
        },
        enabled: is_on(definition, Some(state)),
        status: under_way(fold, &definition.name)
            .or_else(|| last.map(|last| last.state))
            .map_or("idle", status_word),
        last_run_at_ms: last.map(|last| last.ended_at_ms),
        last_skip: state.last_skip.as_ref().map(|skip| skip.reason.clone()),
        next_at_ms: next(definition, state, now_ms),
    }
}

/// Returns where the run of a loop stands that is the furthest.
fn under_way(fold: &KernelState, name: &LoopName) -> Option<KernelTaskState> {
    let runs = fold
        .tasks
        .values()
        .filter(|task| task.loop_run().is_some_and(|run| run.name() == name));
    runs.map(|task| task.state).max()
}

/// Returns when a loop is due next by its schedule; a schedule that cannot be read is a fault of
/// its file.
fn next(definition: &Definition, state: &LoopState, now_ms: i64) -> Option<i64> {
    if !is_on(definition, Some(state)) {
        return None;
    }
    let schedule = Schedule::of(&definition.name, &definition.trigger).ok()??;
    let since_ms = state.seen_at_ms.unwrap_or(now_ms);
    let due = schedule::due(&schedule, state.fired_at_ms, since_ms, now_ms);
    due.next.map(|firing| firing.at_ms)
}

fn guardrails(kernel: &ProjectKernel<'_>, warnings: &mut Vec<WarningView>) -> Vec<DomainView> {
    let memory = kernel.memory();
    let counts = memory.count_by_domain();
    let unread = memory.list(None).map(|listing| listing.unread);
    match unread {
        Ok(unread) => warnings.extend(unread.iter().map(|unread| WarningView {
            what: format!("{}:{}: {}", unread.file.display(), unread.line, unread.why),
            remedy: Some("fix the line, or start it with something other than `-`".to_owned()),
        })),
        Err(error) => warnings.push(WarningView {
            what: format!("failed to {}", chain(&error)),
            remedy: None,
        }),
    }
    let counts = counts.unwrap_or_default().into_iter();
    counts
        .map(|(domain, count)| DomainView {
            domain: domain.to_string(),
            accepted: count.accepted,
            proposed: count.proposed,
            rejected: count.rejected,
            expired: count.expired,
        })
        .collect()
}

/// Says what went wrong as a warning.
pub(super) fn of_error(error: &Error) -> WarningView {
    WarningView {
        what: error.message.clone(),
        remedy: error.hint.clone(),
    }
}

fn of_fault(fault: &SettingsFault) -> WarningView {
    WarningView {
        what: fault.to_string(),
        remedy: None,
    }
}
