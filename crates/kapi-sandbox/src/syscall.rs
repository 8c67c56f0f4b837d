//! The system calls that no safe binding offers, each behind the smallest safe function.
//!
//! All unsafe code of the crate is here. Everything but [`set_mount_attributes`] is for the launcher
//! and its children, which have one thread. Knows nothing of what the calls are for.

pub(crate) mod borrow;
pub(crate) mod counter;
pub(crate) mod restrict;

use std::ffi::CString;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Setter, ioctl};
use rustix::process::Pid;
use rustix::thread::UnshareFlags;

/// Which side of a fork this is.
#[derive(Debug)]
pub(crate) enum Fork {
    /// The new process.
    Child,
    /// The old one, with the new one's id.
    Parent(Pid),
}

/// `struct mount_attr` of `mount_setattr(2)`.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    userns_fd: u64,
}

/// The largest capability number that can be dropped; the kernel ends the list earlier.
const CAPABILITIES_MAX: libc::c_ulong = 63;
/// `KEYCTL_JOIN_SESSION_KEYRING`.
const JOIN_SESSION_KEYRING: libc::c_long = 1;
/// `SIOCSIFFLAGS`.
const SET_INTERFACE_FLAGS: Opcode = 0x8914;
/// The last signal that has a disposition of its own in the classic range.
const SIGNALS_MAX: i32 = 31;

fn check(result: i64) -> Result<i64, Errno> {
    if result >= 0 {
        return Ok(result);
    }
    let errno = std::io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO);
    Err(Errno::from_raw_os_error(errno))
}

/// Splits the process in two.
#[expect(unsafe_code, reason = "fork has no safe binding")]
pub(crate) fn fork() -> Result<Fork, Errno> {
    // SAFETY: the launcher has one thread, so the child's memory, allocator and locks are whole.
    let pid = check(i64::from(unsafe { libc::fork() }))?;
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    Ok(pid.map_or(Fork::Child, Fork::Parent))
}

/// Ends this process at once, without the exit handlers that belong to the process it was forked from.
#[expect(unsafe_code, reason = "_exit has no safe binding")]
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` touches no memory and does not return.
    unsafe { libc::_exit(code) }
}

/// Leaves the namespaces named by the flags for new ones.
#[expect(
    unsafe_code,
    reason = "rustix marks unshare unsafe for CLONE_FILES, which is never asked for"
)]
pub(crate) fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    // SAFETY: the flags never hold CLONE_FILES, the one that would split the descriptor table.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// Whether a change to a mount reaches the mounts below it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MountScope {
    /// This mount alone.
    One,
    /// It and everything below.
    Recursive,
}

/// Adds `MOUNT_ATTR_*` flags to the mount a descriptor stands for.
#[expect(unsafe_code, reason = "mount_setattr has no safe binding")]
pub(crate) fn set_mount_attributes(
    mount: BorrowedFd<'_>,
    set: u64,
    reach: MountScope,
) -> Result<(), Errno> {
    let attributes = MountAttributes {
        set,
        clear: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let flags = match reach {
        MountScope::One => libc::AT_EMPTY_PATH,
        MountScope::Recursive => libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
    };
    // SAFETY: the path is a terminated empty string and the structure lives through the call with its
    // true size.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    check(result).map(|_| ())
}

/// Replaces the program; returns only if that failed.
#[expect(
    unsafe_code,
    reason = "execve has no safe binding that keeps the process"
)]
pub(crate) fn execute(path: &CString, args: &[CString], env: &[CString]) -> Errno {
    let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
        texts
            .iter()
            .map(|text| text.as_ptr())
            .chain([std::ptr::null()])
            .collect()
    };
    let (args, env) = (pointers(args), pointers(env));
    // SAFETY: both arrays end with a null pointer and hold pointers to terminated strings that outlive
    // the call.
    let result = unsafe { libc::execve(path.as_ptr(), args.as_ptr(), env.as_ptr()) };
    check(i64::from(result)).err().unwrap_or(Errno::IO)
}

/// Empties the capability bounding set.
#[expect(
    unsafe_code,
    reason = "prctl by number reaches capabilities newer than any binding"
)]
pub(crate) fn drop_bounding_capabilities() -> Result<(), Errno> {
    for capability in 0..=CAPABILITIES_MAX {
        // SAFETY: this prctl takes integers only.
        match check(i64::from(unsafe {
            libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0)
        })) {
            Ok(_) => {}
            // The first number that the kernel does not know is the end of the list.
            Err(Errno::INVAL) if capability > 0 => return Ok(()),
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Joins a new empty session keyring, so that keys of the host session are out of reach.
#[expect(unsafe_code, reason = "keyctl has no safe binding")]
pub(crate) fn leave_session_keyring() -> Result<(), Errno> {
    // SAFETY: a null name asks for an anonymous keyring; nothing is read or written.
    let result = unsafe {
        libc::syscall(
            libc::SYS_keyctl,
            JOIN_SESSION_KEYRING,
            std::ptr::null::<libc::c_char>(),
            0,
            0,
            0,
        )
    };
    match check(result) {
        // A kernel without keyrings has no keys to hide.
        Ok(_) | Err(Errno::NOSYS) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Brings the loopback interface of the current network namespace up, without the C library.
#[expect(unsafe_code, reason = "the interface ioctl has no safe binding")]
pub(crate) fn raise_loopback(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: an all-zero `ifreq` is a valid value of a plain C structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags =
        libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).map_err(|_| Errno::INVAL)?;
    // SAFETY: this call reads an `ifreq`, and the request is an initialised one.
    unsafe { ioctl(socket, Setter::<SET_INTERFACE_FLAGS, _>::new(request)) }
}

/// Gives every signal its default meaning and lets all through, as a new program expects.
#[expect(unsafe_code, reason = "signal dispositions have no safe binding")]
pub(crate) fn reset_signals() {
    for signal in 1..=SIGNALS_MAX {
        // SAFETY: the default disposition runs no code of ours. KILL and STOP refuse, which is right.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: the set is initialised by `sigemptyset` before it is read.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Makes the descriptor numbered `to` the same as the one numbered `from`, kept over an exec.
#[expect(unsafe_code, reason = "the target is a number that nobody owns yet")]
pub(crate) fn location_descriptor(from: RawFd, to: RawFd) -> Result<(), Errno> {
    // SAFETY: the caller is about to execute a program; no owner of `to` will be used again.
    check(i64::from(unsafe { libc::dup2(from, to) })).map(|_| ())
}

/// Marks every descriptor from `first` on to be closed at exec.
#[expect(unsafe_code, reason = "close_range has no safe binding")]
pub(crate) fn close_later_from(first: libc::c_uint) -> Result<(), Errno> {
    let flags = libc::CLOSE_RANGE_CLOEXEC;
    // SAFETY: only a flag of the descriptors changes.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, flags) })
        .map(|_| ())
}

/// Takes over a descriptor that the host side passed under a fixed number.
#[expect(
    unsafe_code,
    reason = "an inherited descriptor has no owner until it is taken"
)]
pub(crate) fn take_descriptor(number: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: the call only asks whether the number is open.
    check(i64::from(unsafe { libc::fcntl(number, libc::F_GETFD) }))?;
    // SAFETY: it is open, and the launcher takes each of its fixed numbers once, before anything else
    // opens a descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Zeroes a range of this process's own memory that the kernel named as its arguments or environment.
#[expect(
    unsafe_code,
    reason = "the kernel shows these bytes to other processes"
)]
pub(crate) fn clear_memory(start: usize, end: usize) {
    if start == 0 || end <= start {
        return;
    }
    let length = end - start;
    let start = std::ptr::with_exposed_provenance_mut::<u8>(start);
    // SAFETY: the kernel laid the range out writable at the top of the first stack, and the one thread
    // holds no reference into it: arguments and environment are copied whenever they are read.
    unsafe { std::ptr::write_bytes(start, 0, length) };
}
