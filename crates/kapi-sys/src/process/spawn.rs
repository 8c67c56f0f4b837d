//! Starts a child: clone, the few system calls that set its world, exec.
//!
//! Written out instead of using the standard library's command because the child's descriptors
//! 3, 4, … must land exactly where the caller wants them, without stepping on a hidden pipe.
//! Between fork and exec nothing allocates, locks or unwinds. Knows nothing of limits or output.

use std::ffi::{CString, OsStr, OsString, c_char, c_int};
use std::fs::File;
use std::io::Read as _;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::time::Instant;
use std::{io, ptr};

use rustix::io::fcntl_dupfd_cloexec;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, getpid};

use super::child::Child;
use super::{ProcessError, Program};

/// A child that has executed its program, and our ends of its standard streams.
pub(super) struct SpawnedChild {
    pub(super) child: Child,
    /// Since when its limits count.
    pub(super) started: Instant,
    /// Absent when there is nothing to write.
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// Starts the program and returns once it has been executed, or tells why it could not be.
pub(super) fn spawn(program: &Program, started: Instant) -> Result<SpawnedChild, ProcessError> {
    let start = |source| ProcessError::Start {
        path: program.path.clone(),
        source,
    };
    let (streams, ours) = Streams::open(program).map_err(start)?;
    let (report_read, report_write) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| start(e.into()))?;
    let launch = SpawnPlan::prepare(program, &streams, &report_write).map_err(start)?;
    drop((streams, report_write));
    let pid = fork_and_exec(&launch).map_err(start)?;
    let mut child = Child::adopt(pid).map_err(start)?;
    // Closes our copies of the child's ends; otherwise its outputs would never reach their end.
    drop(launch);
    match read_report(report_read) {
        Ok(None) => {
            let ParentStreams {
                stdin,
                stdout,
                stderr,
            } = ours;
            Ok(SpawnedChild {
                child,
                started,
                stdin,
                stdout,
                stderr,
            })
        }
        Ok(Some(failure)) => {
            // It has ended by itself.
            child.reap().map_err(start)?;
            Err(failure.explain(program))
        }
        Err(source) => Err(start(source)),
    }
}

/// The child's ends of its standard streams.
struct Streams {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// Our ends of the child's standard streams.
struct ParentStreams {
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl Streams {
    fn open(program: &Program) -> io::Result<(Self, ParentStreams)> {
        let (stdin, our_stdin) = if program.stdin.is_empty() {
            (OwnedFd::from(File::open("/dev/null")?), None)
        } else {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
            (read, Some(write))
        };
        let (our_stdout, stdout) = pipe_with(PipeFlags::CLOEXEC)?;
        let (our_stderr, stderr) = pipe_with(PipeFlags::CLOEXEC)?;
        for fd in our_stdin.iter().chain([&our_stdout, &our_stderr]) {
            // Concerns our end only: the two ends of a pipe are separate open files.
            rustix::io::ioctl_fionbio(fd, true)?;
        }
        let ours = ParentStreams {
            stdin: our_stdin,
            stdout: our_stdout,
            stderr: our_stderr,
        };
        Ok((
            Self {
                stdin,
                stdout,
                stderr,
            },
            ours,
        ))
    }
}

/// Everything the child uses, allocated before the fork because the child must not allocate.
struct SpawnPlan {
    path: CString,
    cwd: CString,
    args: Strings,
    env: Strings,
    /// The descriptor that becomes 0, 1, 2, … All are numbered above every target.
    sources: Vec<OwnedFd>,
    /// Where the child reports a failure; exec closes it.
    report: OwnedFd,
    parent: Pid,
}

impl SpawnPlan {
    fn prepare(program: &Program, streams: &Streams, report: &OwnedFd) -> io::Result<Self> {
        if !program.path.is_absolute() {
            let message = "the program's path is not absolute";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let wanted = [&streams.stdin, &streams.stdout, &streams.stderr];
        let wanted: Vec<_> = wanted.into_iter().chain(&program.pass_fds).collect();
        let first_free = c_int::try_from(wanted.len()).map_err(io::Error::other)?;
        let mut sources = Vec::with_capacity(wanted.len());
        for fd in wanted {
            sources.push(fcntl_dupfd_cloexec(fd.as_fd(), first_free)?);
        }
        let args = std::iter::once(program.path.as_os_str());
        Ok(Self {
            path: c_string(program.path.as_os_str())?,
            cwd: c_string(program.cwd.as_os_str())?,
            args: Strings::new(
                args.chain(program.args.iter().map(OsString::as_os_str))
                    .map(c_string),
            )?,
            env: Strings::new(
                program
                    .env
                    .iter()
                    .map(|(name, value)| c_assignment(name, value)),
            )?,
            sources,
            report: fcntl_dupfd_cloexec(report.as_fd(), first_free)?,
            parent: getpid(),
        })
    }
}

/// Owned strings and the null-terminated array of pointers into them that exec wants.
struct Strings {
    pointers: Vec<*const c_char>,
    _owned: Vec<CString>,
}

impl Strings {
    fn new(strings: impl Iterator<Item = io::Result<CString>>) -> io::Result<Self> {
        let owned = strings.collect::<io::Result<Vec<_>>>()?;
        let pointers = owned
            .iter()
            .map(|s| s.as_ptr())
            .chain([ptr::null()])
            .collect();
        Ok(Self {
            pointers,
            _owned: owned,
        })
    }
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

fn c_assignment(name: &OsStr, value: &OsStr) -> io::Result<CString> {
    if name.is_empty() || name.as_bytes().contains(&b'=') {
        let message = "an environment variable's name is empty or contains '='";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(CString::new(
        [name.as_bytes(), b"=", value.as_bytes()].concat(),
    )?)
}

/// What the child was doing when the system refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum SpawnStep {
    /// Making its session, tying its life to ours, or placing its descriptors.
    Arrange = 1,
    /// Entering the working directory.
    Enter = 2,
    /// Executing the program.
    Execute = 3,
}

/// A failure between fork and exec, as the child reports it.
struct SpawnFailure {
    step: SpawnStep,
    errno: i32,
}

impl SpawnFailure {
    fn to_bytes(&self) -> [u8; 5] {
        let [a, b, c, d] = self.errno.to_ne_bytes();
        [self.step as u8, a, b, c, d]
    }

    fn from_bytes([step, a, b, c, d]: [u8; 5]) -> Self {
        let step = match step {
            2 => SpawnStep::Enter,
            3 => SpawnStep::Execute,
            _ => SpawnStep::Arrange,
        };
        Self {
            step,
            errno: i32::from_ne_bytes([a, b, c, d]),
        }
    }

    fn explain(&self, program: &Program) -> ProcessError {
        let source = io::Error::from_raw_os_error(self.errno);
        match self.step {
            SpawnStep::Enter => ProcessError::WorkingDirectory {
                path: program.cwd.clone(),
                source,
            },
            // A script whose interpreter is missing gives the same number, but the file is there.
            SpawnStep::Execute if self.errno == libc::ENOENT && !program.path.exists() => {
                ProcessError::NotFound {
                    path: program.path.clone(),
                }
            }
            SpawnStep::Arrange | SpawnStep::Execute => ProcessError::Start {
                path: program.path.clone(),
                source,
            },
        }
    }
}

/// Reads the child's report: nothing when the exec closed the pipe.
fn read_report(report: OwnedFd) -> io::Result<Option<SpawnFailure>> {
    let mut bytes = Vec::new();
    File::from(report).take(5).read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let bytes = <[u8; 5]>::try_from(bytes).map_err(|_| io::Error::other("a torn report"))?;
    Ok(Some(SpawnFailure::from_bytes(bytes)))
}

/// Bytes of stack for the child between fork and exec. It calls nothing that recurses or allocates.
const CHILD_STACK_BYTES: usize = 64 * 1024;

/// Starts the child and returns when it has executed its program or ended.
///
/// The child borrows our memory until then, and this thread waits: copying the tables of a large
/// process only to throw them away at exec would cost more than everything else here. All signals are
/// blocked meanwhile, so that none of our handlers runs in the child.
#[expect(unsafe_code, reason = "clone has no safe form")]
fn fork_and_exec(launch: &SpawnPlan) -> io::Result<Pid> {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    let mut stack = vec![MaybeUninit::<u128>::uninit(); CHILD_STACK_BYTES / size_of::<u128>()];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: `sigfillset` initialises `all` before it is read, the mask call initialises `before`.
    // The child runs on a stack of its own, aligned and unused by anybody else, and only
    // `child_main`, which keeps to async-signal-safe calls, writes nothing that we read but `errno`,
    // and never returns; `launch` and the stack outlive it, because this thread does not go on before.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let top = stack.as_mut_ptr_range().end.cast();
        let argument = ptr::from_ref(launch).cast_mut().cast();
        let pid = libc::clone(child_main, top, flags, argument);
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        (pid > 0).then(|| Pid::from_raw(pid)).flatten().ok_or(error)
    }
}

/// The child's life: executes the program, or reports why not and ends.
extern "C" fn child_main(launch: *mut libc::c_void) -> c_int {
    child_of_clone(launch)
}

#[expect(
    unsafe_code,
    reason = "only raw system calls are allowed between fork and exec"
)]
fn child_of_clone(launch: *mut libc::c_void) -> ! {
    // SAFETY: the pointer is the `SpawnPlan` that `fork_and_exec` keeps alive; nothing changes it.
    // `_exit` ends this process alone.
    unsafe {
        let launch = &*launch.cast::<SpawnPlan>().cast_const();
        let bytes = exec_in_child(launch).to_bytes();
        libc::write(
            launch.report.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
        );
        libc::_exit(127);
    }
}

/// Arranges the child's world and executes the program; returns only on failure.
///
/// # Safety
/// To be called in a freshly cloned child, once.
#[expect(
    unsafe_code,
    reason = "only raw system calls are allowed between fork and exec"
)]
unsafe fn exec_in_child(launch: &SpawnPlan) -> SpawnFailure {
    // SAFETY: every pointer comes from `launch`, which outlives the call and was built before the
    // fork; nothing here allocates, locks or unwinds.
    unsafe {
        let fail = |step| SpawnFailure {
            step,
            errno: *libc::__errno_location(),
        };
        if libc::setsid() == -1 || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) == -1
        {
            return fail(SpawnStep::Arrange);
        }
        // The parent may have died before the line above took effect.
        if libc::getppid() != launch.parent.as_raw_pid() {
            libc::_exit(127);
        }
        let mut target: c_int = 0;
        for source in &launch.sources {
            if libc::dup2(source.as_raw_fd(), target) == -1 {
                return fail(SpawnStep::Arrange);
            }
            target += 1;
        }
        let flags = libc::CLOSE_RANGE_CLOEXEC;
        if libc::syscall(libc::SYS_close_range, target, c_int::MAX, flags) == -1 {
            return fail(SpawnStep::Arrange);
        }
        reset_signals();
        if libc::chdir(launch.cwd.as_ptr()) == -1 {
            return fail(SpawnStep::Enter);
        }
        let (args, env) = (&launch.args.pointers, &launch.env.pointers);
        libc::execve(launch.path.as_ptr(), args.as_ptr(), env.as_ptr());
        fail(SpawnStep::Execute)
    }
}

/// Gives the child the default action for every signal and blocks none.
///
/// Exec keeps ignored signals ignored: a `nohup` or a runtime that ignores `SIGPIPE` would reach
/// the program otherwise. The system is asked directly, because libc refuses the two signals it
/// keeps for itself.
///
/// # Safety
/// To be called in a freshly cloned child.
#[expect(
    unsafe_code,
    reason = "only raw system calls are allowed between fork and exec"
)]
unsafe fn reset_signals() {
    const LAST_SIGNAL: c_int = 64;
    // All zero means: default action, no flags, nothing masked. No system's structure is larger.
    const DEFAULT_ACTION: [u64; 4] = [0; 4];
    const SIGNAL_SET_BYTES: usize = 8;
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the action is as large as the system reads; `SIGKILL` and `SIGSTOP` are refused
    // harmlessly; `sigemptyset` initialises `none`.
    unsafe {
        for number in 1..=LAST_SIGNAL {
            let action = DEFAULT_ACTION.as_ptr();
            let old = ptr::null_mut::<u64>();
            libc::syscall(
                libc::SYS_rt_sigaction,
                number,
                action,
                old,
                SIGNAL_SET_BYTES,
            );
        }
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
    }
}
