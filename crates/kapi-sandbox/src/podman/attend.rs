//! Watches one container from the host side: podman by its pipes, the relay by its channel.
//!
//! When it returns, the relay is dead, and with it every process of the container. Does not clear
//! what podman keeps on disk, nor judge what came of the run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::TcpListener;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use kapi_sys::cancel::Cancel;
use kapi_sys::process::{self, FinishedProcess, OutputLine, ProcessEnd, Program};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, shutdown};
use rustix::pipe::{PipeFlags, pipe_with};

use super::channel::{LimitCounts, RelayEnvironment, RelayMessage, read_all, receive, write_order};
use super::error::PodmanError;
use super::{ARGUMENT, PreparedContainer, START};
use crate::callbacks::RunCallbacks;
use crate::error::SandboxError;
use crate::spec::SandboxSpec;
use crate::status::{PayloadEnd, StepFailure, pair};
use crate::watchdog::{LimitBreach, Watchdog};

/// How long the death of every process of a container may take after its end was decided.
const DEATH_WAIT_MS: u64 = 10_000;

/// How a container's run went.
pub(super) struct ContainerRun {
    /// How podman ended, with the payload's output.
    pub finished: FinishedProcess,
    /// The messages of the relay.
    pub report: RelayReport,
    /// The end of podman's own output.
    pub diagnosis: String,
    /// The channel, whose other end every process of the container's making holds.
    pub channel: OwnedFd,
    /// Whether it was ended because it had added more to the disk than it may.
    pub is_disk_full: bool,
}

/// What is needed to watch a container.
#[derive(Clone, Copy)]
pub(super) struct ContainerContext<'a> {
    /// The sandbox that was asked for.
    pub spec: &'a SandboxSpec,
    /// The container, ready to be started.
    pub prepared: &'a PreparedContainer,
    /// Keeps the limits that podman does not.
    pub watchdog: &'a Watchdog,
}

impl ContainerRun {
    /// Tells whether podman lived to the payload's end and so has removed the container itself.
    pub(super) fn is_orderly(&self) -> bool {
        matches!(self.finished.end, ProcessEnd::Exited(_)) && self.report.ended.is_some()
    }

    /// Tells whether every process that podman made for the container is gone.
    pub(super) fn is_deserted(&self) -> bool {
        let mut polled = [PollFd::new(&self.channel, PollFlags::empty())];
        let now = Timespec::default();
        poll(&mut polled, Some(&now)).is_ok_and(|n_ready| n_ready > 0)
    }
}

/// Everything that the relay reported.
#[derive(Default)]
pub(super) struct RelayReport {
    /// Its pidfd.
    pub relay: Option<OwnedFd>,
    /// The isolation that it found around itself.
    pub observed: Option<RelayEnvironment>,
    /// Why the payload did not run.
    pub failed: Option<StepFailure>,
    /// How the payload ended.
    pub ended: Option<(PayloadEnd, LimitCounts)>,
    /// Why the channel broke.
    pub broken: Option<Errno>,
}

/// Starts podman and follows it and the relay to their ends.
pub(super) fn attend(
    context: ContainerContext<'_>,
    program: Program,
    cancel: &Cancel,
    callbacks: RunCallbacks<'_>,
) -> Result<ContainerRun, SandboxError> {
    let ContainerContext {
        spec,
        prepared,
        watchdog,
    } = context;
    let (ours, theirs) = pair().map_err(PodmanError::call("socketpair"))?;
    let diagnosis = rustix::fs::memfd_create("kapi-podman", MemfdFlags::CLOEXEC)
        .map_err(PodmanError::call("memfd_create"))?;
    let written = diagnosis.try_clone().map_err(|source| PodmanError::Call {
        call: "dup",
        source,
    })?;
    let orders = [write_order(&prepared.start), write_order(&prepared.relay)];
    let [start, relay] = orders.map(|order| order.map_err(PodmanError::call("memfd_create")));
    let launcher = Program {
        path: spec.self_exe.clone(),
        args: [ARGUMENT, START].map(OsString::from).to_vec(),
        env: BTreeMap::new(),
        cwd: PathBuf::from("/"),
        stdin: program.stdin,
        pass_fds: [start?, written, relay?, theirs]
            .into_iter()
            .chain(program.pass_fds)
            .collect(),
        limits: program.limits,
    };
    let (until, stop) = pipe_with(PipeFlags::CLOEXEC).map_err(PodmanError::call("pipe2"))?;
    let RunCallbacks {
        on_line,
        on_listeners,
    } = callbacks;
    let mut talk = RelayConversation {
        socket: ours.as_fd(),
        n_listeners: spec.listeners.len(),
        on_listeners,
        report: RelayReport::default(),
    };
    let (ran, (report, is_disk_full)) = follow(
        launcher,
        cancel,
        on_line,
        move || {
            let is_disk_full = talk.listen_and_watch(until.as_fd(), watchdog);
            (talk.report, is_disk_full)
        },
        stop,
    );
    // The relay ends when nothing more can come from here, and the container with it. Not closed:
    // its other end tells when the last process that podman made for the container is gone.
    shutdown(&ours, Shutdown::Write).map_err(PodmanError::call("shutdown"))?;
    if let Some(relay) = &report.relay {
        await_end(relay.as_fd())?;
    }
    let finished = ran.map_err(SandboxError::Launch)?;
    if let Some(errno) = report.broken {
        return Err(PodmanError::call("recvmsg")(errno).into());
    }
    let output = read_all(diagnosis.as_fd()).map_err(PodmanError::call("pread"))?;
    Ok(ContainerRun {
        finished,
        report,
        channel: ours,
        is_disk_full: is_disk_full.map_err(PodmanError::call("watch the disk"))?,
        diagnosis: String::from_utf8_lossy(&output).trim().to_owned(),
    })
}

/// Runs podman on this thread, which its death is tied to, and the talk on another until podman ends.
fn follow<T: Send>(
    launcher: Program,
    cancel: &Cancel,
    on_line: &mut dyn FnMut(OutputLine<'_>),
    talk: impl FnOnce() -> T + Send,
    stop: OwnedFd,
) -> (Result<FinishedProcess, process::ProcessError>, T) {
    thread::scope(|scope| {
        let talking = scope.spawn(talk);
        let ran = process::run(launcher, cancel, on_line);
        drop(stop);
        let report = talking.join();
        (
            ran,
            report.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        )
    })
}

/// One conversation with a relay.
struct RelayConversation<'a> {
    socket: BorrowedFd<'a>,
    n_listeners: usize,
    on_listeners: &'a mut (dyn FnMut(Vec<TcpListener>) + Send),
    report: RelayReport,
}

impl RelayConversation<'_> {
    /// Listens as long as there may be something to hear, and meanwhile looks after the disk; tells
    /// whether the container was ended for it.
    fn listen_and_watch(
        &mut self,
        until: BorrowedFd<'_>,
        watchdog: &Watchdog,
    ) -> Result<bool, Errno> {
        if watchdog.is_idle() {
            self.listen(until, &mut |_| {});
            return Ok(false);
        }
        thread::scope(|scope| {
            let mut watching = None;
            self.listen(until, &mut |relay| {
                let guard = move || watchdog.guard(relay.as_fd());
                watching = Some(scope.spawn(guard));
            });
            // Nothing more can come, so the relay ends, and with it the watch over it.
            shutdown(self.socket, Shutdown::Write)?;
            let found = watching.map(thread::ScopedJoinHandle::join).transpose();
            let found = found.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok(found.transpose()?.flatten() == Some(LimitBreach::Disk))
        })
    }

    /// Listens until the relay is gone or `until` closes, and then takes what has arrived; `on_relay`
    /// takes the relay's pidfd once.
    fn listen(&mut self, until: BorrowedFd<'_>, on_relay: &mut dyn FnMut(OwnedFd)) {
        let mut is_known = false;
        loop {
            let mut polled = [
                PollFd::new(&self.socket, PollFlags::IN),
                PollFd::new(&until, PollFlags::empty()),
            ];
            let [message, stopped] = match poll(&mut polled, None) {
                Ok(_) => polled.map(|one| !one.revents().is_empty()),
                Err(Errno::INTR) => continue,
                Err(errno) => return self.report.broken = Some(errno),
            };
            if (message || stopped) && !self.take() {
                return;
            }
            let relay = self.report.relay.as_ref().filter(|_| !is_known);
            if let Some(relay) = relay.and_then(|relay| relay.try_clone().ok()) {
                is_known = true;
                on_relay(relay);
            }
        }
    }

    /// Takes one message; tells whether there may be more.
    fn take(&mut self) -> bool {
        let received = match receive(self.socket, RecvFlags::DONTWAIT) {
            Ok(Some(received)) => received,
            Ok(None) | Err(Errno::AGAIN) => return false,
            Err(errno) => {
                self.report.broken = Some(errno);
                return false;
            }
        };
        let descriptors = received.descriptors;
        match received.message {
            RelayMessage::Up(observed) => {
                self.report.observed = Some(observed);
                self.report.relay = descriptors.into_iter().next();
                if self.n_listeners == 0 {
                    self.let_go();
                }
            }
            RelayMessage::Listeners => {
                let listeners = descriptors.into_iter().map(TcpListener::from);
                (self.on_listeners)(listeners.collect());
                self.let_go();
            }
            RelayMessage::Failed(failure) => self.report.failed = Some(failure),
            RelayMessage::Ended(ending, met) => self.report.ended = Some((ending, met)),
        }
        true
    }

    /// Lets the relay start the payload.
    fn let_go(&self) {
        match rustix::io::write(self.socket, b"g") {
            // A relay that is gone has its own reason, which is seen by its end.
            Ok(_) | Err(_) => {}
        }
    }
}

/// Waits until the container's first process is gone, which is after every other of it.
fn await_end(relay: BorrowedFd<'_>) -> Result<(), SandboxError> {
    let limit = Timespec::try_from(Duration::from_millis(DEATH_WAIT_MS))
        .map_err(|_| PodmanError::call("poll")(Errno::INVAL))?;
    let mut polled = [PollFd::new(&relay, PollFlags::IN)];
    let n_ready = loop {
        match poll(&mut polled, Some(&limit)) {
            Err(Errno::INTR) => {}
            other => break other.map_err(PodmanError::call("poll"))?,
        }
    };
    if n_ready == 0 {
        return Err(SandboxError::StillAlive {
            waited_ms: DEATH_WAIT_MS,
        });
    }
    Ok(())
}
