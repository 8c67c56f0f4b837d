//! The container level: the same sandbox, made by podman.
//!
//! host side ([`run`]) -> host stage (`start`) becomes podman -> relay, the container's first process
//! -> payload. What a payload is and what it says travels through descriptors that podman hands over,
//! so nothing of it is in podman's arguments, environment or logs. Knows nothing of namespaces.

pub mod caches;
pub mod cleanup;
pub mod error;
pub mod image;
pub mod leftover;
pub mod options;

mod attend;
mod cgroup;
mod channel;
mod command;
mod grade;
mod guard;
mod host;
mod layout;
mod loader;
mod monitor;
mod mount_point;
mod observe;
mod owner;
mod relay;
mod run_directory;
mod start;

use std::net::TcpListener;

use kapi_sys::cancel::Cancel;
use kapi_sys::process::{EndingProcess, ProcessEnd, Program};

use self::attend::{ContainerContext, ContainerRun, attend};
use self::channel::{RelayLimits, RelayOrder, StartOrder};
use self::command::CommandParts;
use self::error::PodmanError;
use self::host::PodmanHost;
use self::owner::LauncherIdentity;
use self::run_directory::RunDirectory;
use crate::callbacks::RunCallbacks;
use crate::error::SandboxError;
use crate::order::{PayloadProgram, SystemText};
use crate::outcome::{self, SandboxRun};
use crate::spec::SandboxSpec;
use crate::status::{PayloadEnd, StepFailure};
use crate::terminal::{PseudoTerminal, TerminalRelay};

/// The first argument by which a multicall binary knows that it is to call [`relay_main`].
pub const ARGUMENT: &str = "__sandbox-relay";
/// The second argument of the host stage.
const START: &str = "start";
/// The second argument of the first process in a container.
const INSIDE: &str = "inside";

/// The most listeners of one container.
const LISTENERS_MAX: usize = channel::DESCRIPTORS_MAX;

/// Does what the second argument says and returns the exit code for the process.
///
/// Call it first thing in `main`, while the process has one thread, when the first argument is
/// [`ARGUMENT`]. Called by hand, without the descriptors of the host side, it does nothing.
#[must_use]
pub fn relay_main(second: &str) -> i32 {
    match second {
        START => start::start_main(),
        INSIDE => relay::relay_main(),
        _ => crate::init::NOT_RUN,
    }
}

/// Runs a program in a container to its end. `program.path` and `program.cwd` are paths inside it.
///
/// Call from a thread that lives until it returns. When it returns, nothing of the container is left,
/// whatever the reason it ended for, but the named volumes and what was written to mounts.
pub fn run(
    spec: &SandboxSpec,
    program: Program,
    cancel: &Cancel,
    callbacks: RunCallbacks<'_>,
) -> Result<SandboxRun, SandboxError> {
    let payload = PayloadProgram::new(&program);
    contain(spec, program, payload, cancel, callbacks)
}

/// Runs a program in a container to its end, at the terminal of the person who runs this process.
///
/// The program gets a terminal of its own, which podman never shows it and never sees. As for the
/// rest, like [`run`] and [`crate::launch::interact`].
pub fn interact(
    spec: &SandboxSpec,
    mut program: Program,
    cancel: &Cancel,
    on_listeners: &mut (dyn FnMut(Vec<TcpListener>) + Send),
) -> Result<SandboxRun, SandboxError> {
    let failed = |errno| SandboxError::setup(&StepFailure::new("open", "a terminal", errno));
    let terminal = PseudoTerminal::open().map_err(failed)?;
    let payload = PayloadProgram {
        has_terminal: true,
        ..PayloadProgram::new(&program)
    };
    program.stdin = Vec::new();
    program.pass_fds.push(terminal.inner);
    let relay = TerminalRelay::start(terminal.outer).map_err(failed)?;
    let callbacks = RunCallbacks {
        on_line: &mut |_| {},
        on_listeners,
    };
    relay.during(|| contain(spec, program, payload, cancel, callbacks))
}

/// Makes a container for a program, attends it to its end and clears what is left of it.
fn contain(
    spec: &SandboxSpec,
    program: Program,
    payload: PayloadProgram,
    cancel: &Cancel,
    callbacks: RunCallbacks<'_>,
) -> Result<SandboxRun, SandboxError> {
    check(spec)?;
    let host = PodmanHost::observe()?;
    run_directory::sweep(&host)?;
    let _layers = guard::layers(spec)?;
    let watchdog = guard::watchdog(spec);
    let directory = RunDirectory::new(&host, &spec.name)?;
    let name = directory.name.clone();
    let n_fds = program.pass_fds.len();
    let prepared = prepare(spec, payload, n_fds, &host, &directory);
    let (attended, layers) = match prepared {
        Ok(prepared) => {
            let layers = prepared.layers.clone();
            let context = ContainerContext {
                spec,
                prepared: &prepared,
                watchdog: &watchdog,
            };
            (attend(context, program, cancel, callbacks), layers)
        }
        Err(error) => (Err(error), Vec::new()),
    };
    // Podman has cleared its part by itself only if it lived to the payload's end.
    let is_clear = attended.as_ref().is_ok_and(ContainerRun::is_orderly);
    let cleared = if is_clear {
        cleanup::remove_known_layers(&host, &layers)
    } else {
        let is_deserted = || attended.as_ref().map_or(true, ContainerRun::is_deserted);
        cleanup::remove_container(&host, &name, &spec.name, &is_deserted)
            .and_then(|()| cleanup::remove_unlisted(&host, &spec.name))
            .and_then(|()| cleanup::remove_layers(&host, &name))
    };
    let cleared = cleared.and_then(|()| directory.remove());
    let ran = conclude(spec, &host, attended?)?;
    cleared?;
    Ok(ran)
}

/// Clears what kapis that were killed left of their containers, and returns how many there were.
/// Every [`run`] does so before it starts.
pub fn sweep() -> Result<usize, PodmanError> {
    run_directory::sweep(&PodmanHost::observe()?)
}

fn check(spec: &SandboxSpec) -> Result<(), PodmanError> {
    spec.podman.check()?;
    options::check_name(&spec.name)?;
    options::check_hostname(&spec.hostname)?;
    let refused = |what, value: String, why| Err(PodmanError::Refused { what, value, why });
    if !spec.benchmark.is_empty() {
        let value = format!("{:?}", spec.benchmark);
        let why = "only a native sandbox keeps a program to processors and counts what it does";
        return refused("measuring", value, why);
    }
    if spec.listeners.len() > LISTENERS_MAX {
        let value = spec.listeners.len().to_string();
        return refused("listeners", value, "a container has at most 32");
    }
    let brings_filter = spec
        .podman
        .security
        .iter()
        .any(|option| option.starts_with("seccomp="));
    if spec.nested_namespaces && !brings_filter {
        let why = "podman's own filter forbids them in a container; give a security option seccomp=<file> that allows them";
        return refused("nested namespaces", "true".to_owned(), why);
    }
    Ok(())
}

/// A container ready to be started.
struct PreparedContainer {
    /// The order for the host stage.
    start: StartOrder,
    /// The order for the relay.
    relay: RelayOrder,
    /// The volumes that hold its layers.
    layers: Vec<String>,
}

fn prepare(
    spec: &SandboxSpec,
    payload: PayloadProgram,
    n_fds: usize,
    host: &PodmanHost,
    directory: &RunDirectory,
) -> Result<PreparedContainer, SandboxError> {
    let sealed = directory.seal_files(spec)?;
    let layout = layout::arrange(spec, &sealed)?;
    mount_point::make_all(&layout)?;
    let layers = layout.layers.iter().enumerate();
    let layer_options = layers
        .map(|(index, (lower, layer))| directory.link_layer(index, lower, layer))
        .collect::<Result<Vec<_>, _>>()?;
    options::check_host(&spec.self_exe)?;
    let linked = loader::linked(&spec.self_exe)?;
    let parts = CommandParts {
        host,
        directory: &directory.name,
        layout: &layout,
        layer_options: &layer_options,
        linked: linked.as_ref(),
        owner: LauncherIdentity::this()?.label(),
        n_fds,
    };
    let args = command::arguments(spec, &parts)?;
    let text = |text: &std::ffi::OsStr| SystemText::new(text.as_encoded_bytes());
    let env = host.env.iter();
    Ok(PreparedContainer {
        start: StartOrder {
            path: text(host.podman.as_os_str()),
            args: args.iter().map(|arg| text(arg)).collect(),
            env: env.map(|(name, value)| (text(name), text(value))).collect(),
            n_fds,
        },
        relay: RelayOrder {
            payload,
            listeners: spec.listeners.clone(),
            limits: RelayLimits {
                memory_bytes: spec.resources.memory_bytes,
                processes: spec.resources.processes,
            },
            nested_namespaces: spec.nested_namespaces,
        },
        layers: (0..layout.layers.len())
            .map(|index| cleanup::layer_volume(&directory.name, index))
            .collect(),
    })
}

/// Turns what was seen of a container into what came of the run.
fn conclude(
    spec: &SandboxSpec,
    host: &PodmanHost,
    attended: ContainerRun,
) -> Result<SandboxRun, SandboxError> {
    let ContainerRun {
        mut finished,
        report,
        diagnosis,
        channel: _,
        is_disk_full,
    } = attended;
    if let Some(failure) = &report.failed {
        return Err(SandboxError::setup(failure));
    }
    finished.end = match (finished.end, report.ended) {
        (ProcessEnd::Exited(_), Some((PayloadEnd::Exited(code), _))) => ProcessEnd::Exited(code),
        (ProcessEnd::Exited(_), Some((PayloadEnd::Signaled(signal), _))) => {
            ProcessEnd::Signaled(signal)
        }
        // The relay was there and is gone without a word: somebody killed the whole container.
        (ProcessEnd::Exited(137), None) if report.observed.is_some() => ProcessEnd::Signaled(9),
        (ProcessEnd::Exited(_), None) => {
            return Err(PodmanError::Said {
                command: "run",
                output: diagnosis,
            }
            .into());
        }
        (end, _) => end,
    };
    let observed = report.observed.unwrap_or_default();
    let met = report.ended.map(|(_, met)| met).unwrap_or_default();
    let by_disk = is_disk_full.then(|| grade::disk(&spec.resources)).flatten();
    let met = grade::met(&spec.resources, met, finished.end);
    let met = by_disk.into_iter().chain(met).collect();
    let (exceeded, met) = outcome::explain(finished.end, met);
    Ok(SandboxRun {
        finished,
        grade: grade::grade(spec, &observed, host.is_root()),
        exceeded,
        met,
        counted: Vec::new(),
        remains: EndingProcess::nothing(),
    })
}
