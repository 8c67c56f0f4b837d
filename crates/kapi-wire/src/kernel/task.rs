//! One task as others see it: the fields of the specification first, then what is known besides.

use kapi_check::rules::proof::assess::Grade;
use kapi_check::rules::proof::inspection::Inspection;
use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_task::rules::goal_drive::GoalDrive;
use kapi_task::rules::handoff::EvalResult;
use kapi_task::rules::request::TaskOrigin;
use kapi_task::rules::task::{AttemptChanges, End, FailureKind, KernelTask, PhaseRecord};
use kapi_task::rules::task_state::KernelTaskState;
use kapi_task::rules::task_terms::{Priority, TaskBudget};
use serde::Serialize;

use crate::result::UsageView;

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelTaskView {
    /// Always `task`, or `result` on the last line of a stream.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Its id, `task_17`.
    pub id: String,
    /// `queued`, `running`, `completed`, `error` or `cancelled`.
    pub status: &'static str,
    /// The agent profile.
    pub agent: String,
    /// The agent's last words; `null` before there are any.
    pub output: Option<String>,
    /// What all attempts used.
    pub usage: UsageView,
    /// What went wrong.
    pub error: Option<String>,
    /// Milliseconds since it began, or while it has not, since it was asked for; to its end.
    pub duration: u64,
    /// What it is, in one line.
    pub description: String,
    /// Where it stands, exactly: `pending`, `leased`, `running`, `completed`, `failed`, `cancelled`.
    pub state: String,
    /// What it waits for, while it is pending.
    pub waits: Option<String>,
    /// The kind of failure.
    pub error_kind: Option<FailureKind>,
    /// What to do about what went wrong.
    pub hint: Option<String>,
    /// The agent's exit code, where it failed with one.
    pub exit_code: Option<i32>,
    /// Why there was nothing to do, where a loop's condition did not hold.
    pub skipped: Option<String>,
    /// Why somebody does not want it any more, while a worker still has it.
    pub cancelling: Option<String>,
    /// When it was asked for, in milliseconds since the epoch.
    pub submitted_at_ms: i64,
    /// When its first attempt began.
    pub started_at_ms: Option<i64>,
    /// When it ended.
    pub ended_at_ms: Option<i64>,
    /// It is not worked on before this time.
    pub not_before_ms: i64,
    /// Attempts that were begun.
    pub attempts: u32,
    /// Attempts whose worker was lost.
    pub losses: u32,
    /// Attempts that failed and were followed by another.
    pub retries: u32,
    /// Why the attempt before did not come to an end.
    pub retry_cause: Option<String>,
    /// The phase it is in, while it has one.
    pub phase: Option<&'static str>,
    /// The phases that are over: whoever takes over goes on behind them.
    pub phases: Vec<PhaseRecord>,
    /// Who works on it.
    pub lease: Option<LeaseView>,
    /// How it was asked for.
    pub request: RequestView,
    /// The loop's run that it is.
    #[serde(rename = "loop")]
    pub loop_run: Option<LoopRunView>,
    /// The goal of a workflow that it drives.
    pub goal: Option<GoalDriveView>,
    /// What it changed, and where that can be seen.
    pub work: Option<WorkView>,
    /// How the evals came out.
    pub evals: Vec<EvalResult>,
    /// What a person can type next.
    pub next: Vec<String>,
}

/// Who works on a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeaseView {
    /// The worker's name.
    pub holder: String,
    /// The number of its lease.
    pub fence: u64,
    /// Since when.
    pub acquired_at_ms: i64,
    /// When it was heard of last.
    pub heartbeat_at_ms: i64,
    /// When it ends unless it is heard of before.
    pub expires_at_ms: i64,
}

/// How a task was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestView {
    /// Who asked.
    pub origin: TaskOrigin,
    /// The agent program, where one was asked for.
    pub backend: Option<String>,
    /// The model, where one was asked for.
    pub model: Option<String>,
    /// The longest an attempt may take; 0 for no limit.
    pub timeout_ms: u64,
    /// What an attempt may use.
    pub budget: TaskBudget,
    /// How urgent it is.
    pub priority: Priority,
    /// What makes it the same as another.
    pub key: Option<String>,
    /// How often a failed attempt is tried again.
    pub retries_max: u32,
    /// Commands that must pass before it counts as completed.
    pub verify: Vec<String>,
    /// Files that must stay as they are, as pathspecs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<String>,
    /// What the checks are held to, where that is not the usual.
    #[serde(skip_serializing_if = "CheckPolicy::is_plain")]
    pub checks: CheckPolicy,
    /// Whether the agent's own commits are kept.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep_commits: bool,
    /// Whose lessons it is told, besides the agent's.
    pub domain: Option<String>,
    /// How many tasks it stands below another.
    pub depth: u32,
    /// The task it repeats.
    pub retry_of: Option<String>,
}

/// A loop's run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoopRunView {
    /// The loop.
    pub name: String,
    /// `manual`, `cron`, `event` or `retrigger`.
    pub trigger: &'static str,
    /// Where that came from.
    pub source: Option<String>,
    /// How many runs set each other off before this one.
    pub depth: u32,
    /// The phase it is in; `null` when all are over.
    pub phase: Option<&'static str>,
    /// The phases that are over.
    pub phases: Vec<PhaseRecord>,
}

/// A workflow's goal that a task drives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GoalDriveView {
    /// The workflow's mode.
    pub mode: &'static str,
    /// The workflow.
    pub workflow: String,
    /// The task of its plan.
    pub task: String,
    /// The effect that asked.
    pub effect: String,
    /// The goal: its log and its account say what was done and what that used.
    pub goal: String,
    /// The machine and directory where the goal is, where several machines share the queue.
    #[serde(rename = "place")]
    pub location: Option<String>,
}

/// What a task changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkView {
    /// The run whose transcript it is.
    pub run: Option<String>,
    /// The branch that has its changes; of a task that has not ended well, the ref that keeps them.
    pub branch: Option<String>,
    /// The commit that has its changes.
    pub commit: Option<String>,
    /// How many files it changed.
    pub n_files: u64,
    /// How much its verify commands show; `null` where there are none or one fails.
    pub grade: Option<Grade>,
    /// What it does to the checks themselves.
    pub inspection: Option<Inspection>,
}

/// Returns the word of the specification for where a task stands.
#[must_use]
pub const fn status_word(state: KernelTaskState) -> &'static str {
    match state {
        KernelTaskState::Pending => "queued",
        KernelTaskState::Leased | KernelTaskState::Running => "running",
        KernelTaskState::Completed => "completed",
        KernelTaskState::Failed => "error",
        KernelTaskState::Cancelled => "cancelled",
    }
}

/// Returns how long a task has taken, in milliseconds.
#[must_use]
pub fn duration_ms(task: &KernelTask, now_ms: i64) -> u64 {
    let since_ms = task.started_at_ms.unwrap_or(task.submitted_at_ms);
    let until_ms = task.ended_at_ms.unwrap_or(now_ms);
    u64::try_from(until_ms.saturating_sub(since_ms)).unwrap_or(0)
}

impl KernelTaskView {
    /// Builds the view of a task at a time; `waits` is what it waits for, where that is known.
    #[must_use]
    pub fn of(task: &KernelTask, waits: Option<String>, now_ms: i64) -> Self {
        let report = task.report.as_deref();
        let end = report.map(|report| &report.end);
        let (failure, skipped) = match end {
            Some(End::Failed(failure)) => (Some(failure), None),
            Some(End::Skipped { reason }) => (None, Some(reason.clone())),
            Some(End::Completed | End::Cancelled) | None => (None, None),
        };
        let output = report.map(|report| report.output.clone());
        Self {
            kind: "task",
            id: task.id.to_string(),
            status: status_word(task.state),
            agent: task.request.agent.clone(),
            output: output.filter(|output| !output.is_empty()),
            usage: task.usage.into(),
            error: failure.map(|failure| failure.message.clone()),
            duration: duration_ms(task, now_ms),
            description: task.request.description.clone(),
            state: task.state.to_string(),
            waits,
            error_kind: failure.map(|failure| failure.kind),
            hint: failure.and_then(|failure| failure.hint.clone()),
            exit_code: failure.and_then(|failure| failure.exit_code),
            skipped,
            cancelling: task.cancelling.clone(),
            submitted_at_ms: task.submitted_at_ms,
            started_at_ms: task.started_at_ms,
            ended_at_ms: task.ended_at_ms,
            not_before_ms: task.not_before_ms,
            attempts: task.attempts,
            losses: task.losses,
            retries: task.retries,
            retry_cause: task.retry_cause.clone(),
            phase: task.phase().map(kapi_task::rules::task::LoopPhase::name),
            phases: task.phases.clone(),
            lease: lease(task),
            request: request(task),
            loop_run: loop_run(task),
            goal: goal(task),
            work: work(task),
            evals: report
                .map(|report| report.evals.clone())
                .unwrap_or_default(),
            next: next(task),
        }
    }

    /// Makes it the last line of a stream.
    #[must_use]
    pub const fn into_result(mut self) -> Self {
        self.kind = "result";
        self
    }
}

fn lease(task: &KernelTask) -> Option<LeaseView> {
    task.lease.as_ref().map(|lease| LeaseView {
        holder: lease.holder.to_string(),
        fence: lease.fence.0,
        acquired_at_ms: lease.acquired_at_ms,
        heartbeat_at_ms: lease.heartbeat_at_ms,
        expires_at_ms: lease.expires_at_ms,
    })
}

fn request(task: &KernelTask) -> RequestView {
    let request = &task.request;
    RequestView {
        origin: request.origin.clone(),
        backend: request.backend.clone(),
        model: request.model.clone(),
        timeout_ms: request.timeout_ms,
        budget: request.budget,
        priority: request.priority,
        key: request.key.as_ref().map(|key| key.text.clone()),
        retries_max: request.retry.times,
        verify: request.verify.clone(),
        protect: request.protect.clone(),
        checks: request.checks,
        keep_commits: request.keep_commits,
        domain: request.domain.clone(),
        depth: request.depth,
        retry_of: request.retry_of.map(|task| task.to_string()),
    }
}

fn loop_run(task: &KernelTask) -> Option<LoopRunView> {
    let run = task.loop_run()?;
    Some(LoopRunView {
        name: run.name().to_string(),
        trigger: run.trigger.kind(),
        source: run.trigger.source(),
        depth: run.depth,
        phase: task.phase().map(kapi_task::rules::task::LoopPhase::name),
        phases: task.phases.clone(),
    })
}

fn goal(task: &KernelTask) -> Option<GoalDriveView> {
    let drive = task.goal_drive()?;
    Some(GoalDriveView {
        mode: drive.mode.as_str(),
        workflow: drive.workflow.to_string(),
        task: drive.task.to_string(),
        effect: drive.effect.to_string(),
        goal: drive.goal.to_string(),
        location: drive.location.clone(),
    })
}

fn work(task: &KernelTask) -> Option<WorkView> {
    let work = &task.report.as_deref()?.work;
    Some(WorkView {
        run: work.run.clone(),
        branch: work.branch.clone(),
        commit: work.commit.clone(),
        n_files: work.n_files,
        grade: work.grade,
        inspection: work.grade.map(|_| (*work.inspection).clone()),
    })
}

/// Returns what brings in the work of a task that ended well.
fn brought_in(work: &AttemptChanges) -> Option<String> {
    match (&work.branch, &work.commit, &work.run) {
        (Some(branch), Some(_), _) => Some(format!("git merge {branch}")),
        // Without a repository that has a commit, it stays in the sandbox.
        (None, _, Some(run)) if work.n_files > 0 => Some(format!("kapi sandbox merge {run}")),
        (_, _, _) => None,
    }
}

/// Returns what a person can type next.
#[must_use]
pub fn next(task: &KernelTask) -> Vec<String> {
    let id = task.id;
    if let Some(drive) = task.goal_drive().filter(|_| task.state.is_ended()) {
        return next_of_goal(task.state, drive);
    }
    match task.state {
        KernelTaskState::Pending | KernelTaskState::Leased | KernelTaskState::Running => {
            vec![format!("kapi wait {id}"), format!("kapi cancel {id}")]
        }
        KernelTaskState::Completed => {
            let work = task.report.as_deref().map(|report| &report.work);
            work.and_then(brought_in).into_iter().collect()
        }
        KernelTaskState::Failed => {
            vec![format!("kapi log {id}"), format!("kapi task retry {id}")]
        }
        KernelTaskState::Cancelled => vec![format!("kapi task retry {id}")],
    }
}

/// What was done stands in the goal's log, and its workflow goes on with it.
fn next_of_goal(state: KernelTaskState, drive: &GoalDrive) -> Vec<String> {
    let log = format!("kapi log {:03}", drive.goal.reference());
    let resume = format!("kapi {} resume {:03}", drive.mode, drive.workflow.index());
    match state {
        KernelTaskState::Failed | KernelTaskState::Cancelled => vec![log, resume],
        KernelTaskState::Pending
        | KernelTaskState::Leased
        | KernelTaskState::Running
        | KernelTaskState::Completed => vec![log],
    }
}
