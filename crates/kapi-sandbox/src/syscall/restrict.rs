//! The system calls by which a process takes rights from itself for good: seccomp and Landlock.
//!
//! Knows nothing of which rights are taken.

use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use rustix::io::Errno;

use super::check;

/// `struct landlock_ruleset_attr` of Landlock 6.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ruleset {
    /// Rights to files that are refused unless a rule gives them.
    pub files: u64,
    /// Rights to TCP ports; none are handled here.
    pub ports: u64,
    /// What may not reach out of the domain.
    pub scopes: u64,
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

/// Bytes of [`Ruleset`] before versions 4 and 6 made it longer.
const RULESET_BYTES_FIRST: usize = 8;
/// The first version that knows scopes, and with them the whole structure.
const SCOPES_SINCE: u32 = 6;
/// `LANDLOCK_CREATE_RULESET_VERSION`.
const ASK_VERSION: u32 = 1;
/// `LANDLOCK_RULE_PATH_BENEATH`.
const RULE_PATH_BENEATH: u32 = 1;

/// Returns which version of Landlock the kernel has, or why it has none.
#[expect(unsafe_code, reason = "landlock has no safe binding")]
pub(crate) fn landlock_version() -> Result<u32, Errno> {
    // SAFETY: with this flag the kernel reads and writes no memory.
    let result = check(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<Ruleset>(),
            0_usize,
            ASK_VERSION,
        )
    })?;
    u32::try_from(result).map_err(|_| Errno::RANGE)
}

/// Makes a set of rules in the form that a version of Landlock takes.
#[expect(unsafe_code, reason = "landlock has no safe binding")]
pub(crate) fn landlock_ruleset(ruleset: &Ruleset, version: u32) -> Result<OwnedFd, Errno> {
    let bytes = if version >= SCOPES_SINCE {
        size_of::<Ruleset>()
    } else {
        RULESET_BYTES_FIRST
    };
    // SAFETY: the structure lives through the call and is at least as long as said.
    let result = check(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::from_ref(ruleset),
            bytes,
            0_u32,
        )
    })?;
    let number = i32::try_from(result).map_err(|_| Errno::BADF)?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Gives rights to everything beneath an open path.
#[expect(unsafe_code, reason = "landlock has no safe binding")]
pub(crate) fn landlock_allow(
    ruleset: BorrowedFd<'_>,
    parent: BorrowedFd<'_>,
    allowed: u64,
) -> Result<(), Errno> {
    let rule = PathBeneath {
        allowed,
        parent: parent.as_raw_fd(),
    };
    // SAFETY: the structure lives through the call and has the layout of its kind of rule.
    check(unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            RULE_PATH_BENEATH,
            &raw const rule,
            0_u32,
        )
    })
    .map(|_| ())
}

/// Puts this process under the rules. It must not be able to gain privileges any more.
#[expect(unsafe_code, reason = "landlock has no safe binding")]
pub(crate) fn landlock_restrict(ruleset: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: the call takes integers only.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0_u32) })
        .map(|_| ())
}

/// Puts this process and its descendants under a filter of system calls. It must not be able to gain
/// privileges any more.
#[expect(unsafe_code, reason = "seccomp has no safe binding")]
pub(crate) fn seccomp_filter(program: &[libc::sock_filter]) -> Result<(), Errno> {
    let length = libc::c_ushort::try_from(program.len()).map_err(|_| Errno::INVAL)?;
    let program = libc::sock_fprog {
        len: length,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies `len` instructions from `filter` and writes to none of them.
    check(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0_u32,
            &raw const program,
        )
    })
    .map(|_| ())
}
