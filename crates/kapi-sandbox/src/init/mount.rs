//! Mounts as descriptors: cloned or made detached, restricted, and only then attached.
//!
//! A tree is never visible with more rights than it will have, and a path inside is never resolved
//! through a symbolic link. Knows nothing of which mounts a sandbox needs.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, symlinkat,
    unlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use crate::status::StepFailure;
use crate::syscall::{MountScope, set_mount_attributes};

/// What a mount is restricted to; each is added to what the host already restricts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MountRights {
    /// Read; no devices, no set-user-id.
    Read,
    /// Read and write; no devices, no set-user-id.
    Write,
    /// A device node: its mode and owner cannot be changed, the device itself can be used.
    Device,
}

impl MountRights {
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
pub(super) struct NewFileSystem {
    /// Its type.
    pub kind: &'static str,
    /// Its options.
    pub options: &'static [(&'static str, &'static str)],
    /// What its mount forbids.
    pub attributes: MountAttrFlags,
}

/// A mount that is not attached anywhere yet.
#[derive(Debug)]
pub(super) struct DetachedMount {
    mount: OwnedFd,
    name: String,
}

impl DetachedMount {
    /// Clones the mount at a host path, with everything mounted below it.
    pub(super) fn clone_of(host: &Path, rights: MountRights) -> Result<Self, StepFailure> {
        let name = host.display().to_string();
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE;
        let mount = open_tree(CWD, host, flags)
            .map_err(|errno| StepFailure::new("open_tree", &name, errno))?;
        set_mount_attributes(mount.as_fd(), rights.attributes(), MountScope::Recursive)
            .map_err(|errno| StepFailure::new("mount_setattr", &name, errno))?;
        Ok(Self { mount, name })
    }

    /// Shows an open file of the host, whatever leads to it; `name` is what an error calls it.
    pub(super) fn clone_of_file(file: &OwnedFd, name: &Path) -> Result<Self, StepFailure> {
        let name = name.display().to_string();
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH;
        let mount = open_tree(file, c"", flags)
            .map_err(|errno| StepFailure::new("open_tree", &name, errno))?;
        set_mount_attributes(
            mount.as_fd(),
            MountRights::Read.attributes(),
            MountScope::One,
        )
        .map_err(|errno| StepFailure::new("mount_setattr", &name, errno))?;
        Ok(Self { mount, name })
    }

    /// Clones the mount at a directory of the host; `None` where there is no such directory.
    pub(super) fn clone_of_directory(
        host: &Path,
        rights: MountRights,
    ) -> Result<Option<Self>, StepFailure> {
        // A path that ends in a slash leads to a directory or nowhere.
        match Self::clone_of(&host.join(""), rights) {
            Ok(tree) => Ok(Some(tree)),
            Err(StepFailure { errno, .. })
                if [Errno::NOENT, Errno::NOTDIR]
                    .map(Errno::raw_os_error)
                    .contains(&errno) =>
            {
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Makes a new file system.
    pub(super) fn fresh(fresh: &NewFileSystem) -> Result<Self, StepFailure> {
        Self::make(fresh.kind, fresh.kind, fresh.attributes, |context| {
            fresh
                .options
                .iter()
                .try_for_each(|(option, value)| fsconfig_set_string(context, *option, *value))
        })
    }

    /// Makes a new file system that is set up by hand; `name` is what an error calls it.
    pub(super) fn make(
        kind: &str,
        name: &str,
        attributes: MountAttrFlags,
        set_up: impl FnOnce(&OwnedFd) -> Result<(), Errno>,
    ) -> Result<Self, StepFailure> {
        let refused = |call: &str, target: &str, errno| {
            StepFailure::new(&format!("{call}({kind})"), target, errno)
        };
        let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)
            .map_err(|errno| refused("fsopen", name, errno))?;
        let made = set_up(&context).and_then(|()| fsconfig_create(&context));
        made.map_err(|errno| refused("fsconfig", name, errno))?;
        let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
            .map_err(|errno| refused("fsmount", name, errno))?;
        Ok(Self {
            mount,
            name: name.to_owned(),
        })
    }

    /// Takes charge of a file system that was made elsewhere; `name` is what an error calls it.
    pub(super) const fn made(mount: OwnedFd, name: String) -> Self {
        Self { mount, name }
    }

    fn is_directory(&self) -> Result<bool, StepFailure> {
        let stat = rustix::fs::fstat(&self.mount)
            .map_err(|errno| StepFailure::new("fstat", &self.name, errno))?;
        Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
    }

    fn attach(&self, to: &OwnedFd, inside: &Path) -> Result<(), StepFailure> {
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(&self.mount, c"", to, c"", flags)
            .map_err(|errno| StepFailure::new("move_mount", &inside.display().to_string(), errno))
    }

    /// Attaches it to a name in a directory. Where the name has become a link meanwhile, this fails.
    fn attach_at(&self, parent: &OwnedFd, name: &OsStr, inside: &Path) -> Result<(), StepFailure> {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(&self.mount, c"", parent, name, flags)
            .map_err(|errno| StepFailure::new("move_mount", &inside.display().to_string(), errno))
    }
}

/// The root that is being furnished; every path is resolved below it.
#[derive(Debug)]
pub(super) struct NewRoot {
    top: Rc<OwnedFd>,
    /// The directory that was furnished last. Most pieces come in groups, and resolving a path costs
    /// more than using it.
    last: RefCell<Option<(PathBuf, Rc<OwnedFd>)>>,
}

impl NewRoot {
    /// Attaches a new file system somewhere on the host's root and treats it as the root to be.
    pub(super) fn new(tree: DetachedMount, at: &Path) -> Result<Self, StepFailure> {
        let failed = |errno| StepFailure::new("open", &at.display().to_string(), errno);
        let to = openat(
            CWD,
            at,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(failed)?;
        tree.attach(&to, at)?;
        Ok(Self {
            top: Rc::new(tree.mount),
            last: RefCell::new(None),
        })
    }

    /// Returns the descriptor of the root directory.
    pub(super) fn top(&self) -> &OwnedFd {
        &self.top
    }

    /// Makes a directory and its missing parents; an existing one is kept as it is.
    pub(super) fn directory(&self, inside: &Path, mode: u32) -> Result<OwnedFd, StepFailure> {
        let failed = |call: &'static str| {
            move |errno: Errno| StepFailure::new(call, &inside.display().to_string(), errno)
        };
        let names = names(inside).map_err(failed("resolve"))?;
        let whole = below(inside);
        match open_location(&self.top, whole, OFlags::DIRECTORY) {
            Err(Errno::NOENT) => {}
            found => return found.map_err(failed("openat2")),
        }
        let mut at: Option<OwnedFd> = None;
        for (index, name) in names.iter().enumerate() {
            let mode = if index + 1 == names.len() {
                mode
            } else {
                0o755
            };
            let parent = at.as_ref().unwrap_or(&*self.top);
            match mkdirat(parent, *name, Mode::from_raw_mode(mode)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed("mkdirat")(errno)),
            }
            let next = open_location(parent, Path::new(name), OFlags::DIRECTORY);
            at = Some(next.map_err(failed("openat2"))?);
        }
        at.ok_or_else(|| failed("resolve")(Errno::INVAL))
    }

    /// Makes a file with a content where none is yet.
    pub(super) fn file(&self, inside: &Path, content: &[u8]) -> Result<(), StepFailure> {
        let file = self.make_file(inside, 0o644)?;
        std::fs::File::from(file)
            .write_all(content)
            .map_err(|error| {
                StepFailure::new(
                    "write",
                    &inside.display().to_string(),
                    Errno::from_io_error(&error).unwrap_or(Errno::IO),
                )
            })
    }

    /// Makes an empty file and its missing parents, following no link.
    fn make_file(&self, inside: &Path, mode: u32) -> Result<OwnedFd, StepFailure> {
        let (parent, last) = self.parent(inside)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        openat(&*parent, last, flags, Mode::from_raw_mode(mode))
            .map_err(|errno| StepFailure::new("openat", &inside.display().to_string(), errno))
    }

    /// Makes a symbolic link.
    pub(super) fn link(&self, inside: &Path, target: &Path) -> Result<(), StepFailure> {
        let (parent, last) = self.parent(inside)?;
        symlinkat(target, &*parent, last)
            .map_err(|errno| StepFailure::new("symlinkat", &inside.display().to_string(), errno))
    }

    /// Attaches a mount, making the place it covers if it is missing.
    pub(super) fn attach(&self, tree: &DetachedMount, inside: &Path) -> Result<(), StepFailure> {
        if inside.parent().is_none() {
            // A mount over the root would hide everything that stands on it.
            return Err(StepFailure::new(
                "resolve",
                &inside.display().to_string(),
                Errno::INVAL,
            ));
        }
        let failed = |call: &'static str| {
            move |errno: Errno| StepFailure::new(call, &inside.display().to_string(), errno)
        };
        let (parent, last) = self.parent(inside)?;
        self.forget_below(inside);
        if tree.is_directory()? {
            match mkdirat(&*parent, last, Mode::from_raw_mode(0o755)) {
                Ok(()) => return tree.attach_at(&parent, last, inside),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed("mkdirat")(errno)),
            }
        } else {
            match self.make_file(inside, 0o600) {
                Ok(made) => return tree.attach(&made, inside),
                Err(failure) if failure.errno == Errno::EXIST.raw_os_error() => {}
                Err(failure) => return Err(failure),
            }
        }
        let to =
            open_location(&parent, Path::new(last), OFlags::empty()).map_err(failed("openat2"))?;
        tree.attach(&to, inside)
    }

    /// Makes a writable directory on the root's own memory that stays writable when the root is sealed.
    pub(super) fn writable_directory(&self, inside: &Path, mode: u32) -> Result<(), StepFailure> {
        let location = self.directory(inside, mode)?;
        self.forget_below(inside);
        self.clone_of_location(&location, inside)?
            .attach(&location, inside)
    }

    /// Shows at a second place what stands at a first, with everything mounted below it.
    pub(super) fn alias(&self, shown: &Path, also_at: &Path) -> Result<(), StepFailure> {
        let failed = |errno| StepFailure::new("openat2", &shown.display().to_string(), errno);
        names(shown).map_err(failed)?;
        let location = open_location(&self.top, below(shown), OFlags::empty()).map_err(failed)?;
        self.attach(&self.clone_of_location(&location, shown)?, also_at)
    }

    fn clone_of_location(
        &self,
        location: &OwnedFd,
        inside: &Path,
    ) -> Result<DetachedMount, StepFailure> {
        let name = inside.display().to_string();
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::AT_EMPTY_PATH;
        let mount = open_tree(location, c"", flags)
            .map_err(|errno| StepFailure::new("open_tree", &name, errno))?;
        Ok(DetachedMount { mount, name })
    }

    /// Makes a file that is read-only on its own, also where the place around it is writable.
    ///
    /// Its bytes lie on the root's memory under a name that is gone before anything else runs.
    pub(super) fn sealed_file(&self, inside: &Path, content: &[u8]) -> Result<(), StepFailure> {
        let staged = Path::new("/.staged");
        self.file(staged, content)?;
        let failed = |call: &'static str| {
            move |errno: Errno| StepFailure::new(call, &inside.display().to_string(), errno)
        };
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let mount = open_tree(&*self.top, c".staged", flags).map_err(failed("open_tree"))?;
        set_mount_attributes(
            mount.as_fd(),
            MountRights::Read.attributes(),
            MountScope::One,
        )
        .map_err(failed("mount_setattr"))?;
        self.attach(
            &DetachedMount {
                mount,
                name: inside.display().to_string(),
            },
            inside,
        )?;
        unlinkat(&*self.top, c".staged", AtFlags::empty()).map_err(failed("unlinkat"))
    }

    /// Forbids writes to the root's own files; mounts on it keep their rights.
    pub(super) fn seal(&self) -> Result<(), StepFailure> {
        set_mount_attributes(
            self.top.as_fd(),
            MountRights::Read.attributes(),
            MountScope::One,
        )
        .map_err(|errno| StepFailure::new("mount_setattr", "/", errno))
    }

    /// Opens the directory that a path lies in, making what is missing.
    fn parent<'a>(&self, inside: &'a Path) -> Result<(Rc<OwnedFd>, &'a OsStr), StepFailure> {
        let failed = || StepFailure::new("resolve", &inside.display().to_string(), Errno::INVAL);
        names(inside).map_err(|_| failed())?;
        let (parent, last) = inside.parent().zip(inside.file_name()).ok_or_else(failed)?;
        if parent.parent().is_none() {
            return Ok((Rc::clone(&self.top), last));
        }
        if let Some((path, opened)) = self.last.borrow().as_ref()
            && path == parent
        {
            return Ok((Rc::clone(opened), last));
        }
        let opened = self
            .directory(parent, 0o755)
            .map_err(|failure| StepFailure {
                target: inside.display().to_string(),
                ..failure
            })?;
        let opened = Rc::new(opened);
        let remembered = (parent.to_path_buf(), Rc::clone(&opened));
        *self.last.borrow_mut() = Some(remembered);
        Ok((opened, last))
    }

    /// Forgets a directory that a mount at this place is about to cover.
    fn forget_below(&self, inside: &Path) {
        self.last
            .borrow_mut()
            .take_if(|(path, _)| path.starts_with(inside));
    }
}

/// How every path inside is resolved: below the root, through no link.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

/// Opens a place below a directory; a symbolic link on the way or at the end is an error.
fn open_location(at: &OwnedFd, below: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
    openat2(at, below, flags, Mode::empty(), RESOLVE)
}

/// Returns the path from the root on, as `openat2` wants it.
fn below(inside: &Path) -> &Path {
    match inside.strip_prefix("/") {
        Ok(rest) if !rest.as_os_str().is_empty() => rest,
        Ok(_) | Err(_) => Path::new("."),
    }
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
