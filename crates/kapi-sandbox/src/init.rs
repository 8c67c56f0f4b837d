//! The launcher: the process that the host side starts, and the leader that borrows its memory.
//!
//! launcher (dies with the host side) -> leader (dies with the launcher; pid 1 of the namespace, or a
//! subreaper when there is none) -> payload. Has one thread and prints nothing: whatever goes wrong is
//! told over the status socket. Does not know what the payload is for.

mod benchmark;
mod completion;
mod device;
mod entry;
mod etc;
mod group;
mod host_root;
pub(crate) mod landlock;
mod layer;
mod leader;
pub(crate) mod limit;
mod mount;
mod namespace;
mod network;
mod payload;
mod privilege;
mod process_view;
mod root;
mod scrub;
pub(crate) mod seccomp;
pub(crate) mod steps;

use std::fs::File;
use std::io::Read as _;
use std::mem::forget;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use self::host_root::HostRoot;
use self::layer::LayerMounts;
use self::network::SandboxNetwork;
use crate::listen::listen_at;
use crate::order::{Enclosure, LaunchOrder, LauncherWork, OrderedNetwork};
use crate::status::{LauncherMessage, StepFailure, send};
use crate::syscall::borrow::run_beside;
use crate::syscall::{exit_now, take_descriptor};

/// The first argument by which a multicall binary knows that it is the launcher.
pub const ARGUMENT: &str = "__sandbox-init";

/// The exit code of a launcher that did not run the payload; the reason is in its report.
pub(crate) const NOT_RUN: i32 = 125;
/// The descriptor of the order.
const ORDER_FD: i32 = 3;
/// The descriptor of the status socket.
const STATUS_FD: i32 = 4;
/// The first of the payload's own descriptors, as the launcher gets them.
pub(crate) const PAYLOAD_FDS_FROM: i32 = 5;
/// What an order without files made inside takes.
const ORDER_BYTES_USUAL: usize = 8 * 1024;
/// The largest order that is read.
const ORDER_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Does what the host side ordered and ends the process with the exit code.
///
/// Call it first thing in `main`, while the process has one thread, when the first argument is
/// [`ARGUMENT`]. Called by hand, without the descriptors of the host side, it does nothing.
pub fn init_main() -> ! {
    // At once, because what a program tidies up at its end the kernel takes away with it.
    exit_now(carry_out())
}

fn carry_out() -> i32 {
    let Ok((order, status)) = take_orders() else {
        return NOT_RUN;
    };
    let code = obey(&order, &status).unwrap_or_else(|failure| {
        notify(status.as_fd(), &LauncherMessage::Failed(failure));
        NOT_RUN
    });
    // The host side goes on as soon as the status socket hangs up, and then nothing may be written to it
    // any more. What else there is to take away, mounts above all, the kernel takes with this process.
    match release_standard_streams() {
        // Where they cannot be released they go with this process, and the host side waits for that.
        Ok(()) | Err(_) => {}
    }
    drop(status);
    code
}

/// Sends a message whose loss changes nothing: a reader that is gone needs none.
pub(crate) fn notify(status: BorrowedFd<'_>, message: &LauncherMessage) {
    match send(status, message, &[]) {
        // The host side is dead, and then so are we within moments.
        Ok(()) | Err(_) => {}
    }
}

fn take_orders() -> Result<(LaunchOrder, OwnedFd), Errno> {
    let order = take_descriptor(ORDER_FD)?;
    let status = take_descriptor(STATUS_FD)?;
    let mut bytes = Vec::with_capacity(ORDER_BYTES_USUAL);
    File::from(order)
        .take(ORDER_BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(|_| Errno::IO)?;
    let order = serde_json::from_slice(&bytes).map_err(|_| Errno::INVAL)?;
    Ok((order, status))
}

fn obey(order: &LaunchOrder, status: &OwnedFd) -> Result<i32, StepFailure> {
    scrub::clear_arguments_and_environment()?;
    die_with_parent()?;
    if getppid().map(|parent| parent.as_raw_nonzero().get()) != Some(order.parent_pid) {
        // The host side died before the death signal was set, so nobody waits for this.
        return Ok(NOT_RUN);
    }
    match &order.work {
        LauncherWork::Confine { enclosure, payload } => {
            let layers = layer::lock_all(enclosure)?;
            group::join(&enclosure.group_files)?;
            namespace::enter(enclosure)?;
            let beside = LauncherTasks::new(enclosure)?;
            let code = lead(
                status,
                |life| {
                    leader::confine(enclosure, payload, &beside, LeaderChannels { status, life })
                },
                |leader| beside.work(leader),
            );
            // Held until the end of this process, which comes after that of its mounts.
            layers.into_iter().for_each(forget);
            code
        }
        LauncherWork::Supervise { payload } => {
            let run = |life: &OwnedFd| leader::supervise(payload, LeaderChannels { status, life });
            lead(status, run, |_leader| {})
        }
        LauncherWork::Probe { binds } => steps::try_all(status.as_fd(), binds).map(|()| 0),
    }
}

/// Listens in the new network, which this process is in, gives the listeners to the host side, and waits until it has them.
fn hand_over_listeners(enclosure: &Enclosure, status: &OwnedFd) -> Result<(), StepFailure> {
    if enclosure.listeners.is_empty() {
        return Ok(());
    }
    let failed =
        |call: &'static str| move |errno: Errno| StepFailure::new(call, "the listeners", errno);
    let listeners = listen_at(&enclosure.listeners)?;
    let descriptors: Vec<BorrowedFd<'_>> = listeners.iter().map(AsFd::as_fd).collect();
    send(status.as_fd(), &LauncherMessage::Listening, &descriptors).map_err(failed("sendmsg"))?;
    let mut word = [0_u8];
    match rustix::io::read(status, &mut word).map_err(failed("read"))? {
        0 => Err(failed("read")(Errno::PIPE)),
        _ => Ok(()),
    }
}

/// What ties the leader to the outside.
#[derive(Debug, Clone, Copy)]
struct LeaderChannels<'a> {
    /// Where it tells how things go.
    status: &'a OwnedFd,
    /// Hangs up when the launcher ends.
    life: &'a OwnedFd,
}

/// What the launcher does for a confined leader while that goes on.
#[derive(Debug)]
struct LauncherTasks {
    layers: LayerMounts,
    network: Option<SandboxNetwork>,
    host_root: HostRoot,
    nested_namespaces: bool,
}

impl LauncherTasks {
    fn new(enclosure: &Enclosure) -> Result<Self, StepFailure> {
        let network = match enclosure.network {
            OrderedNetwork::Host => None,
            OrderedNetwork::Loopback => Some(SandboxNetwork::new()?),
        };
        Ok(Self {
            layers: LayerMounts::new(enclosure)?,
            network,
            host_root: HostRoot::new()?,
            nested_namespaces: enclosure.nested_namespaces,
        })
    }

    fn work(&self, leader: Pid) {
        self.layers.make();
        if let Some(network) = &self.network {
            network.make();
        }
        self.host_root.take_away(leader, self.nested_namespaces);
    }
}

/// Starts the leader, does something meanwhile that only calls the kernel, and takes over the leader's
/// exit code.
fn lead(
    status: &OwnedFd,
    run: impl FnOnce(&OwnedFd) -> Result<i32, StepFailure>,
    meanwhile: impl FnOnce(Pid),
) -> Result<i32, StepFailure> {
    let failed =
        |call: &'static str| move |errno: Errno| StepFailure::new(call, "the leader", errno);
    // Only the launcher keeps the writing end open: its end is the leader's sign to go.
    let (life, hold) = pipe_with(PipeFlags::CLOEXEC).map_err(failed("pipe2"))?;
    let life = &life;
    let leader = move || {
        drop(hold);
        run(life).unwrap_or_else(|failure| {
            notify(status.as_fd(), &LauncherMessage::Failed(failure));
            NOT_RUN
        })
    };
    let ended = run_beside(leader, meanwhile).map_err(failed("clone"))?;
    Ok(ended.exit_status().unwrap_or(NOT_RUN))
}

/// Asks to be killed when the parent ends.
pub(crate) fn die_with_parent() -> Result<(), StepFailure> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|errno| StepFailure::new("prctl(PR_SET_PDEATHSIG)", "the launcher", errno))
}

/// Points 0, 1 and 2 at nothing, so that only the payload's processes hold the caller's pipes.
pub(crate) fn release_standard_streams() -> Result<(), StepFailure> {
    let failed =
        |call: &'static str| move |errno: Errno| StepFailure::new(call, "/dev/null", errno);
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(failed("open"))?;
    rustix::stdio::dup2_stdin(&null).map_err(failed("dup2"))?;
    rustix::stdio::dup2_stdout(&null).map_err(failed("dup2"))?;
    rustix::stdio::dup2_stderr(&null).map_err(failed("dup2"))
}
