//! One attempt's agent: launched in a sandbox of its own, metered, and what it left.
//!
//! How it ended is put into the words of the kernel; work that was begun is kept whatever the end.
//! Knows no verify command and no phase.

use std::path::{Path, PathBuf};

use kapi_core::agent_end::AgentEnd;
use kapi_core::isolation::NetworkMode;
use kapi_core::task_id::KernelTaskId;
use kapi_launch::bounds::{Bounds, RemoteUse};
use kapi_launch::context::LaunchHandlers;
use kapi_launch::paths::{SandboxId, SandboxPaths};
use kapi_launch::plan::{BranchPlan, Conduct, LaunchPlan, ModeChoice, Push};
use kapi_launch::result::LaunchResult;
use kapi_launch::{reduce, run};
use kapi_machine::watch::{Activity, EffectWatch, RoomQuery};
use kapi_run::host_grants::HostGrants;
use kapi_run::spending;
use kapi_run::spending::turn::BookedTurn;
use kapi_run::spending::usage_meter::UsageLimits;
use kapi_run::spending::{BookedResult, SpendingStop};
use kapi_spend::rules::account::ModelRole;
use kapi_status::rules::mapping::Mapping;
use kapi_sys::process;

use super::allowance::{TIMED_OUT, seconds};
use super::attempt::TaskAttempt;
use super::prompt::{self, PromptParts};
use super::ruling::Ruling;
use super::setup::{Deadline, Setup};
use super::{Performer, ending, held, leavings};
use crate::rules::task::{
    AttemptChanges, AttemptFailure, End, FailureKind, KernelTask, OUTPUT_BYTES_MAX,
};

/// Stands where an output was cut.
const CUT: &str = "\n[output truncated; see the transcript for all of it]";
/// Paths that a failure names.
const PATHS_SHOWN: usize = 5;

/// An agent that has ended.
#[derive(Debug)]
pub(super) struct AttemptRun {
    /// How.
    pub(super) end: End,
    /// Its exit code.
    pub(super) exit_code: i32,
    /// Its last words.
    pub(super) output: String,
    /// What it changed.
    pub(super) work: AttemptChanges,
    /// The commit it began at.
    pub(super) start: Option<String>,
    /// What is left of its sandbox until its end is recorded.
    pub(super) sandbox: Option<EndedSandbox>,
}

/// The sandbox of an agent that has ended.
#[derive(Debug)]
pub(super) struct EndedSandbox {
    location: SandboxPaths,
    status: PathBuf,
    /// Whether it holds what no commit takes, for a person to look at.
    is_kept: bool,
}

/// Runs the agent of an attempt to its end, within the budget of its task and the caps on spending.
pub(super) fn run(
    performer: &Performer<'_>,
    attempt: TaskAttempt<'_>,
    setup: &Setup,
    ruling: &Ruling,
    words: &PromptParts<'_>,
) -> Result<AttemptRun, End> {
    let (task, allowance) = (attempt.task, attempt.allowance);
    let prompt = prompt::compose(performer, task, setup, ruling.network, words)?;
    let id = Performer::sandbox_id(task, attempt.handle)?;
    let bounds = bounds(setup, ruling);
    let mut grants = performer.grants.clone();
    grants.grant = ruling.grant.clone();
    let part = allowance.meter.part();
    let notice = |activity: Activity| {
        if let Activity::Used(usage) = &activity {
            part.count(usage);
        }
        (performer.notice)(task.id, activity);
    };
    for text in &setup.notes {
        notice(Activity::Note { text: text.clone() });
    }
    let room = |_: &RoomQuery<'_>| allowance.meter.room();
    let watch = EffectWatch {
        cancel: allowance.own,
        notice: &notice,
        room: &room,
    };
    let key = attempt.booked_as("attempt");
    let (kind, settings) = (&setup.kind, &setup.settings);
    let turn = BookedTurn::of_settings(key, kind, settings, ModelRole::Executor, &performer.grants);
    let metering = attempt.reserve(performer, &turn, &watch)?;
    let deadline_ms = allowance.bounded(setup.deadline_ms)?;
    let attempt_plan = AttemptPlan {
        setup,
        network: ruling.network,
        deadline_ms,
        prompt,
    };
    let plan = attempt_plan.launch(performer, task, &id);
    let mapping = Mapping::built_in();
    let (launched, stopped) = spending::metered(&metering, &watch, |watch| {
        let stage = LaunchHandlers {
            clock: performer.project.clock,
            cancel: watch.cancel,
            notice: watch.notice,
            room: watch.room,
            stopped: &|| metering.stopped(),
            mapping: &mapping,
        };
        let launched = run::launch_within(&grants, &plan, &bounds, &stage);
        let sum = launched.as_ref().map(|launched| launched.usage);
        BookedResult {
            rest: part.settle(&sum.unwrap_or_default()),
            has_run: launched.is_ok(),
            value: launched,
        }
    });
    let now_ms = performer.project.clock.now_ms();
    let launched = launched.map_err(|error| {
        tidy(&performer.grants, &plan.location, None, now_ms, &notice);
        attempt.not_begun(&error)
    })?;
    let end = ended(attempt, setup, &launched, stopped);
    let sandbox = EndedSandbox {
        is_kept: !launched.left_out.is_empty(),
        status: launched.status_path.clone(),
        location: plan.location,
    };
    let ran = ran(&id, &bounds, launched, end);
    Ok(with_sandbox(performer, task.id, ran, sandbox))
}

/// Keeps the sandbox of an agent that ended well until that is recorded: should this worker be lost, the
/// next one finds it there.
fn with_sandbox(
    performer: &Performer<'_>,
    id: KernelTaskId,
    mut ran: AttemptRun,
    sandbox: EndedSandbox,
) -> AttemptRun {
    if sandbox.is_kept {
        leavings::keep(&sandbox.location);
    }
    if ran.end == End::Completed {
        ran.sandbox = Some(sandbox);
    } else {
        sandbox.tidy(performer, id);
    }
    ran
}

/// Returns what an agent is held within.
pub(super) fn bounds<'a>(setup: &Setup, ruling: &'a Ruling) -> Bounds<'a> {
    Bounds {
        touch: setup.touch,
        forbidden: &ruling.forbidden,
        kept: &ruling.kept,
        remote: RemoteUse::Ignored,
    }
}

/// Returns what the commit of an attempt's work says.
pub(super) fn commit_message(task: &KernelTask, setup: &Setup) -> String {
    let what = task.request.description.trim();
    format!("{what}\n\n{} by {}.\n", task.id, setup.profile.name)
}

impl EndedSandbox {
    /// Takes away what is left of it, now that its end is recorded.
    pub(super) fn tidy(&self, performer: &Performer<'_>, id: KernelTaskId) {
        let notice = |activity: Activity| (performer.notice)(id, activity);
        let now_ms = performer.project.clock.now_ms();
        if self.is_kept {
            leavings::settle(&self.location, now_ms);
            return;
        }
        let (grants, status) = (&performer.grants, Some(self.status.as_path()));
        tidy(grants, &self.location, status, now_ms, &notice);
    }
}

/// Returns how an attempt's agent ended.
fn ended(
    attempt: TaskAttempt<'_>,
    setup: &Setup,
    launched: &LaunchResult,
    stopped: Option<SpendingStop>,
) -> End {
    let time_ms = attempt.task.request.budget.time_ms;
    let is_of_budget = attempt.allowance.left_ms() == Some(0);
    let (limit_ms, deadline) =
        match time_ms.filter(|_| is_of_budget || setup.deadline == Deadline::Budget) {
            Some(time_ms) => (time_ms, Deadline::Budget),
            None => (setup.deadline_ms, Deadline::Timeout),
        };
    let how = LaunchEnd {
        process_end: launched.process_end,
        agent_end: launched.agent_end.as_ref(),
        code: launched.agent_exit_code,
        error: launched.error.as_ref().map(|error| error.message.as_str()),
    };
    let over = attempt.allowance.meter.over();
    let over = over.map(|over| format!("the budget is spent: {over}"));
    let mut end = end(
        limit_ms,
        deadline,
        &how,
        over.or(stopped.map(|stopped| stopped.text())),
    );
    if end == End::Cancelled && !attempt.handle.cancel().is_raised() {
        return ending::failed(FailureKind::Agent, "the agent was interrupted");
    }
    if let End::Failed(failure) = &mut end {
        let error = launched.error.as_ref();
        failure.hint = error.and_then(|error| error.hint.clone());
    }
    end
}

/// Takes away what is left of a sandbox whose work is all on its branch. What could not be taken
/// away now is taken away by `kapi cleanup`.
fn tidy(
    grants: &HostGrants,
    location: &SandboxPaths,
    status: Option<&Path>,
    now_ms: i64,
    notice: &dyn Fn(Activity),
) {
    if let Err(error) = reduce::reduce(grants, location, status, now_ms) {
        let text = format!("failed to {}", error.message);
        notice(Activity::Note { text });
    }
}

/// What an attempt's launch is made from.
struct AttemptPlan<'a> {
    setup: &'a Setup,
    /// What the policy lets it reach.
    network: NetworkMode,
    /// What is left of its time, in milliseconds.
    deadline_ms: u64,
    /// Everything the agent is told.
    prompt: String,
}

impl AttemptPlan<'_> {
    /// Returns the launch of the attempt in a sandbox of this name.
    fn launch(self, performer: &Performer<'_>, task: &KernelTask, id: &SandboxId) -> LaunchPlan {
        let setup = self.setup;
        let root = performer.project.layout.root();
        // It has its own name once its work is wanted.
        let branch = setup.branch.as_ref().map(|name| BranchPlan {
            name: held::name(&performer.setting.project_key, id, name),
            base: task.request.base.clone(),
            remote: "origin".to_owned(),
            remote_name: name.clone(),
            push: Push::No,
            merge: None,
            keep_commits: task.request.keep_commits,
        });
        LaunchPlan {
            location: performer
                .setting
                .sandboxes
                .location(&performer.setting.project_key, id),
            project: root.to_path_buf(),
            project_name: root
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            agent: setup.kind.clone(),
            settings: setup.settings.clone(),
            prompt: self.prompt,
            branch,
            mode: ModeChoice::Auto,
            level: performer.setting.level,
            network: self.network,
            conduct: Conduct::Headless,
            commit_message: commit_message(task, setup),
            deadline_ms: self.deadline_ms,
            // The meter of the attempt keeps to them, for its agent and everybody else.
            limits: UsageLimits::default(),
            command: Vec::new(),
        }
    }
}

/// How a launch ended, in its own words.
struct LaunchEnd<'a> {
    process_end: process::ProcessEnd,
    agent_end: Option<&'a AgentEnd>,
    code: i32,
    error: Option<&'a str>,
}

/// Returns how a launch ended, in the words of the kernel; `over` says which limit is spent.
fn end(deadline_ms: u64, deadline: Deadline, how: &LaunchEnd<'_>, over: Option<String>) -> End {
    let bad = |kind, message: String, exit_code| {
        End::Failed(AttemptFailure {
            kind,
            message,
            hint: None,
            exit_code,
        })
    };
    if let Some(over) = over {
        return bad(FailureKind::BudgetSpent, over, None);
    }
    let seconds = seconds(deadline_ms);
    match (how.process_end, how.agent_end) {
        (process::ProcessEnd::Cancelled, _) => End::Cancelled,
        (process::ProcessEnd::DeadlinePassed, _) if deadline == Deadline::Budget => {
            let message = format!("the budget is spent: it took longer than {seconds}");
            bad(FailureKind::BudgetSpent, message, Some(TIMED_OUT))
        }
        (process::ProcessEnd::DeadlinePassed, _) => {
            let message = format!("the agent was stopped after {seconds}");
            bad(FailureKind::TimedOut, message, Some(TIMED_OUT))
        }
        (_, Some(AgentEnd::Provider(failure))) => {
            let message = format!(
                "the model's provider failed ({}): {}",
                failure.kind.words(),
                failure.message
            );
            bad(FailureKind::Provider, message, None)
        }
        (_, _) => match how.error {
            Some(error) => {
                let code = (how.code != 0).then_some(how.code);
                bad(FailureKind::Agent, error.to_owned(), code)
            }
            None => End::Completed,
        },
    }
}

pub(super) fn ran(
    id: &SandboxId,
    bounds: &Bounds<'_>,
    launched: LaunchResult,
    mut end: End,
) -> AttemptRun {
    let record = &launched.record;
    let branch = record.branch.as_ref();
    let changed: Vec<String> = launched
        .changed
        .iter()
        .map(|one| one.path.clone())
        .collect();
    let has_commit = launched.commit.is_some();
    let work = AttemptChanges {
        run: Some(id.as_str().to_owned()),
        branch: branch
            .filter(|_| has_commit)
            .map(|branch| branch.name.clone()),
        commit: launched.commit.clone(),
        start: branch
            .filter(|_| has_commit)
            .map(|branch| branch.start.clone()),
        n_files: changed.len() as u64,
        ..AttemptChanges::default()
    };
    let touched: Vec<&str> = changed.iter().map(String::as_str).collect();
    let touched: Vec<&str> = touched
        .into_iter()
        .filter(|path| bounds.keeps(path))
        .collect();
    if let (Some(_), false) = (touched.first(), matches!(end, End::Cancelled)) {
        let shown: Vec<&str> = touched.iter().take(PATHS_SHOWN).copied().collect();
        end = ending::denied(format!(
            "the policy protects {}, but the agent changed them",
            shown.join(", ")
        ));
    }
    if let End::Failed(failure) = &mut end {
        failure.message.push_str(&work.left());
    }
    AttemptRun {
        sandbox: None,
        end,
        exit_code: launched.agent_exit_code,
        output: capped(launched.message),
        work,
        start: branch
            .map(|branch| branch.start.clone())
            .or_else(|| record.below.clone()),
    }
}

fn capped(mut output: String) -> String {
    let capacity = OUTPUT_BYTES_MAX - CUT.len();
    if output.len() <= capacity {
        return output;
    }
    output.truncate(output.floor_char_boundary(capacity));
    output.push_str(CUT);
    output
}

#[cfg(test)]
mod tests {
    use kapi_core::agent_end::{AgentEnd, ProviderFailure, ProviderFailureKind};
    use kapi_sys::process;

    use super::{CUT, Deadline, LaunchEnd, capped, end};
    use crate::rules::task::{End, FailureKind, OUTPUT_BYTES_MAX};

    fn ended(how: &LaunchEnd<'_>, over: Option<&str>) -> (Option<FailureKind>, String) {
        let over = over.map(str::to_owned);
        match end(1_500, Deadline::Timeout, how, over) {
            End::Failed(failure) => (Some(failure.kind), failure.message),
            End::Completed => (None, "completed".to_owned()),
            End::Skipped { .. } => (None, "skipped".to_owned()),
            End::Cancelled => (None, "cancelled".to_owned()),
        }
    }

    #[test]
    fn the_provider_is_told_from_the_agent_and_a_spent_budget_from_both() {
        let failure = AgentEnd::Provider(ProviderFailure {
            kind: ProviderFailureKind::RateLimited,
            message: "slow down".to_owned(),
            retry_after_ms: None,
        });
        let mut how = LaunchEnd {
            process_end: process::ProcessEnd::Exited(1),
            agent_end: Some(&failure),
            code: 1,
            error: Some("the agent exited with code 1"),
        };
        let (kind, text) = ended(&how, None);
        assert_eq!(kind, Some(FailureKind::Provider));
        assert_eq!(
            text,
            "the model's provider failed (rate limited): slow down"
        );
        assert_eq!(ended(&how, Some("x")).0, Some(FailureKind::BudgetSpent));
        let crashed = AgentEnd::Crashed { code: 1 };
        how.agent_end = Some(&crashed);
        assert_eq!(ended(&how, None).0, Some(FailureKind::Agent));
        how.process_end = process::ProcessEnd::DeadlinePassed;
        assert_eq!(ended(&how, None).0, Some(FailureKind::TimedOut));
        how.process_end = process::ProcessEnd::Cancelled;
        assert_eq!(ended(&how, None).1, "cancelled");
    }

    #[test]
    fn a_long_output_is_cut_where_a_character_ends_and_says_so() {
        assert_eq!(capped("short".to_owned()), "short");
        let cut = capped("\u{e9}".repeat(OUTPUT_BYTES_MAX));
        assert!(cut.len() <= OUTPUT_BYTES_MAX && cut.ends_with(CUT));
    }
}
