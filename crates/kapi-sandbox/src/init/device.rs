//! The private `/dev`: a few harmless devices and an own set of terminals.
//!
//! Does not know what is mounted anywhere else.

use std::path::Path;

use rustix::mount::MountAttrFlags;

use super::entry::{RootContent, RootEntry};
use super::mount::{DetachedMount, MountRights, NewFileSystem};
use crate::status::StepFailure;

/// Devices of the host that hold nothing. `/dev/tty` reaches only a terminal of the process's own
/// session, and the payload begins a session without one.
const NODES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];

/// Links that programs expect.
const LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

const TERMINALS: NewFileSystem = NewFileSystem {
    kind: "devpts",
    options: &[("ptmxmode", "0666"), ("mode", "0600")],
    attributes: MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NOEXEC),
};

/// Gathers the entries of `/dev`.
pub(super) fn gather() -> Result<Vec<RootEntry>, StepFailure> {
    let dev = Path::new("/dev");
    let mut entries = Vec::new();
    for name in NODES {
        let path = dev.join(name);
        let tree = DetachedMount::clone_of(&path, MountRights::Device)?;
        entries.push(RootEntry {
            inside: path,
            content: RootContent::Tree(tree),
        });
    }
    for (name, target) in LINKS {
        entries.push(RootEntry {
            inside: dev.join(name),
            content: RootContent::Link(target.into()),
        });
    }
    entries.push(RootEntry {
        inside: dev.join("pts"),
        content: RootContent::Fresh(TERMINALS),
    });
    Ok(entries)
}
