//! Programs that a person starts in a sandbox: a shell, one command, or an interactive agent.
//!
//! The same isolation and network as a run of its own; a model is there for an agent alone. With a
//! terminal where there is one, and line by line otherwise.

mod dialogue;
mod hooks;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kapi_agent::agent::AgentKind;
use kapi_core::failure::Failure;
use kapi_core::isolation::SandboxLevel;
use kapi_core::text::{limit_met, limit_text};
use kapi_core::usage::Usage;
use kapi_git::layer::walk;
use kapi_machine::watch::Activity;
use kapi_run::call_rules::call_rules;
use kapi_run::confine::{AGENT_TAIL_BYTES_MAX, SandboxConfig, SandboxedProgram};
use kapi_run::host_grants::HostGrants;
use kapi_run::network::NetworkAccess;
use kapi_run::network::serve::NetworkServices;
use kapi_run::repository_session::RepositorySession;
use kapi_run::run_dir::RunDir;
use kapi_run::tool_client::RUN_ID_VARIABLE;
use kapi_run::{failure, repository_session};
use kapi_sandbox::outcome::SandboxRun;
use kapi_sandbox::spec::BenchmarkSetup;
use kapi_sandbox::{launch, podman};
use kapi_sys::process::{self, OutputLine, ProcessLimits, Program};

use self::dialogue::Dialogue;
use self::hooks::Hooks;
use super::active_launch::ActiveLaunch;
use super::agent::{self, AgentEnding};
use super::context::LaunchHandlers;
use super::error::{LaunchError, LaunchErrorKind};
use super::event::LaunchEvent;
use super::finish::SandboxWork;
use super::inputs::ground;
use super::log;
use super::merge::known;
use super::paths::SandboxPaths;
use super::prepare::{self, ReadyWorkspace};
use super::record::{SandboxRecord, WorkState};
use super::shown::included;

/// The longest a person may stay.
const STAY_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Shells, the first that is there is used.
const SHELLS: &[&str] = &["bash", "sh"];
/// The shell that every image has.
const IMAGE_SHELL: &str = "/bin/sh";
/// Variables of the person's terminal that a program at it needs.
const TERMINAL_VARIABLES: &[&str] = &["TERM", "COLORTERM", "TERM_PROGRAM", "LINES", "COLUMNS"];

/// How a program is attended.
pub enum ProgramConsole<'a> {
    /// By a person at the terminal of this process.
    Terminal,
    /// By nobody; each line of its output is handed on.
    Lines(&'a mut dyn FnMut(OutputLine<'_>)),
}

/// Runs a command in a sandbox, or a shell when there is none, and returns its exit code.
///
/// # Errors
/// When there is no such sandbox, it is in use, or it could not be made.
pub fn enter(
    grants: &HostGrants,
    location: &SandboxPaths,
    command: &[OsString],
    attended: ProgramConsole<'_>,
    stage: &LaunchHandlers<'_>,
) -> Result<i32, LaunchError> {
    known(location)?;
    let _held = location.hold("kapi sandbox shell")?;
    let mut record = log::at(location).known()?;
    let (_, repo) = ground(grants, &record.project)?;
    let ready = prepare::open(location, &record, repo.as_ref(), &grants.home)?;
    let before = record.work;
    // What a person changes in here is nowhere else from now on.
    record.work = WorkState::Pending;
    record.updated_at_ms = stage.clock.now_ms();
    let entered = LaunchEvent::Entered {
        sandbox: Box::new(record.clone()),
    };
    log::at(location).record(record.updated_at_ms, &[entered])?;
    let (program, args) = called(grants, record.level, command)?;
    let run_dir = RunDir::open(&location.runs(), log::SHELL)?;
    let home = location.home();
    let included = included::lend(location, &record, &ready)?;
    let ran = attend(
        grants,
        SandboxGuest {
            record: &record,
            ready: &ready,
            home,
            program,
            args,
        },
        attended,
        stage,
        &run_dir,
    );
    included.withdraw()?;
    let over = log::at(location).run_over(log::SHELL, Usage::ZERO)?;
    let left = |record: &SandboxRecord| {
        let left = LaunchEvent::Left {
            sandbox: Box::new(record.clone()),
        };
        log::at(location).record(stage.clock.now_ms(), &[over, left])
    };
    let ran = match ran {
        Ok(ran) => ran,
        Err(error) => {
            left(&record)?;
            return Err(error);
        }
    };
    let is_unchanged = before == WorkState::Committed
        && is_as_committed(&ready, &record, repo.as_ref(), stage.clock.now_ms())?;
    if is_unchanged {
        record.work = WorkState::Committed;
    }
    left(&record)?;
    Ok(agent::code_of(ran.finished.end))
}

/// Tells whether a workspace holds nothing but what its branch has.
fn is_as_committed(
    ready: &ReadyWorkspace,
    record: &SandboxRecord,
    repo: Option<&RepositorySession>,
    now_ms: i64,
) -> Result<bool, LaunchError> {
    let (Some(branch), Some(repo)) = (&record.branch, repo) else {
        let Some(layer) = &ready.layer else {
            return Ok(false);
        };
        let walk = walk::walk(layer, &ready.lower);
        let walk = walk.map_err(|error| LaunchError::failed(&error))?;
        return Ok(walk.changes.is_empty());
    };
    let known = branch.commit.as_ref().unwrap_or(&branch.start);
    let known = repository_session::commit_id(known)?;
    let tree = repo.repository.tree_of(&known);
    let tree = tree.map_err(|error| LaunchError::failed(&error))?;
    let work = SandboxWork {
        repo,
        ready,
        record,
    };
    let found = work.snapshot("entered", now_ms)?;
    Ok(found.is_some_and(|found| found.tree == tree))
}

/// Runs an interactive launch: the agent on its own screen at the person's terminal, behind the same
/// network access as without one; for a script, which has no screen, a shell.
///
/// Its status comes from its hooks, and from its progress file.
pub(crate) fn at_terminal(
    launch: &ActiveLaunch<'_>,
    record: &SandboxRecord,
    ready: &ReadyWorkspace,
) -> Result<AgentEnding, LaunchError> {
    let ActiveLaunch {
        grants,
        plan,
        stage,
        writer,
        ..
    } = *launch;
    let run_dir = RunDir::open(&plan.location.runs(), &record.launches.to_string())?;
    let run_id = agent::run_id(record);
    let seen = Mutex::new((Usage::default(), Vec::new()));
    let notice = |activity: Activity| {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        match activity {
            Activity::Used(usage) => seen.0.add(&usage),
            // The screen is the agent's for now.
            Activity::Note { text } => seen.1.push(text),
            Activity::Tool { .. } | Activity::Text { .. } | Activity::Verifying { .. } => {}
        }
    };
    let watch = stage.watch(&notice);
    let home = plan.location.home();
    let deadline = Duration::from_millis(plan.deadline_ms);
    let mut config = agent::sandbox(record, ready, &home, &run_id, deadline);
    config.mounts.extend(agent::task_file(plan, &run_dir)?);
    config
        .mounts
        .extend(agent::settings_hidden(plan, ready, &run_dir)?);
    let scratch = plan.location.dir();
    let hooks = Hooks::open(&plan.agent, &config, &scratch, grants, stage.notice)?;
    config.mounts.extend(Hooks::mounts(hooks.as_ref(), grants));
    kapi_run::private_dir::make_private(&home)?;
    let mut access = NetworkAccess::new(record.level, record.network, &grants.grant)?;
    let mut payload = match &plan.agent {
        // Its client has no screen, and a script none either.
        AgentKind::Acp(_) | AgentKind::Script(_) => plain_shell(grants, record.level)?,
        AgentKind::Claude
        | AgentKind::Codex
        | AgentKind::Gemini
        | AgentKind::Pi
        | AgentKind::Command(_) => {
            let task = agent::task_file_seen(record.level, &run_dir);
            let dialogue = Dialogue {
                plan,
                config: &config,
                hooks: hooks.as_ref(),
                task: &task,
            };
            let opened = dialogue.open(grants, &mut access)?;
            for text in opened.notes {
                (stage.notice)(Activity::Note { text });
            }
            opened.payload
        }
    };
    surround(&mut payload, ready, record, &run_id);
    access.insert_cassette(&grants.grant, &run_id);
    let rules = call_rules(&plan.agent, &plan.settings, record.network);
    let served =
        NetworkServices::new(&access, &watch, &run_dir)?.with_models(&grants.prices, rules);
    let (hooks, written) = (hooks.as_ref(), ready.written.as_path());
    let ran = hooks::follow(hooks, written, writer, stage.notice, || {
        interact(&config, grants, payload, &served)
    });
    drop(served);
    let (used, notes) = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    for text in notes {
        (stage.notice)(Activity::Note { text });
    }
    let ran = ran?;
    tell_limits(&ran, stage.notice);
    Ok(ended(&ran, used))
}

/// Words how an interactive launch ended; nobody reads what such a program says.
fn ended(ran: &SandboxRun, usage: Usage) -> AgentEnding {
    let exit_code = agent::code_of(ran.finished.end);
    let limit = ran
        .exceeded
        .as_ref()
        .map(|met| limit_text(met.resource, &met.limit));
    let error = match (limit, exit_code) {
        (Some(limit), _) => Some(format!("the program was stopped at its limit of {limit}")),
        (None, 0) => None,
        (None, code) => Some(format!("the program exited with code {code}")),
    };
    AgentEnding {
        exit_code,
        agent_end: None,
        process_end: ran.finished.end,
        error,
        message: String::new(),
        grade: Some(ran.grade.to_string()).filter(|text| !text.is_empty()),
        usage,
    }
}

/// Tells which limits a program met: on the way, or at its end.
fn tell_limits(ran: &SandboxRun, notice: &(dyn Fn(Activity) + Sync)) {
    for met in ran.met.iter().chain(&ran.exceeded) {
        let text = limit_met(met.resource, &met.limit);
        notice(Activity::Note { text });
    }
}

struct SandboxGuest<'a> {
    record: &'a SandboxRecord,
    ready: &'a ReadyWorkspace,
    home: PathBuf,
    program: PathBuf,
    args: Vec<OsString>,
}

fn attend(
    grants: &HostGrants,
    guest: SandboxGuest<'_>,
    attended: ProgramConsole<'_>,
    stage: &LaunchHandlers<'_>,
    run_dir: &RunDir,
) -> Result<SandboxRun, LaunchError> {
    let record = guest.record;
    kapi_run::private_dir::make_private(&guest.home)?;
    let access = NetworkAccess::new(record.level, record.network, &grants.grant)?;
    let watch = stage.watch(stage.notice);
    let served = NetworkServices::new(&access, &watch, run_dir)?;
    let name = format!("{}-{}", agent::run_id(record), std::process::id());
    let config = agent::sandbox(record, guest.ready, &guest.home, &name, STAY_MAX);
    let mut payload = bare(guest.program, guest.args);
    surround(&mut payload, guest.ready, record, &name);
    let ran = match attended {
        ProgramConsole::Lines(on_line) => config.run(grants, payload, &served, on_line)?,
        ProgramConsole::Terminal => interact(&config, grants, payload, &served)?,
    };
    tell_limits(&ran, stage.notice);
    Ok(ran)
}

const fn bare(program: PathBuf, args: Vec<OsString>) -> SandboxedProgram {
    SandboxedProgram {
        program,
        args,
        env: BTreeMap::new(),
        stdin: Vec::new(),
        below: PathBuf::new(),
        path_first: Vec::new(),
        tail_bytes_max: AGENT_TAIL_BYTES_MAX,
        benchmark: BenchmarkSetup {
            processors: Vec::new(),
            counters: Vec::new(),
        },
        stop_grace: None,
    }
}

/// Adds the variables that everything in a sandbox has; those of the agent itself win.
fn surround(
    payload: &mut SandboxedProgram,
    ready: &ReadyWorkspace,
    record: &SandboxRecord,
    name: &str,
) {
    let own = std::mem::take(&mut payload.env);
    payload.env.extend(agent::environment(ready, record));
    payload.env.extend(own);
    payload.env.insert(RUN_ID_VARIABLE.into(), name.into());
}

/// Runs a program in a sandbox at the person's terminal.
fn interact(
    config: &SandboxConfig<'_>,
    grants: &HostGrants,
    payload: SandboxedProgram,
    served: &NetworkServices<'_>,
) -> Result<SandboxRun, Failure> {
    let shown = config.spec(grants, &payload.program)?;
    let mut spec = shown.spec;
    spec.network = served.access.network();
    spec.listeners = served.access.addresses();
    let mut env = config.environment(grants, &shown.path_first, served.access.environment());
    for name in TERMINAL_VARIABLES {
        if let Some(value) = grants.env.get(OsStr::new(name)) {
            env.insert(OsString::from(name), value.clone());
        }
    }
    env.remove(OsStr::new("CI"));
    env.extend(payload.env);
    let program = Program {
        env,
        path: shown.program,
        args: payload.args,
        cwd: config.workspace_seen(grants),
        stdin: payload.stdin,
        pass_fds: Vec::new(),
        limits: ProcessLimits {
            deadline: config.deadline,
            idle: None,
            tail_bytes_max: 0,
            line_bytes_max: 0,
        },
    };
    let cancel = served.watch.cancel;
    served.open(|on_listeners| {
        let ran = match config.level {
            SandboxLevel::Podman => podman::interact(&spec, program, cancel, on_listeners),
            SandboxLevel::Native | SandboxLevel::None => {
                launch::interact(&spec, program, cancel, on_listeners)
            }
        };
        ran.map_err(|error| failure::sandbox(&error))
    })
}

fn plain_shell(grants: &HostGrants, level: SandboxLevel) -> Result<SandboxedProgram, LaunchError> {
    let (shell, args) = called(grants, level, &[])?;
    Ok(bare(shell, args))
}

/// Returns the program that runs a command, and its arguments; a shell where there is no command.
fn called(
    grants: &HostGrants,
    level: SandboxLevel,
    command: &[OsString],
) -> Result<(PathBuf, Vec<OsString>), LaunchError> {
    match (level, command) {
        (SandboxLevel::Podman, command) => Ok(in_image(command)),
        (SandboxLevel::Native | SandboxLevel::None, [program, args @ ..]) => {
            Ok((find(grants, program)?, args.to_vec()))
        }
        (SandboxLevel::Native | SandboxLevel::None, []) => Ok((shell(grants)?, Vec::new())),
    }
}

/// Returns what runs a command that is looked up on the path of an image, which nobody knows here; or a
/// shell of the image.
fn in_image(command: &[OsString]) -> (PathBuf, Vec<OsString>) {
    let mut args = Vec::new();
    if !command.is_empty() {
        args.extend(["-c", "exec \"$@\"", IMAGE_SHELL].map(OsString::from));
        args.extend_from_slice(command);
    }
    (PathBuf::from(IMAGE_SHELL), args)
}

fn shell(grants: &HostGrants) -> Result<PathBuf, LaunchError> {
    let mut found = SHELLS
        .iter()
        .filter_map(|name| process::find_in_path(OsStr::new(name), &grants.path_variable()));
    found.next().ok_or_else(|| {
        LaunchError::new(
            LaunchErrorKind::Failed,
            "find a shell on PATH",
            "give a command after `--`.",
        )
    })
}

fn find(grants: &HostGrants, program: &OsStr) -> Result<PathBuf, LaunchError> {
    let path = PathBuf::from(program);
    let found = if path.is_absolute() {
        Some(path)
    } else {
        process::find_in_path(program, &grants.path_variable())
    };
    found.ok_or_else(|| {
        LaunchError::new(
            LaunchErrorKind::NotFound,
            format!("there is no program {} on PATH", program.to_string_lossy()),
            "give its path inside the sandbox, or run it through a shell: `-- sh -c '…'`.",
        )
    })
}
