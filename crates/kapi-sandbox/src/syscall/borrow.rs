//! A child that borrows this process's memory while this process waits, or does next to nothing.
//!
//! The launcher only waits for the leader, and the leader for the payload's exec, so copying their
//! memory and throwing it away again would be most of what they cost. Knows nothing of what runs.

use std::ptr;

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, waitpid};

use super::{check, exit_now};

/// Bytes of stack for a child. Only what is used is ever backed by memory.
const STACK_BYTES: usize = 1 << 20;
/// Bytes below it that end a child which needs more.
const GUARD_BYTES: usize = 1 << 16;

/// Starts a child and returns when it has ended or executed a program; its exit code is what `run`
/// returns.
///
/// The child has descriptors, directory and signal dispositions of its own. What it changes in memory
/// this process sees afterwards, so `run` must leave everything it borrows as valid as it found it: it
/// may close descriptors that were moved into it, which closes the child's copies alone.
pub(crate) fn start_borrowing<F: FnOnce() -> i32>(run: F) -> Result<Pid, Errno> {
    // This process goes on only when the child has left its memory, so the child is alone in it.
    start(&mut Some(run), libc::CLONE_VFORK)
}

/// Runs a child to its end and returns how it ended; `meanwhile` runs beside it and is told its number.
///
/// They are two threads of one memory of which the C library and the allocator know one: `meanwhile`
/// may only call the kernel, by ways that neither allocate nor touch `errno`, and touch atomics. As for
/// the rest, like [`start_borrowing`].
pub(crate) fn run_beside<F: FnOnce() -> i32>(
    run: F,
    meanwhile: impl FnOnce(Pid),
) -> Result<WaitStatus, Errno> {
    let mut run = Some(run);
    let child = start(&mut run, 0)?;
    meanwhile(child);
    // What the child runs lies in this frame, so this returns only when there is no child any more.
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, ended))) => return Ok(ended),
            Ok(None) | Err(Errno::INTR) => {}
            // There is none already.
            Err(errno) => return Err(errno),
        }
    }
}

#[expect(unsafe_code, reason = "clone has no safe binding")]
fn start<F: FnOnce() -> i32>(run: &mut Option<F>, wait: i32) -> Result<Pid, Errno> {
    let top = stack()?;
    let flags = libc::CLONE_VM | wait | libc::SIGCHLD;
    // SAFETY: this process has one thread, and both callers see to it that the child is alone in this
    // memory or beside code that leaves it alone, and that `run` outlives the child; `enter` is given
    // the very `run` it was made for, and never returns; the stack is unused, aligned by being a page's
    // end, and never given back.
    let result = unsafe { libc::clone(enter::<F>, top, flags, ptr::from_mut(run).cast()) };
    let pid = check(i64::from(result))?;
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.ok_or(Errno::CHILD)
}

/// The child's life.
extern "C" fn enter<F: FnOnce() -> i32>(run: *mut libc::c_void) -> libc::c_int {
    exit_now(take::<F>(run).map_or(libc::EXIT_FAILURE, |run| run()))
}

#[expect(unsafe_code, reason = "the closure travels as a bare pointer")]
fn take<F: FnOnce() -> i32>(run: *mut libc::c_void) -> Option<F> {
    // SAFETY: `start_borrowing` passes a pointer to its own `Option<F>`, which nobody else touches until
    // this process has ended.
    unsafe { (*run.cast::<Option<F>>()).take() }
}

/// Makes a stack and returns its top. It is left to the end of this process: the caller starts one child
/// and then only waits, and giving memory back while another processor has it in use stops both.
#[expect(unsafe_code, reason = "anonymous memory has no safe binding")]
fn stack() -> Result<*mut libc::c_void, Errno> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: new memory at an address of the kernel's choice; its lowest pages become a guard.
    unsafe {
        let bottom = libc::mmap(ptr::null_mut(), STACK_BYTES, access, flags, -1, 0);
        if bottom == libc::MAP_FAILED {
            check(-1)?;
        }
        let guard = libc::mprotect(bottom, GUARD_BYTES, libc::PROT_NONE);
        check(i64::from(guard))?;
        Ok(bottom.wrapping_byte_add(STACK_BYTES))
    }
}
