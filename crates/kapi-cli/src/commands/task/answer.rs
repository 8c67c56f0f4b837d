//! What a verb answers about a task: a document, or a few lines.
//!
//! The same for every verb, and the exit code with it.

use kapi_core::text::{counted, shortened};
use kapi_sys::clock::Clock as _;
use kapi_task::rules::goal_drive::GoalDrive;
use kapi_task::rules::task::{AttemptFailure, End, FailureKind, KernelTask, PhaseStatus};
use kapi_task::rules::task_state::KernelTaskState;
use kapi_wire::kernel::task::{KernelTaskView, duration_ms, next, status_word};

use crate::amount;
use crate::context::Context;
use crate::exit_code::Exit;
use crate::ui::Format;

/// Characters of a description in a line.
const DESCRIPTION_CHARS_MAX: usize = 60;

/// Shows a task and returns what the process exits with.
pub(crate) fn give(context: &Context, task: &KernelTask, waits: Option<String>) -> Exit {
    match context.ui.format {
        Format::Json => {
            let now_ms = context.clock.now_ms();
            context.ui.json(&KernelTaskView::of(task, waits, now_ms));
        }
        Format::Human => lines(context, task, waits.as_deref()),
    }
    Exit::Success
}

/// Shows how a task came out, as the last line of a stream, and returns what the process exits
/// with.
pub(crate) fn give_result(context: &Context, task: &KernelTask) -> Exit {
    match context.ui.format {
        Format::Json => {
            let now_ms = context.clock.now_ms();
            context
                .ui
                .json(&KernelTaskView::of(task, None, now_ms).into_result());
        }
        Format::Human => lines(context, task, None),
    }
    exit_of(task)
}

/// Returns the exit code for how a task ended; for one that has not, that nothing came of it.
pub(crate) fn exit_of(task: &KernelTask) -> Exit {
    let denied = matches!(
        failure(task),
        Some(AttemptFailure {
            kind: FailureKind::PolicyDenied,
            ..
        })
    );
    match task.state {
        KernelTaskState::Completed => Exit::Success,
        KernelTaskState::Failed if denied => Exit::Denied,
        KernelTaskState::Pending
        | KernelTaskState::Leased
        | KernelTaskState::Running
        | KernelTaskState::Failed
        | KernelTaskState::Cancelled => Exit::NotDone,
    }
}

fn failure(task: &KernelTask) -> Option<&AttemptFailure> {
    match &task.report.as_deref()?.end {
        End::Failed(failure) => Some(failure),
        End::Completed | End::Skipped { .. } | End::Cancelled => None,
    }
}

fn lines(context: &Context, task: &KernelTask, waits: Option<&str>) {
    let ui = context.ui;
    let now_ms = context.clock.now_ms();
    ui.line(&format!("{} {}", glyph(task.state), head(task, now_ms)));
    for (key, text) in facts(task, waits) {
        ui.line(&format!("  {key:<9}{text}"));
    }
    let output = task
        .report
        .as_deref()
        .map(|report| report.output.trim_end());
    if let Some(output) = output.filter(|output| !output.is_empty()) {
        ui.line("  output");
        for line in output.lines() {
            ui.line(&format!("    {line}"));
        }
    }
    for command in next(task) {
        ui.line(&format!("  next     {command}"));
    }
}

/// Returns a task in one line.
pub(crate) fn head(task: &KernelTask, now_ms: i64) -> String {
    let mut parts = vec![
        task.id.to_string(),
        status_word(task.state).to_owned(),
        task.request.agent.clone(),
        amount::duration(duration_ms(task, now_ms)),
    ];
    if task.usage.tokens() > 0 {
        parts.push(format!("{} tokens", amount::tokens(task.usage.tokens())));
    }
    parts.extend(amount::cost(&task.usage));
    parts.push(short(&task.request.description));
    parts.join("  ")
}

/// Returns a text in one line of bounded length.
pub(crate) fn short(text: &str) -> String {
    shortened(text, DESCRIPTION_CHARS_MAX)
}

/// Returns a mark for where a task stands.
pub(crate) const fn glyph(state: KernelTaskState) -> char {
    match state {
        KernelTaskState::Pending => '○',
        KernelTaskState::Leased | KernelTaskState::Running => '▶',
        KernelTaskState::Completed => '✓',
        KernelTaskState::Failed => '✗',
        KernelTaskState::Cancelled => '×',
    }
}

fn facts(task: &KernelTask, waits: Option<&str>) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    facts.extend(waits.map(|waits| ("waits", waits.to_owned())));
    if let Some(lease) = &task.lease {
        let text = format!(
            "{}, attempt {}, lease {}",
            lease.holder, task.attempts, lease.fence
        );
        facts.push(("held by", text));
    }
    let stopping = if task.state.is_ended() {
        "because"
    } else {
        "stopping"
    };
    facts.extend(task.cancelling.as_ref().map(|why| (stopping, why.clone())));
    if task.losses + task.retries > 0 {
        let text = format!(
            "{} started, {} lost, {} failed",
            task.attempts, task.losses, task.retries
        );
        facts.push(("attempts", text));
    }
    if !task.state.is_ended() {
        facts.extend(task.retry_cause.as_ref().map(|why| ("before", why.clone())));
    }
    if let Some(run) = task.loop_run() {
        let source = run.trigger.source().map(|source| format!(" ({source})"));
        let text = format!(
            "{}, triggered by {}{}",
            run.name(),
            run.trigger.kind(),
            source.unwrap_or_default()
        );
        facts.push(("loop", text));
    }
    facts.extend(task.goal_drive().map(|drive| {
        let GoalDrive {
            mode,
            workflow,
            task,
            goal,
            ..
        } = drive;
        ("goal", format!("{goal}, for {task} of {mode} {workflow}"))
    }));
    facts.extend(task.phases.iter().map(|record| {
        let detail = record.detail.as_ref().map(|detail| format!(": {detail}"));
        let text = format!(
            "{} {}{}",
            record.phase.name(),
            phase_word(record.status),
            detail.unwrap_or_default()
        );
        ("phase", text)
    }));
    facts.extend(
        task.phase()
            .filter(|_| !task.state.is_ended())
            .map(|phase| ("phase", format!("{} …", phase.name()))),
    );
    facts.extend(ended(task));
    facts
}

fn ended(task: &KernelTask) -> Vec<(&'static str, String)> {
    let Some(report) = task.report.as_deref().filter(|_| task.state.is_ended()) else {
        return Vec::new();
    };
    let mut facts = Vec::new();
    match &report.end {
        End::Completed | End::Cancelled => {}
        End::Skipped { reason } => facts.push(("skipped", reason.clone())),
        End::Failed(failure) => {
            facts.push(("error", failure.kind.as_str().replace('_', " ")));
            facts.push(("because", failure.message.clone()));
            facts.extend(failure.hint.iter().map(|hint| ("hint", hint.clone())));
        }
    }
    facts.extend(report.evals.iter().map(|eval| {
        let word = if eval.passed { "passed" } else { "failed" };
        ("eval", format!("{} {word}", eval.name))
    }));
    let work = &report.work;
    if work.n_files > 0 {
        facts.push(("changed", counted(work.n_files, "file")));
    }
    if let (Some(branch), Some(commit)) = (&work.branch, &work.commit) {
        let name = if work.is_held_back() {
            "kept"
        } else {
            "branch"
        };
        facts.push((
            name,
            format!("{branch} at {}", kapi_core::text::short_id(commit)),
        ));
    }
    if let Some(grade) = work.grade {
        facts.push(("proof", grade.words().to_owned()));
    }
    let seen = work.inspection.lines();
    let seen = seen.iter().map(|line| line.trim_start_matches("- "));
    facts.extend(seen.map(|line| ("named", line.to_owned())));
    facts
}

const fn phase_word(status: PhaseStatus) -> &'static str {
    match status {
        PhaseStatus::Ok => "ok",
        PhaseStatus::Skipped => "skipped",
        PhaseStatus::Error => "failed",
    }
}
