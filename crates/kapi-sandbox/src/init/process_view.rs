//! The private `/proc`: this pid namespace only, read-only, and without the kernel's own secrets.
//!
//! Read-only matters when the host's root runs Kapi: its number is mapped, but the kernel still lets
//! it write `/proc/sys`. Knows nothing of the rest of the root.

use std::os::fd::AsFd as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;

use super::mount::{Fresh, Rights, Root, Tree};
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

/// An empty directory to cover others with.
const EMPTY: Fresh = Fresh {
    kind: "tmpfs",
    options: &[("mode", "0555"), ("size", "4k"), ("nr_inodes", "2")],
    attributes: MountAttrFlags::MOUNT_ATTR_RDONLY
        .union(MountAttrFlags::MOUNT_ATTR_NOSUID)
        .union(MountAttrFlags::MOUNT_ATTR_NODEV)
        .union(MountAttrFlags::MOUNT_ATTR_NOEXEC),
};

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

/// Mounts `/proc` and covers what it must not show. Must run before the host's own `/proc` is gone,
/// because the kernel gives a new one only to who can see one already.
pub(super) fn put(root: &Root) -> Result<(), Failure> {
    let proc = Path::new("/proc");
    root.attach(&Tree::fresh(&PROCESSES)?, proc)?;
    for path in HIDDEN_FILES
        .iter()
        .map(|name| proc.join(name))
        .filter(|path| root.holds(path))
    {
        root.attach(
            &Tree::clone_of(Path::new("/dev/null"), Rights::Device)?,
            &path,
        )?;
    }
    for path in HIDDEN_DIRECTORIES
        .iter()
        .map(|name| proc.join(name))
        .filter(|path| root.holds(path))
    {
        root.attach(&Tree::fresh(&EMPTY)?, &path)?;
    }
    Ok(())
}

/// Forbids new user namespaces below this one, and then every write to `/proc`.
///
/// With a user namespace of its own a payload would be root of it and could reach far more of the
/// kernel. Call with `/proc` in place at the real root.
pub(super) fn seal() -> Result<(), Failure> {
    let limit = "/proc/sys/user/max_user_namespaces";
    let failed = |call: &'static str, path: &'static str| {
        move |errno: Errno| Failure::new(call, path, errno)
    };
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(CWD, limit, flags, Mode::empty()).map_err(failed("open", limit))?;
    rustix::io::write(&file, b"0").map_err(failed("write", limit))?;
    drop(file);
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = openat(CWD, "/proc", flags, Mode::empty()).map_err(failed("open", "/proc"))?;
    set_mount_attributes(proc.as_fd(), libc::MOUNT_ATTR_RDONLY, Reach::One)
        .map_err(failed("mount_setattr", "/proc"))
}
