//! The host side of a run: hands the order to the launcher, watches it, and makes sure that nothing
//! of the sandbox is alive when it returns.
//!
//! Does not know how a sandbox is built; that is `init`, in the launcher's process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::TcpListener;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{io, thread};

use kapi_sys::cancel::Cancel;
use kapi_sys::process::{
    self, EndedProgram, EndingProcess, FinishedProcess, ProcessEnd, ProcessError, ProcessLimits,
    Program,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::process::Signal;

use crate::callbacks::RunCallbacks;
use crate::counter::KernelCounter;
use crate::error::SandboxError;
use crate::guard::Guard;
use crate::init::ARGUMENT;
use crate::listen::listen_at;
use crate::order::{Enclosure, LaunchOrder, LauncherWork, PayloadProgram};
use crate::outcome::{self, SandboxRun};
use crate::podman;
use crate::spec::{IsolationLevel, NetworkIsolation, SandboxSpec};
use crate::status::{LauncherMessage, LauncherReport, PayloadEnd, ReportError, StepFailure, pair};
use crate::terminal::{PseudoTerminal, TerminalRelay};
use crate::watchdog::LimitBreach;

/// How long the death of every process of a sandbox may take after its launcher has ended.
const DEATH_WAIT_MS: u64 = 10_000;

/// Runs a program in a sandbox to its end. `program.path` and `program.cwd` are paths inside it.
///
/// Call from a thread that lives until it returns. When it returns, no process of the sandbox is
/// alive, whatever the reason it ended for, and what it wrote is in place. When what it returns is
/// dropped, nothing holds the mounted directories any more.
pub fn run(
    spec: &SandboxSpec,
    program: Program,
    cancel: &Cancel,
    callbacks: RunCallbacks<'_>,
) -> Result<SandboxRun, SandboxError> {
    if spec.level == IsolationLevel::Podman {
        return podman::run(spec, program, cancel, callbacks);
    }
    let work = work(spec, PayloadProgram::new(&program))?;
    let input = LaunchInput {
        stdin: program.stdin,
        fds: program.pass_fds,
        limits: program.limits,
    };
    conduct(spec, work, input, cancel, callbacks)
}

/// Runs a program in a sandbox to its end, at the terminal of the person who runs this process.
///
/// The program gets a terminal of its own, which it controls; what is typed and what it prints is
/// passed on, and so is the size. `program.stdin` is not used. As for the rest, like [`run`].
pub fn interact(
    spec: &SandboxSpec,
    mut program: Program,
    cancel: &Cancel,
    on_listeners: &mut (dyn FnMut(Vec<TcpListener>) + Send),
) -> Result<SandboxRun, SandboxError> {
    let failed = |errno| own_error("open", "a terminal", errno);
    let terminal = PseudoTerminal::open().map_err(failed)?;
    let payload = PayloadProgram {
        has_terminal: true,
        ..PayloadProgram::new(&program)
    };
    let work = work(spec, payload)?;
    program.pass_fds.push(terminal.inner);
    let input = LaunchInput {
        stdin: Vec::new(),
        fds: program.pass_fds,
        limits: program.limits,
    };
    let relay = TerminalRelay::start(terminal.outer).map_err(failed)?;
    let callbacks = RunCallbacks {
        on_line: &mut |_| {},
        on_listeners,
    };
    relay.during(|| conduct(spec, work, input, cancel, callbacks))
}

fn work(spec: &SandboxSpec, payload: PayloadProgram) -> Result<LauncherWork, SandboxError> {
    let payload = Box::new(PayloadProgram {
        processors: spec.benchmark.processors.clone(),
        counters: spec.benchmark.counters.clone(),
        ..payload
    });
    match spec.level {
        IsolationLevel::Native => Ok(LauncherWork::Confine {
            enclosure: Box::new(Enclosure::new(spec)),
            payload,
        }),
        IsolationLevel::None => Ok(LauncherWork::Supervise { payload }),
        IsolationLevel::Podman => Err(own_error("interact", "a container", Errno::NOTSUP)),
    }
}

/// Runs a launcher with the work and returns how the payload ended.
fn conduct(
    spec: &SandboxSpec,
    mut work: LauncherWork,
    input: LaunchInput,
    cancel: &Cancel,
    callbacks: RunCallbacks<'_>,
) -> Result<SandboxRun, SandboxError> {
    let is_own_network =
        spec.level == IsolationLevel::Native && spec.network == NetworkIsolation::Loopback;
    if !is_own_network && !spec.listeners.is_empty() {
        let listeners =
            listen_at(&spec.listeners).map_err(|failure| SandboxError::setup(&failure))?;
        (callbacks.on_listeners)(listeners);
    }
    let guard = Guard::new(spec);
    if let LauncherWork::Confine { enclosure, payload } = &mut work {
        guard.order(enclosure, payload);
    }
    let context = LaunchContext {
        self_exe: &spec.self_exe,
        guard: &guard,
    };
    let run = perform(context, work, input, cancel, callbacks)?;
    let beyond = run.beyond;
    let counted = counted(&run.statuses);
    let (finished, mut remains) = finish(run)?;
    if guard.holds_groups() {
        // They are removed below, which nothing may be in for.
        remains = EndingProcess::nothing();
    }
    let met = guard.met(beyond, finished.end);
    let (exceeded, met) = outcome::explain(finished.end, met);
    Ok(SandboxRun {
        finished,
        grade: guard.grade,
        exceeded,
        met,
        counted,
        remains,
    })
}

/// Returns what was counted.
fn counted(statuses: &[LauncherMessage]) -> Vec<(KernelCounter, u64)> {
    let counted = statuses.iter().find_map(|status| match status {
        LauncherMessage::Counted(counted) => Some(counted.clone()),
        LauncherMessage::Leader
        | LauncherMessage::Listening
        | LauncherMessage::Failed(_)
        | LauncherMessage::Survived(_)
        | LauncherMessage::Ended(_)
        | LauncherMessage::Probed { .. } => None,
    });
    counted.unwrap_or_default()
}

fn finish(run: LauncherRun) -> Result<(FinishedProcess, EndingProcess), SandboxError> {
    let LauncherRun {
        over,
        statuses,
        beyond,
    } = run;
    let mut ending = None;
    for status in &statuses {
        match status {
            LauncherMessage::Failed(failure) => return Err(SandboxError::setup(failure)),
            LauncherMessage::Survived(failure) => {
                return Err(SandboxError::Survived {
                    call: failure.call.clone(),
                    source: io::Error::from_raw_os_error(failure.errno),
                });
            }
            LauncherMessage::Ended(ended) => ending = Some(*ended),
            LauncherMessage::Leader
            | LauncherMessage::Listening
            | LauncherMessage::Counted(_)
            | LauncherMessage::Probed { .. } => {}
        }
    }
    let end = match ending {
        Some(PayloadEnd::Exited(code)) => ProcessEnd::Exited(code),
        Some(PayloadEnd::Signaled(signal)) => ProcessEnd::Signaled(signal),
        None => return Ok((unexplained(over, beyond)?, EndingProcess::nothing())),
    };
    over.without_waiting(end).map_err(SandboxError::Launch)
}

/// Tells how a launcher ended that did not say how its payload did.
fn unexplained(
    over: EndedProgram,
    beyond: Option<LimitBreach>,
) -> Result<FinishedProcess, SandboxError> {
    let mut finished = over.wait().map_err(SandboxError::Launch)?;
    finished.end = match finished.end {
        // The leader was ended together with the payload, for a limit.
        ProcessEnd::Exited(_) if beyond.is_some() => ProcessEnd::Signaled(Signal::KILL.as_raw()),
        ProcessEnd::Exited(_) => {
            return Err(SandboxError::Launcher {
                end: finished.end,
                output: finished.stderr.text(),
            });
        }
        end @ (ProcessEnd::Signaled(_)
        | ProcessEnd::DeadlinePassed
        | ProcessEnd::IdlePassed
        | ProcessEnd::Cancelled) => end,
    };
    Ok(finished)
}

/// The descriptors and limits that travel to the launcher.
pub(crate) struct LaunchInput {
    /// Bytes for the payload's standard input.
    pub stdin: Vec<u8>,
    /// Descriptors for the payload.
    pub fds: Vec<OwnedFd>,
    /// What ends it.
    pub limits: ProcessLimits,
}

/// What every launcher needs, whatever its order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaunchContext<'a> {
    /// The program that is the launcher.
    pub self_exe: &'a Path,
    /// What watches the sandbox.
    pub guard: &'a Guard,
}

/// How a launcher's run went.
#[derive(Debug)]
pub(crate) struct LauncherRun {
    /// The launcher, of which nobody else is left.
    pub over: EndedProgram,
    /// Its messages, in order.
    pub statuses: Vec<LauncherMessage>,
    /// The limit for which it was ended, or which it was seen at.
    pub beyond: Option<LimitBreach>,
}

/// Runs the launcher with one order and returns what it did and said.
pub(crate) fn perform(
    context: LaunchContext<'_>,
    work: LauncherWork,
    input: LaunchInput,
    cancel: &Cancel,
    callbacks: RunCallbacks<'_>,
) -> Result<LauncherRun, SandboxError> {
    let order = LaunchOrder {
        parent_pid: rustix::process::getpid().as_raw_nonzero().get(),
        work,
    };
    let order_file = write_order(&order)?;
    let (reader, writer) =
        pair().map_err(|errno| own_error("socketpair", "the launcher's channel", errno))?;
    let launcher = Program {
        path: context.self_exe.to_path_buf(),
        args: vec![OsString::from(ARGUMENT)],
        env: BTreeMap::new(),
        cwd: PathBuf::from("/"),
        stdin: input.stdin,
        pass_fds: [order_file, writer].into_iter().chain(input.fds).collect(),
        limits: input.limits,
    };
    let run = || process::run_until_over(launcher, reader.as_fd(), cancel, callbacks.on_line);
    let has_listeners = order.work.has_listeners();
    let (ran, observation) = if has_listeners || context.guard.needs_watch() {
        let on_listeners = has_listeners.then_some(callbacks.on_listeners);
        while_attending(reader.as_fd(), on_listeners, context.guard, run)?
    } else {
        (run(), LauncherObservation::default())
    };
    let mut report = observation.report;
    report.receive(reader.as_fd()).map_err(report_error)?;
    if let Some(leader) = report.leader.as_ref() {
        await_end(leader.as_fd())?;
        report.receive(reader.as_fd()).map_err(report_error)?;
    }
    Ok(LauncherRun {
        over: ran.map_err(SandboxError::Launch)?,
        statuses: report.statuses,
        beyond: observation.beyond,
    })
}

type RunResult = Result<EndedProgram, ProcessError>;

/// What was observed of a launcher while it ran.
#[derive(Default)]
struct LauncherObservation {
    report: LauncherReport,
    beyond: Option<LimitBreach>,
}

/// Runs the launcher on this thread, whose end would be the launcher's; takes the listeners and
/// watches the sandbox on another.
fn while_attending(
    reader: BorrowedFd<'_>,
    on_listeners: Option<&mut (dyn FnMut(Vec<TcpListener>) + Send)>,
    guard: &Guard,
    run: impl FnOnce() -> RunResult,
) -> Result<(RunResult, LauncherObservation), SandboxError> {
    let attend = move || {
        let mut report = LauncherReport::default();
        if let Some(on_listeners) = on_listeners {
            take_listeners(reader, &mut report, on_listeners)?;
        }
        let mut beyond = None;
        if guard.needs_watch() {
            while report.leader.is_none() && hear_more(reader, &mut report)? {}
            if let Some(leader) = report.leader.as_ref() {
                let failed = |errno| own_error("poll", "the leader", errno);
                beyond = guard.watch(leader.as_fd()).map_err(failed)?;
            }
        }
        Ok(LauncherObservation { report, beyond })
    };
    thread::scope(|scope| {
        let attending = scope.spawn(attend);
        let ran = run();
        match attending.join() {
            Ok(observation) => observation.map(|observation| (ran, observation)),
            Err(panic) => resume_unwind(panic),
        }
    })
}

/// Takes what the launcher says until the listeners have come or it has ended without them.
fn take_listeners(
    reader: BorrowedFd<'_>,
    report: &mut LauncherReport,
    on_listeners: &mut dyn FnMut(Vec<TcpListener>),
) -> Result<(), SandboxError> {
    let failed = |call: &'static str| move |errno| own_error(call, "the launcher's channel", errno);
    loop {
        let may_say_more = hear_more(reader, report)?;
        let listeners = std::mem::take(&mut report.listeners);
        if !listeners.is_empty() {
            on_listeners(listeners.into_iter().map(TcpListener::from).collect());
            return match send(reader, b"g", SendFlags::NOSIGNAL) {
                // A launcher that has ended meanwhile waits for nothing.
                Ok(_) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
                Err(errno) => Err(failed("send")(errno)),
            };
        }
        if !may_say_more {
            return Ok(());
        }
    }
}

/// Waits until the launcher says something, takes it, and tells whether it may say more.
fn hear_more(reader: BorrowedFd<'_>, report: &mut LauncherReport) -> Result<bool, SandboxError> {
    let mut polled = [PollFd::new(&reader, PollFlags::IN)];
    match poll(&mut polled, None) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(true),
        Err(errno) => return Err(own_error("poll", "the launcher's channel", errno)),
    }
    let mut signs = polled.iter().map(PollFd::revents);
    let has_ended = signs.any(|signs| signs.contains(PollFlags::HUP));
    report.receive(reader).map_err(report_error)?;
    Ok(!has_ended)
}

fn report_error(error: ReportError) -> SandboxError {
    match error {
        ReportError::Receive(errno) => own_error("recvmsg", "the launcher's channel", errno),
        ReportError::Decode(source) => SandboxError::Decode(source),
    }
}

fn own_error(call: &str, target: &str, errno: Errno) -> SandboxError {
    SandboxError::setup(&StepFailure::new(call, target, errno))
}

/// Writes the order to an anonymous file, read from its start by the launcher.
fn write_order(order: &LaunchOrder) -> Result<OwnedFd, SandboxError> {
    let bytes = serde_json::to_vec(order).map_err(SandboxError::Encode)?;
    let failed = |call: &'static str| move |errno: Errno| own_error(call, "the order", errno);
    let file = rustix::fs::memfd_create("kapi-order", MemfdFlags::CLOEXEC)
        .map_err(failed("memfd_create"))?;
    let mut written = 0;
    while written < bytes.len() {
        let rest = bytes.get(written..).unwrap_or_default();
        let at = u64::try_from(written).map_err(|_| failed("pwrite")(Errno::FBIG))?;
        written += rustix::io::pwrite(&file, rest, at).map_err(failed("pwrite"))?;
    }
    Ok(file)
}

/// Waits until the leading process is gone. A pid namespace's first process ends only after every
/// other process of it has.
fn await_end(leader: BorrowedFd<'_>) -> Result<(), SandboxError> {
    let limit = Duration::from_millis(DEATH_WAIT_MS);
    let limit =
        Timespec::try_from(limit).map_err(|_| own_error("poll", "the leader", Errno::INVAL))?;
    let mut polled = [PollFd::new(&leader, PollFlags::IN)];
    let n_ready = loop {
        match poll(&mut polled, Some(&limit)) {
            Err(Errno::INTR) => {}
            other => break other.map_err(|errno| own_error("poll", "the leader", errno))?,
        }
    };
    if n_ready == 0 {
        return Err(SandboxError::StillAlive {
            waited_ms: DEATH_WAIT_MS,
        });
    }
    Ok(())
}
