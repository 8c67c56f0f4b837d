//! Running the agent of a launch, with its status kept up to date meanwhile.
//!
//! The stream of an agent we know tells its tools; any other is asked for a progress file. What it
//! says moves a word and a number of the status, never the exit code. It takes another turn where a
//! person says something more to it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kapi_agent::agent::AgentKind;
use kapi_agent::hook::instruction::PROGRESS_INSTRUCTION;
use kapi_agent::launch::LaunchPurpose;
use kapi_core::agent_end::{AgentEnd, AgentRun};
use kapi_core::isolation::SandboxLevel;
use kapi_core::text::{COMMIT_EACH_STEP, limit_text};
use kapi_core::usage::Usage;
use kapi_git::ref_name::shown_name;
use kapi_machine::watch::Activity;
use kapi_run::asking::{AgentRequest, ask_gated};
use kapi_run::confine::{SandboxConfig, WorksAt};
use kapi_run::gate::GateRules;
use kapi_run::run_dir::RunDir;
use kapi_run::shell::Listener;
use kapi_run::{confine, repository_settings};
use kapi_sandbox::spec::{Mount, MountAccess};
use kapi_status::perform::progress_file::ProgressFile;
use kapi_status::perform::watch;
use kapi_status::perform::watch::StatusSource;
use kapi_sys::cancel::{Cancel, ended_when};
use kapi_sys::clock::monotonic_ms;
use kapi_sys::process::ProcessEnd;

use super::active_launch::{ActiveLaunch, LaunchAttempt};
use super::bounds::Touch;
use super::context::LaunchHandlers;
use super::error::LaunchError;
use super::message::MessageWatch;
use super::plan::LaunchPlan;
use super::prepare::ReadyWorkspace;
use super::record::SandboxRecord;
use super::{message, ports, shown};

/// The name of the task as a file, besides the prompt.
const SPEC: &str = "task-spec.md";
/// What an agent is told whose task another process began.
const CUT_OFF: &str = "An earlier attempt at this task was cut off. What it changed is in the workspace: \
                       look at it first, and go on from there.";
/// What is noted of a message that came too late.
const NOT_HEARD: &str = "The agent did not hear your last message: it had ended. It is told when the \
                         same task is launched again.";
/// Turns that one launch may take, each for something that a person said.
const TURNS_MAX: u32 = 1_000;
/// How an agent that was killed at its time limit is reported, as `timeout` does.
const TIMED_OUT: i32 = 124;
/// How one that was interrupted is reported, as a shell does.
const INTERRUPTED: i32 = 130;
/// How one is reported that exited with 0 and all the same did not do its work.
const NOT_DONE: i32 = 5;

/// How an agent's run ended.
#[derive(Debug)]
pub(crate) struct AgentEnding {
    /// Its exit code.
    pub(crate) exit_code: i32,
    /// What it made of its turn; none where nobody reads what it says.
    pub(crate) agent_end: Option<AgentEnd>,
    /// How its process ended.
    pub(crate) process_end: ProcessEnd,
    /// Why it failed.
    pub(crate) error: Option<String>,
    /// Its last message.
    pub(crate) message: String,
    /// The isolation it had.
    pub(crate) grade: Option<String>,
    /// What it used.
    pub(crate) usage: Usage,
}

/// One turn of an agent.
struct LaunchTurn {
    /// Its number, from 1.
    number: u32,
    /// The session that goes on.
    session: Option<String>,
    /// What the person says to it.
    said: Vec<String>,
    /// The longest it may take, in milliseconds.
    left_ms: u64,
}

/// Runs the agent to its end, a turn more as long as a person says something more to it.
pub(crate) fn run(
    launch: &ActiveLaunch<'_>,
    record: &SandboxRecord,
    ready: &ReadyWorkspace,
) -> Result<AgentEnding, LaunchError> {
    let ActiveLaunch { plan, stage, .. } = *launch;
    let began_ms = monotonic_ms();
    let mut turn = LaunchTurn {
        number: 1,
        session: None,
        said: message::unheard(&plan.location)?,
        left_ms: plan.deadline_ms,
    };
    let mut used = Usage::ZERO;
    loop {
        let (mut ending, session) = take_turn(launch, record, ready, &turn)?;
        used.add(&ending.usage);
        if ending.error.is_none() && !turn.said.is_empty() {
            message::told(&plan.location, turn.said.len(), stage.clock.now_ms())?;
        }
        let said = message::unheard(&plan.location)?;
        let left_ms = plan
            .deadline_ms
            .saturating_sub(monotonic_ms().saturating_sub(began_ms));
        // Nobody raised the launch's own flag, so it was a message that cut into the turn.
        let hears = ending.error.is_none() || ending.process_end == ProcessEnd::Cancelled;
        let may_go_on = plan.agent.takes_turns() && left_ms > 0 && turn.number < TURNS_MAX;
        if said.is_empty() || !hears || !may_go_on || stage.cancel.is_raised() {
            if !said.is_empty() {
                let text = NOT_HEARD.to_owned();
                (stage.notice)(Activity::Note { text });
            }
            ending.usage = used;
            return Ok(ending);
        }
        turn = LaunchTurn {
            number: turn.number + 1,
            session,
            said,
            left_ms,
        };
    }
}

/// Runs the agent for one turn; returns how it ended, and the session that can go on.
fn take_turn(
    launch: &ActiveLaunch<'_>,
    record: &SandboxRecord,
    ready: &ReadyWorkspace,
    turn: &LaunchTurn,
) -> Result<(AgentEnding, Option<String>), LaunchError> {
    let ActiveLaunch {
        plan,
        bounds,
        stage,
        writer,
        ..
    } = *launch;
    let run_id = run_id(record);
    let run_dir = RunDir::open(&plan.location.runs(), &record.launches.to_string())?;
    let home = plan.location.home();
    let deadline = Duration::from_millis(turn.left_ms);
    let mut config = sandbox(record, ready, &home, &run_id, deadline);
    match bounds.touch {
        Touch::Workspace => {}
        Touch::Nothing => config.workspace_access = MountAccess::ReadOnly,
    }
    config.mounts.extend(task_file(plan, &run_dir)?);
    config
        .mounts
        .extend(settings_hidden(plan, ready, &run_dir)?);
    config.mounts.extend(bounds.mounts(ready, record)?);
    let asked = AgentRequest {
        kind: &plan.agent,
        settings: &plan.settings,
        prompt: &prompt(plan, record, launch.attempt, &turn.said),
        session: turn.session.as_deref(),
        turn: turn.number,
        run_id: &run_id,
        purpose: LaunchPurpose::Work,
        network: plan.network,
        scratch: &plan.location.dir(),
        env: environment(ready, record),
    };
    let used = Mutex::new(Usage::default());
    let notice = |activity: Activity| {
        match &activity {
            // A status that cannot be written now is written at the end, where it is an error.
            Activity::Tool { name, detail } => drop(writer.tool(name, detail)),
            Activity::Used(usage) => {
                let mut used = used.lock().unwrap_or_else(PoisonError::into_inner);
                used.add(usage);
            }
            Activity::Text { .. } | Activity::Verifying { .. } | Activity::Note { .. } => {}
        }
        (stage.notice)(activity);
    };
    let own = Cancel::new();
    let stage = LaunchHandlers {
        cancel: &own,
        ..*stage
    };
    let watch = stage.watch(&notice);
    let file = ProgressFile::new(&ready.written);
    let listener = Listener {
        watch: &watch,
        run_dir: &run_dir,
    };
    let rules = GateRules::Fixed(bounds.forbidden);
    let mut messages = MessageWatch::open(&plan.location, turn.said.len())?;
    let is_to_end = || launch.stage.cancel.is_raised() || messages.has_more();
    let watched = watch::during(writer, StatusSource::File(&file), || {
        ended_when(is_to_end, &own, || {
            ask_gated(launch.grants, config, &asked, rules, listener)
        })
    });
    let (run, end) = watched.value?;
    let mut used = used.into_inner().unwrap_or_else(PoisonError::into_inner);
    used.add(&run.usage);
    let session = run.session.clone();
    Ok((AgentEnding::of(run, end, used), session))
}

impl AgentEnding {
    fn of(run: AgentRun, end: ProcessEnd, usage: Usage) -> Self {
        let (exit_code, error) = judged(&run.end, end);
        Self {
            exit_code,
            agent_end: Some(run.end),
            process_end: end,
            error,
            message: run.message,
            grade: run.isolation,
            usage,
        }
    }
}

/// Returns the sandbox of a program of a launch: the workspace as its record says.
pub(crate) fn sandbox<'a>(
    record: &'a SandboxRecord,
    ready: &'a ReadyWorkspace,
    home: &'a Path,
    name: &'a str,
    deadline: Duration,
) -> SandboxConfig<'a> {
    SandboxConfig {
        name,
        level: record.level,
        workspace: &ready.host,
        workspace_access: ready.access.clone(),
        project: Some(&record.project),
        works_at: WorksAt::Workspace,
        home,
        git_view: ready.git_view.clone(),
        mounts: ready.mounts.clone(),
        deadline,
        idle: None,
    }
}

/// Writes the task down and returns what makes it a file inside, where there is an inside.
pub(crate) fn task_file(plan: &LaunchPlan, run_dir: &RunDir) -> Result<Option<Mount>, LaunchError> {
    run_dir.keep(SPEC, plan.prompt.as_bytes())?;
    let seen = task_file_seen(plan.level, run_dir);
    Ok(shown::has_layers(plan.level).then(|| confine::read_only(&run_dir.file(SPEC), &seen)))
}

/// Returns where an agent finds the task.
pub(crate) fn task_file_seen(level: SandboxLevel, run_dir: &RunDir) -> PathBuf {
    if shown::has_layers(level) {
        Path::new("/").join(SPEC)
    } else {
        run_dir.file(SPEC)
    }
}

/// Covers the project's own settings as for a goal's agent, where there is an inside.
pub(crate) fn settings_hidden(
    plan: &LaunchPlan,
    ready: &ReadyWorkspace,
    run_dir: &RunDir,
) -> Result<Vec<Mount>, LaunchError> {
    if !shown::has_layers(plan.level) {
        return Ok(Vec::new());
    }
    let place = ready
        .lower
        .place(Path::new(repository_settings::GEMINI_SETTINGS));
    let place = place.map_err(|error| LaunchError::failed(&error))?;
    let settings = Path::new(repository_settings::GEMINI_SETTINGS);
    let root = place
        .as_deref()
        .and_then(|place| place.ancestors().nth(settings.iter().count()));
    let root = root.unwrap_or(&ready.host);
    let hidden = repository_settings::settings_hidden(&plan.agent, root, run_dir)?;
    Ok(hidden)
}

/// Returns the id that every process of a launch carries.
pub(crate) fn run_id(record: &SandboxRecord) -> String {
    format!(
        "launch-{}-{}-{}",
        record.port_base, record.id, record.launches
    )
}

/// Returns the variables of everything that runs in a sandbox.
pub(crate) fn environment(
    ready: &ReadyWorkspace,
    record: &SandboxRecord,
) -> Vec<(OsString, OsString)> {
    let mut env = ready.env.clone();
    env.push((ports::VARIABLE.into(), record.port_base.to_string().into()));
    env.push(("KAPI_SANDBOX".into(), record.id.clone().into()));
    if let Some(branch) = &record.branch {
        env.push(("KAPI_BRANCH".into(), shown_name(&branch.name).into()));
    }
    env
}

fn prompt(
    plan: &LaunchPlan,
    record: &SandboxRecord,
    attempt: LaunchAttempt,
    said: &[String],
) -> String {
    let merging = record.branch.as_ref().and_then(|it| it.merging.as_ref());
    let task = match merging {
        Some(merge) => format!("{}\n\n{}", plan.prompt.trim_end(), merge.instruction()),
        None => plan.prompt.clone(),
    };
    let task = match &record.branch {
        Some(branch) if branch.keep_commits => {
            format!("{}\n\nAs you work, {COMMIT_EACH_STEP}", task.trim_end())
        }
        Some(_) | None => task,
    };
    let task = match attempt {
        LaunchAttempt::First => task,
        LaunchAttempt::Resumed => format!("{}\n\n{CUT_OFF}", task.trim_end()),
    };
    let task = match said {
        [] => task,
        said => format!(
            "The person who started this says:\n\n{}\n\nGo on with your task, which is:\n\n{task}",
            said.join("\n\n")
        ),
    };
    match plan.agent {
        AgentKind::Command(_) => format!("{}\n\n{PROGRESS_INSTRUCTION}\n", task.trim_end()),
        AgentKind::Claude
        | AgentKind::Codex
        | AgentKind::Gemini
        | AgentKind::Pi
        | AgentKind::Acp(_)
        | AgentKind::Script(_) => task,
    }
}

/// Returns the exit code of a run and what was wrong with it.
fn judged(end: &AgentEnd, process: ProcessEnd) -> (i32, Option<String>) {
    let why = match end {
        AgentEnd::Finished => None,
        AgentEnd::Refused => Some("the model refused the task".to_owned()),
        AgentEnd::LimitReached => Some("the agent stopped at its own limit".to_owned()),
        AgentEnd::Crashed { code } => Some(format!("the agent exited with code {code}")),
        AgentEnd::OutOfResources { resource, limit } => Some(format!(
            "the agent was killed at its limit of {}",
            limit_text(resource, limit)
        )),
        AgentEnd::DeadlinePassed => Some("the agent was killed at its time limit".to_owned()),
        AgentEnd::IdlePassed => Some("the agent was killed after a long silence".to_owned()),
        AgentEnd::Provider(failure) => Some(format!(
            "the model's provider failed ({}): {}",
            failure.kind.words(),
            failure.message
        )),
    };
    let code = code_of(process);
    match (code, why) {
        (0, Some(why)) => (NOT_DONE, Some(why)),
        (INTERRUPTED, _) if process == ProcessEnd::Cancelled => {
            (INTERRUPTED, Some("the launch was interrupted".to_owned()))
        }
        (0, None) => (0, None),
        (code, why) => (
            code,
            Some(why.unwrap_or_else(|| format!("the agent exited with code {code}"))),
        ),
    }
}

/// Returns how the end of a process is reported.
pub(crate) const fn code_of(end: ProcessEnd) -> i32 {
    match end {
        ProcessEnd::Exited(code) => code,
        ProcessEnd::Signaled(signal) => 128 + signal,
        ProcessEnd::DeadlinePassed | ProcessEnd::IdlePassed => TIMED_OUT,
        ProcessEnd::Cancelled => INTERRUPTED,
    }
}
