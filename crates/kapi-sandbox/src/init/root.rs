//! The root of a native sandbox: gathered from the host first, then put together and entered.
//!
//! Gathering comes first because the new root covers a directory of the host while it is built.
//! Knows the order of things; `mount` knows how each is done.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MountPropagationFlags, fsconfig_set_string, mount_change};
use rustix::process::{chdir, fchdir, pivot_root};

use super::entry::{RootContent, RootEntry, shown_directory};
use super::layer::LayerMounts;
use super::mount::{DetachedMount, MountRights, NewRoot};
use super::{device, etc, process_view};
use crate::order::{Enclosure, OrderedAccess};
use crate::status::StepFailure;

/// Directories of the host that every program may read. A link among them stays a link.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
];

/// The directory on which the new root is mounted while it is built; any directory of the host serves,
/// as the mount is private.
pub(super) const BUILD_DIRECTORY: &str = "/tmp";

const NO_DEVICES: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);

/// Bytes of everything on the root's memory together where the order names no limit: the root itself,
/// the temporary directories, `/run` and shared memory.
const MEMORY_BYTES: u64 = 4 << 30;
/// Files on it.
const MEMORY_FILES: &str = "1m";

/// Directories that can be written, each gone with the sandbox. They lie on the root's memory, so that
/// one limit holds for all of them.
pub(super) const WRITABLE: &[(&str, u32)] = &[
    ("/tmp", 0o1777),
    ("/var/tmp", 0o1777),
    ("/run", 0o755),
    ("/dev/shm", 0o1777),
];

/// Builds the root and makes it this process's own, with the layers that somebody else makes meanwhile.
///
/// The host's root is still on top of it, and `/proc` shows everything: who calls sees to both.
pub(super) fn enter(enclosure: &Enclosure, layers: &LayerMounts) -> Result<(), StepFailure> {
    mount_change(
        "/",
        MountPropagationFlags::REC | MountPropagationFlags::PRIVATE,
    )
    .map_err(|errno| StepFailure::new("mount(MS_PRIVATE)", "/", errno))?;
    let system = gather_system(enclosure)?;
    let given = gather_given(enclosure)?;
    let root = NewRoot::new(memory(enclosure)?, Path::new(BUILD_DIRECTORY))?;
    let mut layers = layers.take();
    put_all(&root, system, &mut layers)?;
    process_view::put(&root)?;
    put_all(&root, given, &mut layers)?;
    for (shown, also_at) in &enclosure.aliases {
        root.alias(&shown.path(), &also_at.path())?;
    }
    pivot(&root)?;
    root.seal()
}

fn memory(enclosure: &Enclosure) -> Result<DetachedMount, StepFailure> {
    let bytes = enclosure.limits.temporary_bytes.unwrap_or(MEMORY_BYTES);
    DetachedMount::make("tmpfs", "the root", NO_DEVICES, |context| {
        fsconfig_set_string(context, "mode", "0755")?;
        fsconfig_set_string(context, "nr_inodes", MEMORY_FILES)?;
        fsconfig_set_string(context, "size", bytes.to_string())
    })
}

fn gather_system(enclosure: &Enclosure) -> Result<Vec<RootEntry>, StepFailure> {
    let mut entries = Vec::new();
    for path in SYSTEM.iter().map(PathBuf::from) {
        match fs::read_link(&path) {
            Ok(target) => entries.push(RootEntry {
                inside: path,
                content: RootContent::Link(target),
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            // Not a link.
            Err(_) => entries.extend(shown_directory(path)?),
        }
    }
    entries.extend(etc::gather(enclosure)?);
    entries.extend(device::gather()?);
    for (path, mode) in WRITABLE {
        entries.push(RootEntry {
            inside: path.into(),
            content: RootContent::Writable(*mode),
        });
    }
    entries.push(RootEntry {
        inside: process_view::EMPTY.into(),
        content: RootContent::Empty,
    });
    entries.push(RootEntry {
        inside: "/var/run".into(),
        content: RootContent::Link("/run".into()),
    });
    Ok(entries)
}

/// Takes the home, the caller's mounts and the caller's files, in this order.
fn gather_given(enclosure: &Enclosure) -> Result<Vec<RootEntry>, StepFailure> {
    let mut entries = Vec::new();
    for bind in &enclosure.binds {
        let content = match &bind.access {
            OrderedAccess::ReadOnly => RootContent::Tree(DetachedMount::clone_of(
                &bind.host.path(),
                MountRights::Read,
            )?),
            OrderedAccess::ReadWrite => RootContent::Tree(DetachedMount::clone_of(
                &bind.host.path(),
                MountRights::Write,
            )?),
            OrderedAccess::CopyOnWrite { .. } => RootContent::Layer,
        };
        entries.push(RootEntry {
            inside: bind.inside.path(),
            content,
        });
    }
    for (path, content) in &enclosure.files {
        entries.push(RootEntry {
            inside: path.path(),
            content: RootContent::Sealed(content.as_bytes().to_vec()),
        });
    }
    Ok(entries)
}

fn put_all(
    root: &NewRoot,
    entries: Vec<RootEntry>,
    layers: &mut impl Iterator<Item = Result<DetachedMount, StepFailure>>,
) -> Result<(), StepFailure> {
    let missing = || StepFailure::new("recvmsg", "the launcher", Errno::NOENT);
    for RootEntry { inside, content } in entries {
        match content {
            RootContent::Tree(tree) => root.attach(&tree, &inside)?,
            RootContent::Layer => root.attach(&layers.next().ok_or_else(missing)??, &inside)?,
            RootContent::Fresh(fresh) => root.attach(&DetachedMount::fresh(&fresh)?, &inside)?,
            RootContent::Writable(mode) => root.writable_directory(&inside, mode)?,
            RootContent::Empty => root.directory(&inside, 0o555).map(drop)?,
            RootContent::File(content) => root.file(&inside, &content)?,
            RootContent::Public => etc::show(root, &inside)?,
            RootContent::Sealed(content) => root.sealed_file(&inside, &content)?,
            RootContent::Link(target) => root.link(&inside, &target)?,
        }
    }
    Ok(())
}

/// Swaps the roots in place: the old one ends up on top of the new one, to be taken away from there. Paths
/// from the root on lead into the new one at once.
pub(super) fn pivot(root: &NewRoot) -> Result<(), StepFailure> {
    let failed = |call: &'static str| move |errno: Errno| StepFailure::new(call, "/", errno);
    fchdir(root.top()).map_err(failed("fchdir"))?;
    pivot_root(".", ".").map_err(failed("pivot_root"))?;
    chdir("/").map_err(failed("chdir"))
}
