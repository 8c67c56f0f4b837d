//! Copy-on-write mounts: an overlay whose writes go to a layer of the caller's.
//!
//! Mounted by a user namespace, so its marks are `user.overlay.*` attributes, and without any sync: a
//! layer that a power cut tore is thrown away, never trusted. Does not know what the layer is for.

use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, openat, renameat, statat};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, fsconfig_set_flag, fsconfig_set_string};

use super::mount::Tree;
use crate::order::{Enclosure, OrderedAccess};
use crate::status::Failure;

/// What overlayfs makes in its work directory, and what it is called once it is no longer used.
const USED: &str = "work";
const ASIDE: &str = "used";
/// Lines of the mount table that are looked at for an explanation.
const MOUNTS_MAX: usize = 10_000;

/// Takes every layer of an order for this process and its children, for as long as one of them lives.
pub(super) fn lock_all(enclosure: &Enclosure) -> Result<Vec<OwnedFd>, Failure> {
    let uppers = enclosure
        .binds
        .iter()
        .filter_map(|bind| match &bind.access {
            OrderedAccess::CopyOnWrite { upper, .. } => Some(upper.path()),
            OrderedAccess::ReadOnly | OrderedAccess::ReadWrite => None,
        });
    uppers.map(|upper| lock(&upper)).collect()
}

/// Two overlays on one layer would each destroy what the other wrote.
fn lock(upper: &Path) -> Result<OwnedFd, Failure> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let held = openat(CWD, upper, flags, Mode::empty())
        .map_err(|errno| Failure::new("open", &upper.display().to_string(), errno))?;
    match flock(&held, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(held),
        Err(errno) => {
            let (why, errno) = match errno {
                Errno::WOULDBLOCK => (", which another sandbox uses", Errno::BUSY),
                other => ("", other),
            };
            let target = format!("{}{why}", upper.display());
            Err(Failure::new("flock", &target, errno))
        }
    }
}

/// Mounts a host directory with its writes going to a layer.
///
/// File systems mounted below the directory cannot be part of it, and a user namespace may not look
/// under them, so they are an error.
pub(super) fn mount(lower: &Path, upper: &Path, work: &Path) -> Result<Tree, Failure> {
    let [lower_fd, upper_fd, work_fd] = [open(lower)?, open(upper)?, open(work)?];
    put_aside(work, &work_fd)?;
    refuse_inside(lower, &lower_fd, &[&upper_fd, &work_fd])?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let name = lower.display().to_string();
    let made = Tree::make("overlay", &name, attributes, |context| {
        // By descriptor, because the options of overlayfs give some characters of a path a meaning.
        for (option, fd) in [
            ("lowerdir", &lower_fd),
            ("upperdir", &upper_fd),
            ("workdir", &work_fd),
        ] {
            let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
            fsconfig_set_string(context, option, path)?;
        }
        fsconfig_set_flag(context, "userxattr")?;
        // Without this the end of every sandbox would sync the whole file system of its layer.
        fsconfig_set_flag(context, "volatile")
    });
    made.map_err(|failure| match mounted_below(lower) {
        Some(place) => Failure {
            target: format!("{name}, which has another file system at {place}"),
            ..failure
        },
        None => failure,
    })
}

fn open(path: &Path) -> Result<OwnedFd, Failure> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty())
        .map_err(|errno| Failure::new("open", &path.display().to_string(), errno))
}

/// A layer inside of what it lies over would be seen, and grow, in its own overlay.
fn refuse_inside(lower: &Path, lower_fd: &OwnedFd, layer: &[&OwnedFd]) -> Result<(), Failure> {
    let real = |fd: &OwnedFd| {
        let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
        fs::read_link(link).map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            Failure::new("readlink", &lower.display().to_string(), errno)
        })
    };
    let real_lower = real(lower_fd)?;
    for fd in layer {
        let part = real(fd)?;
        if part.starts_with(&real_lower) {
            let target = format!("{}, which lies inside {}", part.display(), lower.display());
            return Err(Failure::new("overlay", &target, Errno::INVAL));
        }
    }
    Ok(())
}

/// Puts aside what the last overlay left in its work directory, so that the kernel starts a new one.
///
/// Left in place, a mark in it would forbid the mount, and without the mark the kernel would first remove
/// all of it while the sandbox waits: on a disk that is told of every block given back, longer than
/// everything else here takes. It goes when the work directory is thrown away.
fn put_aside(work: &Path, work_fd: &OwnedFd) -> Result<(), Failure> {
    let failed = |call: &'static str| {
        move |errno: Errno| Failure::new(call, &work.join(USED).display().to_string(), errno)
    };
    let used = match statat(work_fd, USED, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(used) => used,
        // It was never used.
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(failed("fstatat")(errno)),
    };
    // No two files that exist at once have the same number.
    let aside = format!("{ASIDE}-{}", used.st_ino);
    renameat(work_fd, USED, work_fd, &aside).map_err(failed("renameat"))
}

/// Finds a file system that is mounted below a directory, for an error that names it.
fn mounted_below(lower: &Path) -> Option<String> {
    let lower = lower.canonicalize().ok()?;
    let table = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mut places = table.lines().take(MOUNTS_MAX).filter_map(|line| {
        // The fifth word; a blank in it is written `\040`, and such a place is shown as it is written.
        line.split(' ').nth(4)
    });
    places
        .find(|place| {
            let place = Path::new(place);
            place != lower && place.starts_with(&lower)
        })
        .map(str::to_owned)
}
