//! The root of a native sandbox: gathered from the host first, then put together and entered.
//!
//! Gathering comes first because the new root covers a directory of the host while it is built.
//! Knows the order of things; `mount` knows how each is done.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::process::{chdir, fchdir, pivot_root};

use super::mount::{Fresh, Rights, Root, Tree};
use super::{device, etc, process_view};
use crate::order::{Enclosure, OrderedAccess};
use crate::status::Failure;

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

const TOP: Fresh = Fresh {
    kind: "tmpfs",
    options: &[("mode", "0755"), ("size", "64m"), ("nr_inodes", "50k")],
    attributes: NO_DEVICES,
};

const TEMPORARY: Fresh = Fresh {
    kind: "tmpfs",
    options: &[("mode", "1777"), ("size", "4g"), ("nr_inodes", "1m")],
    attributes: NO_DEVICES,
};

const RUN: Fresh = Fresh {
    kind: "tmpfs",
    options: &[("mode", "0755"), ("size", "64m"), ("nr_inodes", "50k")],
    attributes: NO_DEVICES,
};

/// Something to stand in the new root.
#[derive(Debug)]
pub(super) struct Furniture {
    /// Where.
    pub inside: PathBuf,
    /// What.
    pub piece: Piece,
}

/// The kinds of things in a root.
#[derive(Debug)]
pub(super) enum Piece {
    /// A mount taken from the host.
    Tree(Tree),
    /// A new file system.
    Fresh(Fresh),
    /// A file on the root itself.
    File(Vec<u8>),
    /// A file that is read-only wherever it lies.
    Sealed(Vec<u8>),
    /// A symbolic link.
    Link(PathBuf),
}

/// Builds the root and makes it this process's own; the host's is gone afterwards.
pub(super) fn enter(enclosure: &Enclosure) -> Result<(), Failure> {
    mount_change(
        "/",
        MountPropagationFlags::REC | MountPropagationFlags::PRIVATE,
    )
    .map_err(|errno| Failure::new("mount(MS_PRIVATE)", "/", errno))?;
    let system = gather_system(enclosure)?;
    let given = gather_given(enclosure)?;
    let root = Root::new(Tree::fresh(&TOP)?, Path::new(WORKSHOP))?;
    put_all(&root, system)?;
    process_view::put(&root)?;
    put_all(&root, given)?;
    pivot(&root)?;
    process_view::seal()?;
    root.seal()
}

fn gather_system(enclosure: &Enclosure) -> Result<Vec<Furniture>, Failure> {
    let mut pieces = Vec::new();
    for path in SYSTEM.iter().map(PathBuf::from) {
        if let Ok(target) = fs::read_link(&path) {
            pieces.push(Furniture {
                inside: path,
                piece: Piece::Link(target),
            });
        } else if path.is_dir() {
            let tree = Tree::clone_of(&path, Rights::Read)?;
            pieces.push(Furniture {
                inside: path,
                piece: Piece::Tree(tree),
            });
        }
    }
    pieces.extend(etc::gather(&enclosure.hostname, &enclosure.home.path())?);
    pieces.extend(device::gather()?);
    for (path, fresh) in [("/tmp", TEMPORARY), ("/var/tmp", TEMPORARY), ("/run", RUN)] {
        pieces.push(Furniture {
            inside: path.into(),
            piece: Piece::Fresh(fresh),
        });
    }
    pieces.push(Furniture {
        inside: "/var/run".into(),
        piece: Piece::Link("/run".into()),
    });
    Ok(pieces)
}

/// Takes the home, the caller's mounts and the caller's files, in this order.
fn gather_given(enclosure: &Enclosure) -> Result<Vec<Furniture>, Failure> {
    let mut pieces = Vec::new();
    for bind in &enclosure.binds {
        let tree = match &bind.access {
            OrderedAccess::ReadOnly => Tree::clone_of(&bind.host.path(), Rights::Read)?,
            OrderedAccess::ReadWrite => Tree::clone_of(&bind.host.path(), Rights::Write)?,
            OrderedAccess::CopyOnWrite { upper, .. } => {
                return Err(Failure::new(
                    "fsopen(overlay)",
                    &upper.path().display().to_string(),
                    Errno::NOSYS,
                ));
            }
        };
        pieces.push(Furniture {
            inside: bind.inside.path(),
            piece: Piece::Tree(tree),
        });
    }
    for (path, content) in &enclosure.files {
        pieces.push(Furniture {
            inside: path.path(),
            piece: Piece::Sealed(content.as_bytes().to_vec()),
        });
    }
    Ok(pieces)
}

fn put_all(root: &Root, pieces: Vec<Furniture>) -> Result<(), Failure> {
    for Furniture { inside, piece } in pieces {
        match piece {
            Piece::Tree(tree) => root.attach(&tree, &inside)?,
            Piece::Fresh(fresh) => root.attach(&Tree::fresh(&fresh)?, &inside)?,
            Piece::File(content) => root.file(&inside, &content)?,
            Piece::Sealed(content) => root.sealed_file(&inside, &content)?,
            Piece::Link(target) => root.link(&inside, &target)?,
        }
    }
    Ok(())
}

/// Swaps the roots in place: the old one ends up on top of the new one and is then taken away.
pub(super) fn pivot(root: &Root) -> Result<(), Failure> {
    let failed = |call: &'static str| move |errno: Errno| Failure::new(call, "/", errno);
    fchdir(root.top()).map_err(failed("fchdir"))?;
    pivot_root(".", ".").map_err(failed("pivot_root"))?;
    unmount(".", UnmountFlags::DETACH).map_err(failed("umount2"))?;
    chdir("/").map_err(failed("chdir"))
}
