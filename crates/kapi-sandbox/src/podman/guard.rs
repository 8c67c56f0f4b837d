//! The limits that podman does not keep by itself: one run at a time for each layer, and space on disk.
//!
//! The host side does it, for as long as it lives; a container ends with it. Knows nothing of what
//! podman is told.

use std::fs::{self, Permissions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::Errno;

use super::error::PodmanError;
use crate::error::SandboxError;
use crate::spec::{MountAccess, OverlayLayer, SandboxSpec};
use crate::status::StepFailure;
use crate::watchdog::Watchdog;
use crate::watchdog::disk::DiskBaseline;

/// The most levels that a work directory has: overlayfs makes three, and parts of what it moves there.
const DEPTH_MAX: usize = 64;

/// Takes every layer of a run for this process, and makes it ready to be mounted once more.
pub(super) fn layers(spec: &SandboxSpec) -> Result<Vec<OwnedFd>, SandboxError> {
    let mut held = Vec::new();
    for layer in spec.mounts.iter().filter_map(|mount| layer(&mount.access)) {
        held.push(lock(&layer.upper)?);
        clear(&layer.work).map_err(PodmanError::file("empty", &layer.work))?;
    }
    Ok(held)
}

/// Returns the watch over what a run adds to the host's directories. Named volumes are not among them.
pub(super) fn watchdog(spec: &SandboxSpec) -> Watchdog {
    let written = spec.mounts.iter().filter_map(|mount| match &mount.access {
        MountAccess::ReadOnly => None,
        MountAccess::ReadWrite => Some(mount.host.clone()),
        MountAccess::CopyOnWrite(layer) => Some(layer.upper.clone()),
    });
    let directories: Vec<PathBuf> = std::iter::once(spec.home_host.clone())
        .chain(written)
        .collect();
    Watchdog {
        disk: spec
            .resources
            .disk_bytes
            .map(|bytes| (bytes, DiskBaseline::new(&directories))),
        ..Watchdog::default()
    }
}

const fn layer(access: &MountAccess) -> Option<&OverlayLayer> {
    match access {
        MountAccess::CopyOnWrite(layer) => Some(layer),
        MountAccess::ReadOnly | MountAccess::ReadWrite => None,
    }
}

/// Two overlays on one layer would each destroy what the other wrote.
fn lock(upper: &Path) -> Result<OwnedFd, SandboxError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let shown = upper.display().to_string();
    let failed = |call: &'static str, target: String, errno| {
        SandboxError::setup(&StepFailure::new(call, &target, errno))
    };
    let held = openat(CWD, upper, flags, Mode::empty())
        .map_err(|errno| failed("open", shown.clone(), errno))?;
    match flock(&held, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(held),
        Err(Errno::WOULDBLOCK) => {
            let target = format!("{shown}, which another sandbox uses");
            Err(failed("flock", target, Errno::BUSY))
        }
        Err(errno) => Err(failed("flock", shown, errno)),
    }
}

/// Removes what the last mount left in a layer's work directory: an overlay that was never synced
/// refuses to be mounted with it.
fn clear(work: &Path) -> std::io::Result<()> {
    empty(work, DEPTH_MAX)
}

fn empty(directory: &Path, depth: usize) -> std::io::Result<()> {
    let below = depth.checked_sub(1);
    let below = below.ok_or_else(|| std::io::Error::from(Errno::NAMETOOLONG))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            // Overlayfs leaves some of them closed to everybody.
            fs::set_permissions(&path, Permissions::from_mode(0o700))?;
            empty(&path, below)?;
            fs::remove_dir(&path)?;
        } else {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
