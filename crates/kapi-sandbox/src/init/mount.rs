//! Mounts as descriptors: cloned or made detached, restricted, and only then attached.
//!
//! A tree is never visible with more rights than it will have, and a path inside is never resolved
//! through a symbolic link. Knows nothing of which mounts a sandbox needs.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, symlinkat,
    unlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use crate::status::Failure;
use crate::syscall::{Reach, set_mount_attributes};

/// What a mount is restricted to; each is added to what the host already restricts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rights {
    /// Read; no devices, no set-user-id.
    Read,
    /// Read and write; no devices, no set-user-id.
    Write,
    /// A device node: its mode and owner cannot be changed, the device itself can be used.
    Device,
}

impl Rights {
    fn attributes(self) -> u64 {
        let nosuid = libc::MOUNT_ATTR_NOSUID;
        match self {
            Self::Read => libc::MOUNT_ATTR_RDONLY | nosuid | libc::MOUNT_ATTR_NODEV,
            Self::Write => nosuid | libc::MOUNT_ATTR_NODEV,
            Self::Device => libc::MOUNT_ATTR_RDONLY | nosuid | libc::MOUNT_ATTR_NOEXEC,
        }
    }
}

/// A file system to make new.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fresh {
    /// Its type.
    pub kind: &'static str,
    /// Its options.
    pub options: &'static [(&'static str, &'static str)],
    /// What its mount forbids.
    pub attributes: MountAttrFlags,
}

/// A mount that is not attached anywhere yet.
#[derive(Debug)]
pub(super) struct Tree {
    mount: OwnedFd,
    name: String,
}

impl Tree {
    /// Clones the mount at a host path, with everything mounted below it.
    pub(super) fn clone_of(host: &Path, rights: Rights) -> Result<Self, Failure> {
        let name = host.display().to_string();
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE;
        let mount =
            open_tree(CWD, host, flags).map_err(|errno| Failure::new("open_tree", &name, errno))?;
        set_mount_attributes(mount.as_fd(), rights.attributes(), Reach::Recursive)
            .map_err(|errno| Failure::new("mount_setattr", &name, errno))?;
        Ok(Self { mount, name })
    }

    /// Makes a new file system.
    pub(super) fn fresh(fresh: &Fresh) -> Result<Self, Failure> {
        let kind = fresh.kind;
        let failed = |call: &str| {
            let call = format!("{call}({kind})");
            move |errno: Errno| Failure::new(&call, kind, errno)
        };
        let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).map_err(failed("fsopen"))?;
        for (option, value) in fresh.options {
            fsconfig_set_string(&context, *option, *value).map_err(failed("fsconfig"))?;
        }
        fsconfig_create(&context).map_err(failed("fsconfig"))?;
        let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, fresh.attributes)
            .map_err(failed("fsmount"))?;
        Ok(Self {
            mount,
            name: kind.to_owned(),
        })
    }

    fn is_directory(&self) -> Result<bool, Failure> {
        let stat = rustix::fs::fstat(&self.mount)
            .map_err(|errno| Failure::new("fstat", &self.name, errno))?;
        Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
    }

    fn attach(&self, to: &OwnedFd, inside: &Path) -> Result<(), Failure> {
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(&self.mount, c"", to, c"", flags)
            .map_err(|errno| Failure::new("move_mount", &inside.display().to_string(), errno))
    }
}

/// The root that is being furnished; every path is resolved below it.
#[derive(Debug)]
pub(super) struct Root {
    top: OwnedFd,
}

impl Root {
    /// Attaches a new file system somewhere on the host's root and treats it as the root to be.
    pub(super) fn new(tree: Tree, at: &Path) -> Result<Self, Failure> {
        let failed = |errno| Failure::new("open", &at.display().to_string(), errno);
        let to = openat(
            CWD,
            at,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(failed)?;
        tree.attach(&to, at)?;
        Ok(Self { top: tree.mount })
    }

    /// Returns the descriptor of the root directory.
    pub(super) fn top(&self) -> &OwnedFd {
        &self.top
    }

    /// Makes a directory and its missing parents; an existing one is kept as it is.
    pub(super) fn directory(&self, inside: &Path, mode: u32) -> Result<OwnedFd, Failure> {
        let failed = |call: &'static str| {
            move |errno: Errno| Failure::new(call, &inside.display().to_string(), errno)
        };
        let names = names(inside).map_err(failed("resolve"))?;
        let mut at =
            open_place(&self.top, OsStr::new("."), OFlags::DIRECTORY).map_err(failed("openat2"))?;
        for (index, name) in names.iter().enumerate() {
            let mode = if index + 1 == names.len() {
                mode
            } else {
                0o755
            };
            match mkdirat(&at, *name, Mode::from_raw_mode(mode)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed("mkdirat")(errno)),
            }
            at = open_place(&at, name, OFlags::DIRECTORY).map_err(failed("openat2"))?;
        }
        Ok(at)
    }

    /// Makes a file with a content where none is yet.
    pub(super) fn file(&self, inside: &Path, content: &[u8]) -> Result<(), Failure> {
        let name = inside.display().to_string();
        let (parent, last) = self.parent(inside)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&parent, last, flags, Mode::from_raw_mode(0o644))
            .map_err(|errno| Failure::new("openat", &name, errno))?;
        std::fs::File::from(file)
            .write_all(content)
            .map_err(|error| {
                Failure::new(
                    "write",
                    &name,
                    Errno::from_io_error(&error).unwrap_or(Errno::IO),
                )
            })
    }

    /// Makes a symbolic link.
    pub(super) fn link(&self, inside: &Path, target: &Path) -> Result<(), Failure> {
        let (parent, last) = self.parent(inside)?;
        symlinkat(target, &parent, last)
            .map_err(|errno| Failure::new("symlinkat", &inside.display().to_string(), errno))
    }

    /// Attaches a mount, making the place it covers if it is missing.
    pub(super) fn attach(&self, tree: &Tree, inside: &Path) -> Result<(), Failure> {
        if inside.parent().is_none() {
            // A mount over the root would hide everything that stands on it.
            return Err(Failure::new(
                "resolve",
                &inside.display().to_string(),
                Errno::INVAL,
            ));
        }
        if tree.is_directory()? {
            return tree.attach(&self.directory(inside, 0o755)?, inside);
        }
        let name = inside.display().to_string();
        let (parent, last) = self.parent(inside)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&parent, last, flags, Mode::from_raw_mode(0o600)) {
            Ok(made) => drop(made),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(Failure::new("openat", &name, errno)),
        }
        let to = open_place(&parent, last, OFlags::empty())
            .map_err(|errno| Failure::new("openat2", &name, errno))?;
        tree.attach(&to, inside)
    }

    /// Makes a file that is read-only on its own, also where the place around it is writable.
    ///
    /// Its bytes lie on the root's memory under a name that is gone before anything else runs.
    pub(super) fn sealed_file(&self, inside: &Path, content: &[u8]) -> Result<(), Failure> {
        let staged = Path::new("/.staged");
        self.file(staged, content)?;
        let failed = |call: &'static str| {
            move |errno: Errno| Failure::new(call, &inside.display().to_string(), errno)
        };
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let mount = open_tree(&self.top, c".staged", flags).map_err(failed("open_tree"))?;
        set_mount_attributes(mount.as_fd(), Rights::Read.attributes(), Reach::One)
            .map_err(failed("mount_setattr"))?;
        self.attach(
            &Tree {
                mount,
                name: inside.display().to_string(),
            },
            inside,
        )?;
        unlinkat(&self.top, c".staged", AtFlags::empty()).map_err(failed("unlinkat"))
    }

    /// Tells whether something is there.
    pub(super) fn holds(&self, inside: &Path) -> bool {
        names(inside).is_ok_and(|names| {
            let relative: std::path::PathBuf = names.iter().collect();
            rustix::fs::statat(&self.top, &relative, AtFlags::SYMLINK_NOFOLLOW).is_ok()
        })
    }

    /// Forbids writes to the root's own files; mounts on it keep their rights.
    pub(super) fn seal(&self) -> Result<(), Failure> {
        set_mount_attributes(self.top.as_fd(), Rights::Read.attributes(), Reach::One)
            .map_err(|errno| Failure::new("mount_setattr", "/", errno))
    }

    fn parent<'a>(&self, inside: &'a Path) -> Result<(OwnedFd, &'a OsStr), Failure> {
        let failed = || Failure::new("resolve", &inside.display().to_string(), Errno::INVAL);
        names(inside).map_err(|_| failed())?;
        let (parent, last) = inside.parent().zip(inside.file_name()).ok_or_else(failed)?;
        Ok((self.directory(parent, 0o755)?, last))
    }
}

/// Opens a place below a directory; a symbolic link on the way or at the end is an error.
fn open_place(at: &OwnedFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(
        at,
        name,
        flags | OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        resolve,
    )
}

/// Splits an absolute path without `..` into its names.
fn names(path: &Path) -> Result<Vec<&OsStr>, Errno> {
    let mut components = path.components();
    if components.next() != Some(Component::RootDir) {
        return Err(Errno::INVAL);
    }
    components
        .map(|component| match component {
            Component::Normal(name) => Ok(name),
            Component::ParentDir
            | Component::CurDir
            | Component::RootDir
            | Component::Prefix(_) => Err(Errno::INVAL),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::names;

    #[test]
    fn only_absolute_paths_without_parents_have_names() {
        assert_eq!(names(Path::new("/a//b/./c")).unwrap(), ["a", "b", "c"]);
        assert_eq!(names(Path::new("/")).unwrap().len(), 0);
        assert!(names(Path::new("a/b")).is_err());
        assert!(names(Path::new("/a/../b")).is_err());
    }
}
