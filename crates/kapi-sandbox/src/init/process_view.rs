//! The private `/proc`: this pid namespace only, read-only, and without the kernel's own secrets.
//!
//! Read-only matters when the host's root runs Kapi: its number is mapped, but the kernel still lets
//! it write `/proc/sys`. Knows nothing of the rest of the root.

use std::ffi::CStr;
use std::os::fd::AsFd as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, mount_bind};

use super::completion::Refusal;
use super::mount::{DetachedMount, NewFileSystem, NewRoot};
use crate::status::StepFailure;
use crate::syscall::{MountScope, set_mount_attributes};

/// A new view of the processes.
pub(super) const PROCESSES: NewFileSystem = NewFileSystem {
    kind: "proc",
    options: &[],
    attributes: MountAttrFlags::MOUNT_ATTR_NOSUID
        .union(MountAttrFlags::MOUNT_ATTR_NODEV)
        .union(MountAttrFlags::MOUNT_ATTR_NOEXEC),
};

/// An empty directory of the sealed root, to cover others with; no mount of a caller belongs on it.
pub(super) const EMPTY: &str = "/var/empty";
const EMPTY_NAME: &CStr = c"/var/empty";

/// How many user namespaces there may be.
const LIMIT: &CStr = c"/proc/sys/user/max_user_namespaces";

/// The calls that seal it; from [`COVER`] on the number says as well which place was to be covered.
pub(super) const FIRST: u32 = 16;
const OPEN_LIMIT: u32 = 16;
const WRITE_LIMIT: u32 = 17;
const OPEN: u32 = 18;
const RESTRICT: u32 = 19;
const BIND: u32 = 20;
const COVER: u32 = 32;

/// Files that tell about the kernel's memory, keys or other users' work, or act on the machine.
const HIDDEN_FILES: &[&CStr] = &[
    c"/proc/interrupts",
    c"/proc/iomem",
    c"/proc/ioports",
    c"/proc/kallsyms",
    c"/proc/kcore",
    c"/proc/key-users",
    c"/proc/keys",
    c"/proc/kmsg",
    c"/proc/kpagecgroup",
    c"/proc/kpagecount",
    c"/proc/kpageflags",
    c"/proc/latency_stats",
    c"/proc/sched_debug",
    c"/proc/slabinfo",
    c"/proc/sysrq-trigger",
    c"/proc/timer_list",
    c"/proc/vmallocinfo",
];

/// Directories of the same kind.
const HIDDEN_DIRECTORIES: &[&CStr] = &[
    c"/proc/acpi",
    c"/proc/asound",
    c"/proc/bus",
    c"/proc/dynamic_debug",
    c"/proc/scsi",
];

/// Directories in which the host's root could change the machine.
const DANGEROUS_DIRECTORIES: &[&CStr] = &[c"/proc/sys", c"/proc/irq", c"/proc/fs"];

/// Mounts `/proc`. Must run before the host's own `/proc` is gone, because the kernel gives a new one
/// only to who can see one already.
pub(super) fn put(root: &NewRoot) -> Result<(), StepFailure> {
    root.attach(&DetachedMount::fresh(&PROCESSES)?, Path::new("/proc"))
}

/// Covers what `/proc` must not show, and forbids user namespaces below this one and every write to
/// `/proc`; if such namespaces are wanted, only writes that reach the machine. Call with `/proc` in place
/// at the real root, which is sealed. Only calls the kernel, so that the launcher may do it beside the
/// leader.
///
/// With a user namespace of its own a payload would be root of it and could reach far more of the
/// kernel.
pub(super) fn seal(nested_namespaces: bool) -> Result<(), Refusal> {
    for (call, (location, with)) in (COVER..).zip(covered()) {
        cover(location, with).map_err(Refusal::of(call))?;
    }
    if nested_namespaces {
        // Who makes a user namespace writes its maps below /proc.
        return DANGEROUS_DIRECTORIES
            .iter()
            .try_for_each(|location| forbid_writes(location));
    }
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(CWD, LIMIT, flags, Mode::empty()).map_err(Refusal::of(OPEN_LIMIT))?;
    rustix::io::write(&file, b"0").map_err(Refusal::of(WRITE_LIMIT))?;
    // A mount with a file that can be written open cannot become read-only.
    drop(file);
    set_read_only(c"/proc")
}

/// Names what is covered, and with what. A bind has the restrictions of what it shows, and both of these
/// are read-only.
fn covered() -> impl Iterator<Item = (&'static CStr, &'static CStr)> {
    let files = HIDDEN_FILES
        .iter()
        .map(|location| (*location, c"/dev/null"));
    let directories = HIDDEN_DIRECTORIES
        .iter()
        .map(|location| (*location, EMPTY_NAME));
    files.chain(directories)
}

/// Puts a refused call of [`seal`] into words.
pub(super) fn named(refusal: Refusal) -> StepFailure {
    let Refusal { call, errno } = refusal;
    let limit = LIMIT.to_string_lossy();
    match call {
        COVER.. => {
            let mut named = (COVER..).zip(covered());
            let location =
                named.find_map(|(number, (location, _))| (number == call).then_some(location));
            let location = location.unwrap_or(c"/proc").to_string_lossy();
            StepFailure::new("mount(MS_BIND)", &location, errno)
        }
        BIND => StepFailure::new("mount(MS_BIND)", "/proc", errno),
        OPEN_LIMIT => StepFailure::new("open", &limit, errno),
        WRITE_LIMIT => StepFailure::new("write", &limit, errno),
        OPEN => StepFailure::new("open", "/proc", errno),
        _ => StepFailure::new("mount_setattr", "/proc", errno),
    }
}

/// Makes a directory of `/proc` a mount of its own that cannot be written.
fn forbid_writes(location: &CStr) -> Result<(), Refusal> {
    match mount_bind(location, location) {
        Ok(()) => set_read_only(location),
        // Not every kernel has each of them.
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(Refusal { call: BIND, errno }),
    }
}

fn set_read_only(location: &CStr) -> Result<(), Refusal> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mount = openat(CWD, location, flags, Mode::empty()).map_err(Refusal::of(OPEN))?;
    set_mount_attributes(mount.as_fd(), libc::MOUNT_ATTR_RDONLY, MountScope::One)
        .map_err(Refusal::of(RESTRICT))
}

fn cover(location: &CStr, with: &CStr) -> Result<(), Errno> {
    match mount_bind(with, location) {
        // Not every kernel has each of them.
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::{BIND, COVER, Refusal, covered, named};

    #[test]
    fn a_place_that_could_not_be_covered_is_named() {
        for (call, (location, _)) in (COVER..).zip(covered()) {
            let failure = named(Refusal::of(call)(Errno::PERM));
            assert_eq!(failure.target, location.to_str().unwrap());
        }
        assert_eq!(named(Refusal::of(BIND)(Errno::PERM)).target, "/proc");
    }
}
