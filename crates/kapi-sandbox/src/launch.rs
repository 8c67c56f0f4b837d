//! The host side of a run: hands the order to the launcher, watches it, and makes sure that nothing
//! of the sandbox is alive when it returns.
//!
//! Does not know how a sandbox is built; that is `init`, in the launcher's process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_sys::cancel::Cancel;
use kapi_sys::process::{self, End, Finished, Limits, Line, Program};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::MemfdFlags;
use rustix::io::Errno;

use crate::error::SandboxError;
use crate::hint::{Host, hint};
use crate::init::ARGUMENT;
use crate::order::{Enclosure, Order, Payload, Work};
use crate::outcome::{Grade, Ran};
use crate::spec::{Level, Spec};
use crate::status::{Ending, Failure, Report, Status, pair};

/// How long the death of every process of a sandbox may take after its launcher has ended.
const DEATH_WAIT_MS: u64 = 10_000;

/// Runs a program in a sandbox to its end. `program.path` and `program.cwd` are paths inside it.
///
/// Call from a thread that lives until it returns. When it returns, no process of the sandbox is
/// alive, whatever the reason it ended for; nothing holds the mounted directories any more.
pub fn run(
    spec: &Spec,
    program: Program,
    cancel: &Cancel,
    ears: Ears<'_>,
) -> Result<Ran, SandboxError> {
    let payload = Box::new(Payload::new(&program));
    let work = match spec.level {
        Level::Native => Work::Confine {
            enclosure: Box::new(Enclosure::new(spec)),
            payload,
        },
        Level::None => Work::Supervise { payload },
        Level::Podman => {
            return Err(SandboxError::Launcher {
                end: End::Exited(1),
                output: "podman".to_owned(),
            });
        }
    };
    let carried = Carried {
        stdin: program.stdin,
        fds: program.pass_fds,
        limits: program.limits,
    };
    let (mut finished, statuses) = perform(&spec.self_exe, work, carried, cancel, ears.on_line)?;
    let mut ending = None;
    for status in &statuses {
        match status {
            Status::Failed(failure) => return Err(setup_error(failure)),
            Status::Survived(failure) => {
                return Err(SandboxError::Survived {
                    call: failure.call.clone(),
                    source: io::Error::from_raw_os_error(failure.errno),
                });
            }
            Status::Ended(ended) => ending = Some(*ended),
            Status::Leader | Status::Probed { .. } => {}
        }
    }
    finished.end = match (finished.end, ending) {
        (End::Exited(_), Some(Ending::Exited(code))) => End::Exited(code),
        (End::Exited(_), Some(Ending::Signaled(signal))) => End::Signaled(signal),
        (End::Exited(_), None) => {
            return Err(SandboxError::Launcher {
                end: finished.end,
                output: finished.stderr.text(),
            });
        }
        (end, _) => end,
    };
    Ok(Ran {
        finished,
        grade: Grade::default(),
        exceeded: None,
    })
}

/// Who is told what happens while a program runs.
pub struct Ears<'a> {
    /// Takes each line of output, on the thread that called [`run`].
    pub on_line: &'a mut dyn FnMut(Line<'_>),
    /// Takes the listeners of [`Spec::listeners`], in order, once, before the program starts; on a
    /// thread of the run. It must not wait for the program.
    pub on_listeners: &'a mut (dyn FnMut(Vec<TcpListener>) + Send),
}

/// What travels to the launcher as descriptors and limits.
pub(crate) struct Carried {
    /// Bytes for the payload's standard input.
    pub stdin: Vec<u8>,
    /// Descriptors for the payload.
    pub fds: Vec<OwnedFd>,
    /// What ends it.
    pub limits: Limits,
}

/// Runs the launcher with one order and returns what it did and said.
pub(crate) fn perform(
    self_exe: &Path,
    work: Work,
    carried: Carried,
    cancel: &Cancel,
    on_line: &mut dyn FnMut(Line<'_>),
) -> Result<(Finished, Vec<Status>), SandboxError> {
    let order = Order {
        parent_pid: rustix::process::getpid().as_raw_nonzero().get(),
        work,
    };
    let order = write_order(&order)?;
    let (reader, writer) = pair().map_err(|errno| own_error("socketpair", errno))?;
    let launcher = Program {
        path: self_exe.to_path_buf(),
        args: vec![OsString::from(ARGUMENT)],
        env: BTreeMap::new(),
        cwd: PathBuf::from("/"),
        stdin: carried.stdin,
        pass_fds: [order, writer].into_iter().chain(carried.fds).collect(),
        limits: carried.limits,
    };
    let ran = process::run(launcher, cancel, on_line);
    let mut report = Report::default();
    report
        .receive(reader.as_fd())
        .map_err(|errno| own_error("recvmsg", errno))?;
    if let Some(leader) = report.leader.as_ref() {
        await_end(leader.as_fd())?;
        report
            .receive(reader.as_fd())
            .map_err(|errno| own_error("recvmsg", errno))?;
    }
    let finished = ran.map_err(SandboxError::Launch)?;
    Ok((finished, report.statuses().map_err(SandboxError::Decode)?))
}

/// Turns a reported failure into an error with advice for this host.
pub(crate) fn setup_error(failure: &Failure) -> SandboxError {
    SandboxError::Setup {
        call: failure.call.clone(),
        target: failure.target.clone(),
        source: io::Error::from_raw_os_error(failure.errno),
        hint: hint(failure, &Host::observe()),
    }
}

fn own_error(call: &str, errno: Errno) -> SandboxError {
    setup_error(&Failure::new(call, "the launcher's channel", errno))
}

/// Writes the order to an anonymous file, read from its start by the launcher.
fn write_order(order: &Order) -> Result<OwnedFd, SandboxError> {
    let bytes = serde_json::to_vec(order).map_err(SandboxError::Encode)?;
    let failed = |call: &'static str| move |errno: Errno| own_error(call, errno);
    let file = rustix::fs::memfd_create("kapi-order", MemfdFlags::CLOEXEC)
        .map_err(failed("memfd_create"))?;
    let mut written = 0;
    while written < bytes.len() {
        let rest = bytes.get(written..).unwrap_or_default();
        let at = u64::try_from(written).map_err(|_| own_error("pwrite", Errno::FBIG))?;
        written += rustix::io::pwrite(&file, rest, at).map_err(failed("pwrite"))?;
    }
    Ok(file)
}

/// Waits until the leading process is gone. A pid namespace's first process ends only after every
/// other process of it has.
fn await_end(leader: BorrowedFd<'_>) -> Result<(), SandboxError> {
    let limit = Duration::from_millis(DEATH_WAIT_MS);
    let limit = Timespec::try_from(limit).map_err(|_| own_error("poll", Errno::INVAL))?;
    let mut polled = [PollFd::new(&leader, PollFlags::IN)];
    let n_ready = loop {
        match poll(&mut polled, Some(&limit)) {
            Err(Errno::INTR) => {}
            other => break other.map_err(|errno| own_error("poll", errno))?,
        }
    };
    if n_ready == 0 {
        return Err(SandboxError::StillAlive {
            waited_ms: DEATH_WAIT_MS,
        });
    }
    Ok(())
}
