//! What is known of a task or a run of a loop, as the queue has it.
//!
//! The task of a workflow's goal is told by its goal; here it is one of many.

use kapi_agent::agent::AgentKind;
use kapi_core::text::one_line;
use kapi_task::rules::task::{End, KernelTask, LoopPhase};
use kapi_task::rules::task_state::KernelTaskState;
use kapi_wire::kernel::task::duration_ms;

use crate::live_view::facts::{
    Account, Mood, SubjectFacts, SubjectVerbs, TaskFacts, TaskMark, command_line,
};

/// Returns what is known of a task at a time; `waits` is what it waits for.
pub(crate) fn facts(task: &KernelTask, waits: Option<String>, now_ms: i64) -> SubjectFacts {
    let request = &task.request;
    let of_loop = task.loop_run();
    let mut details = vec![("agent", request.agent.clone())];
    if let Some(run) = of_loop {
        details.push(("loop", run.name().to_string()));
    }
    let timeout_ms = Some(request.timeout_ms).filter(|ms| *ms > 0);
    SubjectFacts {
        id: task.id.to_string(),
        reference: task.id.to_string(),
        kind: if of_loop.is_some() { "loop" } else { "task" },
        title: one_line(&request.description),
        status: match task.state {
            KernelTaskState::Pending => "queued",
            KernelTaskState::Leased | KernelTaskState::Running => "running",
            KernelTaskState::Completed => "completed",
            KernelTaskState::Failed => "failed",
            KernelTaskState::Cancelled => "cancelled",
        }
        .to_owned(),
        mood: match task.state {
            KernelTaskState::Pending => Mood::Waiting,
            KernelTaskState::Leased | KernelTaskState::Running => Mood::Working,
            KernelTaskState::Completed => Mood::Good,
            KernelTaskState::Failed | KernelTaskState::Cancelled => Mood::Bad,
        },
        phase: phase(task),
        why: failure(task).or(waits).or_else(|| task.retry_cause.clone()),
        details,
        account: Account {
            used: task.usage,
            tokens_max: request.budget.tokens,
            usd_micros_max: request.budget.usd_micros,
            worked_ms: task.started_at_ms.map_or(0, |_| duration_ms(task, now_ms)),
            work_max_ms: request.budget.time_ms.or(timeout_ms),
            ..Account::default()
        },
        tasks: phases(task),
        verbs: verbs(task),
        ..SubjectFacts::default()
    }
}

fn verbs(task: &KernelTask) -> SubjectVerbs {
    let reference = task.id.to_string();
    if task.state.is_ended() {
        return SubjectVerbs {
            diff: Some(reference),
            ..SubjectVerbs::default()
        };
    }
    let is_running = task.state == KernelTaskState::Running;
    let agent = AgentKind::parse(&task.request.agent);
    // A profile's agent is known once it is asked.
    let hears = is_running && agent.map_or(true, |agent| agent.takes_turns());
    let say = command_line(&["say", &reference, "--"]);
    SubjectVerbs {
        say: say.filter(|_| hears),
        cancel: command_line(&["cancel", &reference, "--yes"]),
        ..SubjectVerbs::default()
    }
}

fn failure(task: &KernelTask) -> Option<String> {
    match &task.report.as_deref()?.end {
        End::Failed(failure) => Some(failure.message.clone()),
        End::Skipped { reason } => Some(reason.clone()),
        End::Completed | End::Cancelled => None,
    }
}

fn phase(task: &KernelTask) -> String {
    match (task.state, task.phase()) {
        (KernelTaskState::Leased, _) => "starting".to_owned(),
        (KernelTaskState::Running, Some(phase)) => phase.name().to_owned(),
        (KernelTaskState::Running, None) => "working".to_owned(),
        (
            KernelTaskState::Pending
            | KernelTaskState::Completed
            | KernelTaskState::Failed
            | KernelTaskState::Cancelled,
            _,
        ) => String::new(),
    }
}

/// Returns the phases of a loop's run, each as a part of its plan.
fn phases(task: &KernelTask) -> Vec<TaskFacts> {
    if task.loop_run().is_none() {
        return Vec::new();
    }
    let current = task.phase();
    let phases = LoopPhase::ALL.iter().enumerate();
    phases
        .map(|(at, phase)| TaskFacts {
            mark: if at < task.phases.len() {
                TaskMark::Done
            } else if current == Some(*phase) && task.state == KernelTaskState::Running {
                TaskMark::Current
            } else {
                TaskMark::Open
            },
            text: phase.name().to_owned(),
        })
        .collect()
}
