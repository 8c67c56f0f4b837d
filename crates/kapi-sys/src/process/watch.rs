//! Follows a child to its end: feeds its input, reads its outputs, enforces its limits.
//!
//! One thread, one `poll`; nothing here can block on the child. Knows nothing of how the child
//! was started or of what its output means.

use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use std::{io, ptr};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::child::{Child, timespec};
use super::output::Output;
use super::spawn::SpawnedChild;
use super::{CapturedOutput, OutputLine, ProcessEnd, ProcessLimits};
use crate::cancel::Cancel;

/// The longest the cancel flag goes unread.
const CANCEL_POLL: Duration = Duration::from_millis(50);
/// The longest we wait after the child's end for somebody else to close its outputs.
const DRAIN_WAIT_MAX: Duration = Duration::from_millis(250);
/// The most that is read after the child's end; more than any pipe holds.
const DRAIN_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes read or written at once: the usual capacity of a pipe.
const CHUNK_BYTES: usize = 64 * 1024;

/// A child under watch.
pub(super) struct ProcessWatch<'a> {
    child: Child,
    over: Option<BorrowedFd<'a>>,
    input: InputPipe,
    stdout: OutputSource,
    stderr: OutputSource,
    limits: ProcessLimits,
    started: Instant,
    last_output: Instant,
    buffer: Vec<u8>,
}

/// A child that is over and still to be reaped. Unless it has ended it is left to end by itself.
#[derive(Debug)]
pub(super) struct UnreapedChild {
    child: Child,
    has_ended: bool,
}

impl UnreapedChild {
    /// Waits for the child's end, ends what it left of its group, and reaps it.
    pub(super) fn reap(&mut self) -> io::Result<ProcessEnd> {
        if !self.has_ended {
            self.child.await_end()?;
            self.child.kill_group()?;
        }
        self.child.reap()
    }
}

/// What a watched child left behind.
#[derive(Debug)]
pub(super) struct WatchOutcome {
    pub(super) last: UnreapedChild,
    /// For what it was ended, if it was.
    pub(super) forced: Option<ProcessEnd>,
    pub(super) stdout: CapturedOutput,
    pub(super) stderr: CapturedOutput,
}

impl<'a> ProcessWatch<'a> {
    /// Takes charge of a child. It is over when it has ended, or when all others hang up at `over`.
    pub(super) fn new(
        spawned: SpawnedChild,
        stdin: Vec<u8>,
        limits: ProcessLimits,
        over: Option<BorrowedFd<'a>>,
    ) -> Self {
        let output = || Output::new(limits.tail_bytes_max, limits.line_bytes_max);
        let started = spawned.started;
        Self {
            child: spawned.child,
            over,
            input: InputPipe {
                fd: spawned.stdin,
                bytes: stdin,
                written: 0,
            },
            stdout: OutputSource {
                fd: Some(spawned.stdout),
                output: output(),
            },
            stderr: OutputSource {
                fd: Some(spawned.stderr),
                output: output(),
            },
            limits,
            started,
            last_output: started,
            buffer: Vec::with_capacity(CHUNK_BYTES),
        }
    }

    /// Follows the child until it is over, or to the limit that ends it.
    pub(super) fn finish(
        mut self,
        cancel: &Cancel,
        on_line: &mut dyn FnMut(OutputLine<'_>),
    ) -> io::Result<WatchOutcome> {
        let forced = self.follow(cancel, on_line)?;
        let has_ended = forced.is_some() || self.child.has_ended()?;
        if forced.is_some() {
            self.child.kill_tree()?;
        } else if has_ended {
            // The child is not reaped, so its group is still its own.
            self.child.kill_group()?;
        }
        self.drain(on_line)?;
        Ok(WatchOutcome {
            last: UnreapedChild {
                child: self.child,
                has_ended,
            },
            forced,
            stdout: self.stdout.output.into_captured(),
            stderr: self.stderr.output.into_captured(),
        })
    }

    /// Serves the child until it is over (`None`) or has to be ended.
    fn follow(
        &mut self,
        cancel: &Cancel,
        on_line: &mut dyn FnMut(OutputLine<'_>),
    ) -> io::Result<Option<ProcessEnd>> {
        loop {
            let is_over = self.wait(self.longest_wait(), EndOfChild::Wakes)?;
            self.input.write()?;
            if self.read(on_line)? > 0 {
                self.last_output = Instant::now();
            }
            if is_over {
                return Ok(None);
            }
            if let Some(end) = self.limit_passed(cancel) {
                return Ok(Some(end));
            }
        }
    }

    fn limit_passed(&self, cancel: &Cancel) -> Option<ProcessEnd> {
        if cancel.is_raised() {
            Some(ProcessEnd::Cancelled)
        } else if self.started.elapsed() >= self.limits.deadline {
            Some(ProcessEnd::DeadlinePassed)
        } else if self
            .limits
            .idle
            .is_some_and(|idle| self.last_output.elapsed() >= idle)
        {
            Some(ProcessEnd::IdlePassed)
        } else {
            None
        }
    }

    fn longest_wait(&self) -> Duration {
        let deadline = self.limits.deadline.saturating_sub(self.started.elapsed());
        let idle = self
            .limits
            .idle
            .map(|idle| idle.saturating_sub(self.last_output.elapsed()));
        CANCEL_POLL.min(deadline).min(idle.unwrap_or(CANCEL_POLL))
    }

    /// Reads what is left in the outputs of an ended child.
    ///
    /// Somebody who left the group may hold an output open and may even go on writing; both the
    /// time and the bytes we grant it are bounded.
    fn drain(&mut self, on_line: &mut dyn FnMut(OutputLine<'_>)) -> io::Result<()> {
        let until = Instant::now() + DRAIN_WAIT_MAX;
        let mut bytes_left = DRAIN_BYTES_MAX;
        let mut has_hunted = false;
        while self.stdout.fd.is_some() || self.stderr.fd.is_some() {
            let n_read = self.read(on_line)?;
            bytes_left = bytes_left.saturating_sub(n_read);
            if n_read > 0 && bytes_left > 0 {
                continue;
            }
            let wait_left = until.saturating_duration_since(Instant::now());
            if wait_left.is_zero() || bytes_left == 0 {
                break;
            }
            self.wait(wait_left.min(CANCEL_POLL), EndOfChild::IsKnown)?;
            if !has_hunted && wait_left < DRAIN_WAIT_MAX - CANCEL_POLL {
                self.child.kill_session()?;
                has_hunted = true;
            }
        }
        self.stdout
            .finish(&mut |line| on_line(OutputLine::Stdout(line)));
        self.stderr
            .finish(&mut |line| on_line(OutputLine::Stderr(line)));
        Ok(())
    }

    /// Waits until a stream is ready or the time is over. Tells whether the child is over.
    fn wait(&self, longest: Duration, end_of_child: EndOfChild) -> io::Result<bool> {
        let mut fds = Vec::with_capacity(5);
        let mut n_signs = 0;
        if end_of_child == EndOfChild::Wakes {
            fds.push(PollFd::from_borrowed_fd(self.child.pidfd(), PollFlags::IN));
            // Nothing is asked for, so that only a hang-up wakes.
            let over = self.over.iter();
            fds.extend(over.map(|fd| PollFd::new(fd, PollFlags::empty())));
            n_signs = fds.len();
            fds.extend(
                self.input
                    .fd
                    .iter()
                    .map(|fd| PollFd::new(fd, PollFlags::OUT)),
            );
        }
        for source in [&self.stdout, &self.stderr] {
            fds.extend(source.fd.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        }
        match poll(&mut fds, Some(&timespec(longest))) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut signs = fds.iter().take(n_signs);
        Ok(signs.any(|sign| !sign.revents().is_empty()))
    }

    /// Reads at most one chunk of each output and returns how many bytes came.
    fn read(&mut self, on_line: &mut dyn FnMut(OutputLine<'_>)) -> io::Result<usize> {
        let buffer = &mut self.buffer;
        let n_stdout = self
            .stdout
            .read(buffer, &mut |line| on_line(OutputLine::Stdout(line)))?;
        let n_stderr = self
            .stderr
            .read(buffer, &mut |line| on_line(OutputLine::Stderr(line)))?;
        Ok(n_stdout + n_stderr)
    }
}

/// Whether a wait also watches for the end of the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndOfChild {
    Wakes,
    IsKnown,
}

/// Our end of an output; absent once it has reached its end.
struct OutputSource {
    fd: Option<OwnedFd>,
    output: Output,
}

impl OutputSource {
    fn read(&mut self, buffer: &mut Vec<u8>, on_line: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        let Some(fd) = &self.fd else { return Ok(0) };
        buffer.clear();
        match rustix::io::read(fd, spare_capacity(buffer)) {
            Ok(0) => {
                self.finish(on_line);
                Ok(0)
            }
            Ok(n) => {
                self.output.feed(buffer, on_line);
                Ok(n)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    fn finish(&mut self, on_line: &mut dyn FnMut(&[u8])) {
        if self.fd.take().is_some() {
            self.output.finish(on_line);
        }
    }
}

/// Our end of the input; absent once all is written or nobody reads.
struct InputPipe {
    fd: Option<OwnedFd>,
    bytes: Vec<u8>,
    written: usize,
}

impl InputPipe {
    fn write(&mut self) -> io::Result<()> {
        while let Some(fd) = &self.fd {
            let rest = self.bytes.get(self.written..).unwrap_or_default();
            if rest.is_empty() {
                self.close();
                break;
            }
            let chunk = rest.get(..CHUNK_BYTES).unwrap_or(rest);
            match write_without_sigpipe(fd, chunk) {
                Ok(n) => self.written += n,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // A program need not read its input.
                Err(Errno::PIPE) => self.close(),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        self.fd = None;
        self.bytes = Vec::new();
        self.written = 0;
    }
}

/// Writes to a pipe whose reader may be gone, whatever this process does on `SIGPIPE`.
#[expect(unsafe_code, reason = "masking a signal for one call has no safe form")]
fn write_without_sigpipe(fd: &OwnedFd, bytes: &[u8]) -> rustix::io::Result<usize> {
    let mut pipe = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    let at_once = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both sets are initialised by the calls that first receive them; the mask is this
    // thread's own and is put back before returning.
    unsafe {
        libc::sigemptyset(pipe.as_mut_ptr());
        libc::sigaddset(pipe.as_mut_ptr(), libc::SIGPIPE);
        libc::pthread_sigmask(libc::SIG_BLOCK, pipe.as_ptr(), before.as_mut_ptr());
        let result = rustix::io::write(fd, bytes);
        if result == Err(Errno::PIPE) {
            // The signal was sent to this thread and is pending; taking it makes it harmless.
            libc::sigtimedwait(pipe.as_ptr(), ptr::null_mut(), &raw const at_once);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        result
    }
}
