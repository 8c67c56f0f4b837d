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

use super::layer::LayerMounts;
use super::mount::{DetachedMount, Fresh, MountRights, NewRoot};
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

/// Where the new root is put together; any directory of the host serves, as the mount is private.
pub(super) const WORKSHOP: &str = "/tmp";

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

/// Something to stand in the new root.
#[derive(Debug)]
pub(super) struct Furniture {
    /// Where.
    pub inside: PathBuf,
    /// What.
    pub piece: RootEntry,
}

/// The kinds of things in a root.
#[derive(Debug)]
pub(super) enum RootEntry {
    /// A mount taken from the host.
    Tree(DetachedMount),
    /// The next of the copy-on-write mounts that are made meanwhile.
    Layer,
    /// A new file system.
    Fresh(Fresh),
    /// A directory that can be written, on the root's memory.
    Writable(u32),
    /// A directory that stays empty.
    Empty,
    /// A file on the root itself.
    File(Vec<u8>),
    /// A file of the host that everybody may read, if there is one.
    Public,
    /// A file that is read-only wherever it lies.
    Sealed(Vec<u8>),
    /// A symbolic link.
    Link(PathBuf),
}

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
    let root = NewRoot::new(memory(enclosure)?, Path::new(WORKSHOP))?;
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

fn gather_system(enclosure: &Enclosure) -> Result<Vec<Furniture>, StepFailure> {
    let mut pieces = Vec::new();
    for path in SYSTEM.iter().map(PathBuf::from) {
        match fs::read_link(&path) {
            Ok(target) => pieces.push(Furniture {
                inside: path,
                piece: RootEntry::Link(target),
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            // Not a link.
            Err(_) => pieces.extend(shown_directory(path)?),
        }
    }
    pieces.extend(etc::gather(enclosure)?);
    pieces.extend(device::gather()?);
    for (path, mode) in WRITABLE {
        pieces.push(Furniture {
            inside: path.into(),
            piece: RootEntry::Writable(*mode),
        });
    }
    pieces.push(Furniture {
        inside: process_view::EMPTY.into(),
        piece: RootEntry::Empty,
    });
    pieces.push(Furniture {
        inside: "/var/run".into(),
        piece: RootEntry::Link("/run".into()),
    });
    Ok(pieces)
}

/// Shows a directory of the host where it is; nothing if there is none.
pub(super) fn shown_directory(path: PathBuf) -> Result<Option<Furniture>, StepFailure> {
    let tree = DetachedMount::clone_of_directory(&path, MountRights::Read)?;
    Ok(tree.map(|tree| Furniture {
        inside: path,
        piece: RootEntry::Tree(tree),
    }))
}

/// Takes the home, the caller's mounts and the caller's files, in this order.
fn gather_given(enclosure: &Enclosure) -> Result<Vec<Furniture>, StepFailure> {
    let mut pieces = Vec::new();
    for bind in &enclosure.binds {
        let piece = match &bind.access {
            OrderedAccess::ReadOnly => RootEntry::Tree(DetachedMount::clone_of(
                &bind.host.path(),
                MountRights::Read,
            )?),
            OrderedAccess::ReadWrite => RootEntry::Tree(DetachedMount::clone_of(
                &bind.host.path(),
                MountRights::Write,
            )?),
            OrderedAccess::CopyOnWrite { .. } => RootEntry::Layer,
        };
        pieces.push(Furniture {
            inside: bind.inside.path(),
            piece,
        });
    }
    for (path, content) in &enclosure.files {
        pieces.push(Furniture {
            inside: path.path(),
            piece: RootEntry::Sealed(content.as_bytes().to_vec()),
        });
    }
    Ok(pieces)
}

fn put_all(
    root: &NewRoot,
    pieces: Vec<Furniture>,
    layers: &mut impl Iterator<Item = Result<DetachedMount, StepFailure>>,
) -> Result<(), StepFailure> {
    let missing = || StepFailure::new("recvmsg", "the launcher", Errno::NOENT);
    for Furniture { inside, piece } in pieces {
        match piece {
            RootEntry::Tree(tree) => root.attach(&tree, &inside)?,
            RootEntry::Layer => root.attach(&layers.next().ok_or_else(missing)??, &inside)?,
            RootEntry::Fresh(fresh) => root.attach(&DetachedMount::fresh(&fresh)?, &inside)?,
            RootEntry::Writable(mode) => root.writable_directory(&inside, mode)?,
            RootEntry::Empty => root.directory(&inside, 0o555).map(drop)?,
            RootEntry::File(content) => root.file(&inside, &content)?,
            RootEntry::Public => etc::show(root, &inside)?,
            RootEntry::Sealed(content) => root.sealed_file(&inside, &content)?,
            RootEntry::Link(target) => root.link(&inside, &target)?,
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
