//! The first process of a container: reports itself, listens for the host side, runs the payload.
//!
//! Its end is the end of everything in the container, and it ends when the host side does. Has one
//! thread and prints nothing. Does not know what podman was told; it looks at what is there.

use std::ffi::CString;
use std::net::TcpListener;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Resource, WaitOptions, WaitStatus, chdir, getpid,
    ioctl_tiocsctty, pidfd_open, set_dumpable_behavior, setsid, umask, wait,
};

use super::cgroup;
use super::channel::{RelayLimits, RelayMessage, RelayOrder, read_order, send};
use super::observe::observe;
use crate::init::limit::lower_one;
use crate::init::{NOT_RUN, release_standard_streams, seccomp};
use crate::order::{PayloadProgram, SystemText};
use crate::status::{PayloadEnd, StepFailure};
use crate::syscall::{
    Fork, close_later_from, execute, exit_now, fork, leave_session_keyring, location_descriptor,
    reset_signals, take_descriptor,
};

/// The descriptor of the order.
pub(super) const ORDER_FD: i32 = 3;
/// The descriptor of the channel to the host side.
pub(super) const SOCKET_FD: i32 = 4;
/// The first of the payload's descriptors: its input, output, errors and then its own.
pub(super) const PAYLOAD_FDS_FROM: i32 = 5;
/// How many standard descriptors there are.
pub(super) const N_STANDARD: i32 = 3;

/// The most descriptors of a payload's own.
const GIVEN_FDS_MAX: i32 = 128;
/// The exit code of a payload that could not be executed; the message tells why.
const NOT_EXECUTED: i32 = 127;
/// How often orphans that ended are collected.
const COLLECT_EVERY_MS: u64 = 250;
/// How much sooner than the relay the payload is chosen when memory is used up.
const OOM_SCORE: &[u8] = b"500";

/// Does what the host side ordered and returns the exit code for the container.
pub(super) fn relay_main() -> i32 {
    let Ok(socket) = take_descriptor(SOCKET_FD) else {
        return NOT_RUN;
    };
    match obey(&socket) {
        Ok(code) => code,
        Err(failure) => {
            notify(socket.as_fd(), &RelayMessage::Failed(failure));
            NOT_RUN
        }
    }
}

/// Sends a message whose loss changes nothing: a reader that is gone needs none.
fn notify(socket: BorrowedFd<'_>, said: &RelayMessage) {
    match send(socket, said, &[]) {
        // The host side is dead, and then so are we within moments.
        Ok(()) | Err(_) => {}
    }
}

fn failed(call: &'static str) -> impl Fn(Errno) -> StepFailure {
    move |errno| StepFailure::new(call, "the relay", errno)
}

fn obey(socket: &OwnedFd) -> Result<i32, StepFailure> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(failed("prctl(PR_SET_DUMPABLE)"))?;
    let order: RelayOrder = take_descriptor(ORDER_FD)
        .and_then(|file| read_order(file.as_fd()))
        .map_err(failed("read the order"))?;
    let observed = observe()?;
    let pidfd = pidfd_open(getpid(), PidfdFlags::empty()).map_err(failed("pidfd_open"))?;
    send(
        socket.as_fd(),
        &RelayMessage::Up(observed.clone()),
        &[pidfd.as_fd()],
    )
    .map_err(failed("sendmsg"))?;
    listen(socket, &order)?;
    if !may_go(socket)? {
        return Ok(NOT_RUN);
    }
    leave_session_keyring().map_err(failed("keyctl(KEYCTL_JOIN_SESSION_KEYRING)"))?;
    limit(order.limits.beside(&observed))?;
    let before = cgroup::met();
    let child = spawn(&order, socket)?;
    let Some(ended) = watch(child, socket)? else {
        return Ok(NOT_RUN);
    };
    let Some(ending) = ending(ended) else {
        return Ok(NOT_RUN);
    };
    let met = cgroup::since(cgroup::met(), before);
    notify(socket.as_fd(), &RelayMessage::Ended(ending, met));
    Ok(ending.code())
}

/// Listens at every address and hands the sockets to the host side.
fn listen(socket: &OwnedFd, order: &RelayOrder) -> Result<(), StepFailure> {
    if order.listeners.is_empty() {
        return Ok(());
    }
    let mut listeners = Vec::new();
    for address in &order.listeners {
        let listener = TcpListener::bind(address).map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            StepFailure::new("bind", &address.to_string(), errno)
        })?;
        listeners.push(listener);
    }
    let descriptors: Vec<BorrowedFd<'_>> = listeners.iter().map(std::os::fd::AsFd::as_fd).collect();
    send(socket.as_fd(), &RelayMessage::Listeners, &descriptors)
        .map_err(failed("sendmsg(SCM_RIGHTS)"))
}

/// Waits for the host side's word.
fn may_go(socket: &OwnedFd) -> Result<bool, StepFailure> {
    let mut word = [0_u8];
    loop {
        match rustix::io::read(socket, &mut word) {
            Ok(n_read) => return Ok(n_read > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(failed("read")(errno)),
        }
    }
}

fn limit(limits: RelayLimits) -> Result<(), StepFailure> {
    // What the container was given may be lower already, and nothing may raise it.
    lower_one(Resource::Data, "RLIMIT_DATA", limits.memory_bytes)?;
    lower_one(Resource::Nproc, "RLIMIT_NPROC", limits.processes)?;
    lower_one(Resource::Core, "RLIMIT_CORE", Some(0))
}

fn spawn(order: &RelayOrder, socket: &OwnedFd) -> Result<Pid, StepFailure> {
    match fork().map_err(|errno| StepFailure::new("fork", "the payload", errno))? {
        Fork::Child => become_payload(order, socket),
        Fork::Parent(child) => {
            release_standard_streams()?;
            close_payload_descriptors(&order.payload)?;
            Ok(child)
        }
    }
}

/// Leaves the payload's pipes to the payload, so that their ends are seen when it closes them.
fn close_payload_descriptors(payload: &PayloadProgram) -> Result<(), StepFailure> {
    for index in 0..N_STANDARD + count(payload)? {
        drop(take_descriptor(PAYLOAD_FDS_FROM + index).map_err(failed("fcntl(F_GETFD)"))?);
    }
    Ok(())
}

/// Returns how many descriptors came for the payload after the standard ones, its terminal included.
fn count(payload: &PayloadProgram) -> Result<i32, StepFailure> {
    let n_fds = payload.n_fds + usize::from(payload.has_terminal);
    let n_fds = i32::try_from(n_fds).ok();
    let n_fds = n_fds.filter(|n| *n <= GIVEN_FDS_MAX);
    n_fds.ok_or_else(|| failed("dup2")(Errno::MFILE))
}

/// Becomes the program, or tells why not and ends.
fn become_payload(order: &RelayOrder, socket: &OwnedFd) -> ! {
    let high = count(&order.payload).and_then(|n_fds| {
        let first = PAYLOAD_FDS_FROM + N_STANDARD + n_fds;
        rustix::io::fcntl_dupfd_cloexec(socket, first).map_err(failed("fcntl(F_DUPFD_CLOEXEC)"))
    });
    match high {
        Ok(high) => notify(high.as_fd(), &RelayMessage::Failed(start(order))),
        Err(failure) => notify(socket.as_fd(), &RelayMessage::Failed(failure)),
    }
    exit_now(NOT_EXECUTED)
}

fn start(order: &RelayOrder) -> StepFailure {
    let path = order.payload.path.path().display().to_string();
    let prepared = prepare(&order.payload).and_then(|prepared| {
        seccomp::install(order.profile())?;
        Ok(prepared)
    });
    prepared.map_or_else(
        |failure| failure,
        |(program, args, env)| StepFailure::new("execve", &path, execute(&program, &args, &env)),
    )
}

/// Takes the last steps before the program: session, signals, directory, descriptors.
fn prepare(payload: &PayloadProgram) -> Result<(CString, Vec<CString>, Vec<CString>), StepFailure> {
    let path = c_string(payload.path.as_bytes().to_vec())?;
    let args = payload
        .args
        .iter()
        .map(|arg| c_string(arg.as_bytes().to_vec()));
    let args = std::iter::once(Ok(path.clone())).chain(args);
    let args = args.collect::<Result<Vec<_>, _>>()?;
    let env = payload
        .env
        .iter()
        .map(|(name, value)| c_string(assignment(name, value)));
    let env = env.collect::<Result<Vec<_>, _>>()?;
    setsid().map_err(failed("setsid"))?;
    reset_signals();
    umask(Mode::from_raw_mode(0o022));
    prefer_as_victim()?;
    let cwd = payload.cwd.path();
    chdir(&cwd).map_err(|errno| StepFailure::new("chdir", &cwd.display().to_string(), errno))?;
    location_descriptors(payload)?;
    Ok((path, args, env))
}

/// Moves the payload's descriptors down over the relay's and closes the rest at exec.
fn location_descriptors(payload: &PayloadProgram) -> Result<(), StepFailure> {
    let n_fds = N_STANDARD + count(payload)? - i32::from(payload.has_terminal);
    // Every number moves down, so none is overwritten before it was read.
    for index in 0..n_fds {
        location_descriptor(PAYLOAD_FDS_FROM + index, index).map_err(failed("dup2"))?;
    }
    if payload.has_terminal {
        take_terminal(PAYLOAD_FDS_FROM + n_fds)?;
    }
    let first = u32::try_from(n_fds).map_err(|_| failed("dup2")(Errno::INVAL))?;
    close_later_from(first).map_err(failed("close_range"))
}

/// Makes a terminal the payload's controlling terminal and its standard streams.
fn take_terminal(number: i32) -> Result<(), StepFailure> {
    let failed =
        |call: &'static str| move |errno: Errno| StepFailure::new(call, "the terminal", errno);
    let terminal = take_descriptor(number).map_err(failed("fcntl"))?;
    ioctl_tiocsctty(&terminal).map_err(failed("ioctl(TIOCSCTTY)"))?;
    rustix::stdio::dup2_stdin(&terminal).map_err(failed("dup2"))?;
    rustix::stdio::dup2_stdout(&terminal).map_err(failed("dup2"))?;
    rustix::stdio::dup2_stderr(&terminal).map_err(failed("dup2"))
}

/// Lets the kernel choose the payload before the relay when memory is used up, so that somebody is
/// left to tell.
fn prefer_as_victim() -> Result<(), StepFailure> {
    let path = "/proc/self/oom_score_adj";
    let failed = |call: &'static str| move |errno: Errno| StepFailure::new(call, path, errno);
    // The file belongs to root while a process is opaque. Nothing foreign runs here yet.
    set_dumpable_behavior(DumpableBehavior::Dumpable).map_err(failed("prctl(PR_SET_DUMPABLE)"))?;
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(failed("open"))?;
    rustix::io::write(&file, OOM_SCORE).map_err(failed("write"))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(failed("prctl(PR_SET_DUMPABLE)"))
}

/// Writes a variable as the kernel takes it.
pub(super) fn assignment(name: &SystemText, value: &SystemText) -> Vec<u8> {
    let mut line = name.as_bytes().to_vec();
    line.push(b'=');
    line.extend_from_slice(value.as_bytes());
    line
}

fn c_string(bytes: Vec<u8>) -> Result<CString, StepFailure> {
    let refused = |_| StepFailure::new("execve", "text with a NUL byte", Errno::INVAL);
    CString::new(bytes).map_err(refused)
}

/// Waits for the payload, or `None` for the host side's end, collecting orphans meanwhile.
fn watch(child: Pid, socket: &OwnedFd) -> Result<Option<WaitStatus>, StepFailure> {
    let pidfd = pidfd_open(child, PidfdFlags::empty()).map_err(failed("pidfd_open"))?;
    let pause = Timespec::try_from(Duration::from_millis(COLLECT_EVERY_MS))
        .map_err(|_| failed("poll")(Errno::INVAL))?;
    loop {
        while let Some((pid, ended)) = collect()? {
            if pid == child {
                return Ok(Some(ended));
            }
        }
        let mut polled = [
            PollFd::new(&pidfd, PollFlags::IN),
            PollFd::new(socket, PollFlags::RDHUP),
        ];
        match poll(&mut polled, Some(&pause)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(failed("poll")(errno)),
        }
        let [_, host] = &polled;
        if host.revents().intersects(PollFlags::HUP | PollFlags::RDHUP) {
            return Ok(None);
        }
    }
}

fn collect() -> Result<Option<(Pid, WaitStatus)>, StepFailure> {
    match wait(WaitOptions::NOHANG) {
        Ok(ended) => Ok(ended),
        Err(Errno::CHILD) => Ok(None),
        Err(errno) => Err(failed("wait4")(errno)),
    }
}

fn ending(ended: WaitStatus) -> Option<PayloadEnd> {
    let signal = ended.terminating_signal().map(PayloadEnd::Signaled);
    ended.exit_status().map(PayloadEnd::Exited).or(signal)
}
