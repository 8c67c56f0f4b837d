//! The private `/proc`: this pid namespace only, read-only, and without the kernel's own secrets.
//!
//! Read-only matters when the host's root runs Kapi: its number is mapped, but the kernel still lets
//! it write `/proc/sys`. Knows nothing of the rest of the root.

use std::os::fd::AsFd as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, mount_bind};

use super::mount::{Fresh, Root, Tree};
use crate::status::Failure;
use crate::syscall::{Reach, set_mount_attributes};

/// A new view of the processes.
pub(super) const PROCESSES: Fresh = Fresh {
    kind: "proc",
    options: &[],
    attributes: MountAttrFlags::MOUNT_ATTR_NOSUID
        .union(MountAttrFlags::MOUNT_ATTR_NODEV)
        .union(MountAttrFlags::MOUNT_ATTR_NOEXEC),
};

/// An empty directory of the sealed root, to cover others with; no mount of a caller belongs on it.
pub(super) const EMPTY: &str = "/var/empty";

/// Files that tell about the kernel's memory, keys or other users' work, or act on the machine.
const HIDDEN_FILES: &[&str] = &[
    "interrupts",
    "iomem",
    "ioports",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "sched_debug",
    "slabinfo",
    "sysrq-trigger",
    "timer_list",
    "vmallocinfo",
];

/// Directories of the same kind.
const HIDDEN_DIRECTORIES: &[&str] = &["acpi", "asound", "bus", "dynamic_debug", "scsi"];

/// Directories in which the host's root could change the machine.
const DANGEROUS_DIRECTORIES: &[&str] = &["sys", "irq", "fs"];

/// Mounts `/proc`. Must run before the host's own `/proc` is gone, because the kernel gives a new one
/// only to who can see one already.
pub(super) fn put(root: &Root) -> Result<(), Failure> {
    root.attach(&Tree::fresh(&PROCESSES)?, Path::new("/proc"))
}

/// Covers what `/proc` must not show, and forbids user namespaces below this one and every write to
/// `/proc`; if such namespaces are wanted, only writes that reach the machine. Call with `/proc` in place at the real root, which is sealed.
///
/// With a user namespace of its own a payload would be root of it and could reach far more of the
/// kernel.
pub(super) fn seal(nested_namespaces: bool) -> Result<(), Failure> {
    // A bind has the restrictions of what it shows, and both of these are read-only.
    HIDDEN_FILES
        .iter()
        .try_for_each(|name| cover(name, "/dev/null"))?;
    HIDDEN_DIRECTORIES
        .iter()
        .try_for_each(|name| cover(name, EMPTY))?;
    if nested_namespaces {
        // Who makes a user namespace writes its maps below /proc.
        return DANGEROUS_DIRECTORIES
            .iter()
            .try_for_each(|name| forbid_writes(&format!("/proc/{name}")));
    }
    let limit = "/proc/sys/user/max_user_namespaces";
    let failed = |call: &'static str| move |errno: Errno| Failure::new(call, limit, errno);
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(CWD, limit, flags, Mode::empty()).map_err(failed("open"))?;
    rustix::io::write(&file, b"0").map_err(failed("write"))?;
    // A mount with a file that can be written open cannot become read-only.
    drop(file);
    set_read_only("/proc")
}

/// Makes a directory of `/proc` a mount of its own that cannot be written.
fn forbid_writes(place: &str) -> Result<(), Failure> {
    match mount_bind(place, place) {
        Ok(()) => set_read_only(place),
        // Not every kernel has each of them.
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(Failure::new("mount(MS_BIND)", place, errno)),
    }
}

fn set_read_only(place: &str) -> Result<(), Failure> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mount = openat(CWD, place, flags, Mode::empty())
        .map_err(|errno| Failure::new("open", place, errno))?;
    set_mount_attributes(mount.as_fd(), libc::MOUNT_ATTR_RDONLY, Reach::One)
        .map_err(|errno| Failure::new("mount_setattr", place, errno))
}

fn cover(name: &str, with: &str) -> Result<(), Failure> {
    let place = format!("/proc/{name}");
    match mount_bind(with, &place) {
        // Not every kernel has each of them.
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(Failure::new("mount(MS_BIND)", &place, errno)),
    }
}
