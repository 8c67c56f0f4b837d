//! The project's dependencies and build output, visible to an agent copy-on-write: a workspace is
//! ready to build at once, and nothing of it reaches the project.
//!
//! An ignored directory may as well hold secrets, so only names that say what they are are shown.
//! What cannot be shown is left out and said.

use std::collections::{BTreeSet, VecDeque};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use kapi_core::failure::Failure;
use kapi_git::layer::{Layer, Marks};
use kapi_git::repository::Repository;
use kapi_sandbox::spec::{Mount, MountAccess};

use crate::confine::WORKSPACE_INSIDE;
use crate::failure;

/// Names under which tools keep what they download and build, and people keep nothing else.
const KNOWN: &[&str] = &[
    "node_modules",
    "bower_components",
    ".yarn",
    ".pnpm-store",
    ".next",
    ".nuxt",
    ".turbo",
    ".parcel-cache",
    "target",
    "build",
    "dist",
    "out",
    "_build",
    "deps",
    "vendor",
    ".venv",
    "venv",
    ".tox",
    ".nox",
    "__pycache__",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".gradle",
    ".dart_tool",
    ".stack-work",
    "dist-newstyle",
    "elm-stuff",
    "Pods",
    "DerivedData",
    "zig-cache",
    ".zig-cache",
    "zig-out",
];
/// Those of the names that hold what was downloaded, and nothing that was built of the project.
const DEPENDENCIES: &[&str] = &[
    "node_modules",
    "bower_components",
    ".yarn",
    ".pnpm-store",
    "deps",
    "vendor",
    ".venv",
    "venv",
    "elm-stuff",
    "Pods",
];
/// How deep below the top directories of dependencies are looked for, and among how many entries.
const DEPENDENCIES_DEPTH: usize = 3;
const DEPENDENCIES_ENTRIES_MAX: usize = 20_000;
/// How many directories of a tree are looked into for a repository of its own.
const LOOKED_INTO_MAX: usize = 2_000;
/// How deep that goes: dependencies that are repositories lie near the top.
const LOOKED_INTO_DEPTH: usize = 3;
/// How many directories are shown; a repository with more keeps its dependencies in few of them.
const TREES_MAX: usize = 24;
/// File systems an overlay cannot write to.
const UNFIT: &[&str] = &[
    "overlay", "nfs", "nfs4", "cifs", "9p", "fuse", "vfat", "virtiofs",
];

/// Where a repository's ignored directories are shown, and which are not.
pub struct IgnoredPlan<'a> {
    /// The person's home.
    pub home: &'a Path,
    /// The directory in which they are shown.
    pub workspace: &'a Path,
    /// Where the layers are that lie over them.
    pub layers: &'a Path,
    /// Directories that are shown by others.
    pub except: &'a BTreeSet<PathBuf>,
    /// Who holds the layers.
    pub owner: &'a str,
}

/// Ignored directories, ready to be mounted.
#[derive(Debug, Default)]
pub struct IgnoredDirectories {
    /// Where each is mounted.
    pub mounts: Vec<Mount>,
    /// What was left out and why, as sentences.
    pub notes: Vec<String>,
    /// Held as long as they may be mounted.
    layers: Vec<Layer>,
}

impl IgnoredDirectories {
    /// Finds the directories, without those that others show, and opens a layer for each.
    pub fn open(repository: &Repository, plan: &IgnoredPlan<'_>) -> Result<Self, Failure> {
        Self::open_all(repository, plan, shown(repository, plan.home)?)
    }

    /// Finds the directories of dependencies near the top of the project, and opens a layer for each
    /// whose place in the workspace is free.
    pub fn open_dependencies(
        repository: &Repository,
        plan: &IgnoredPlan<'_>,
        is_free: impl Fn(&Path) -> bool,
    ) -> Result<Self, Failure> {
        let mut directories = dependencies(repository, plan.home)?;
        directories.retain(|path| is_free(path));
        Self::open_all(repository, plan, directories)
    }

    fn open_all(
        repository: &Repository,
        plan: &IgnoredPlan<'_>,
        mut directories: Vec<PathBuf>,
    ) -> Result<Self, Failure> {
        let IgnoredPlan {
            workspace,
            layers,
            except,
            owner,
            ..
        } = *plan;
        let mut ignored = Self::default();
        directories.retain(|path| !except.contains(path));
        if directories.is_empty() {
            return Ok(ignored);
        }
        let mounted = MountPoints::read()?;
        if let Some(kind) = mounted.unfit(layers) {
            let note =
                format!("ignored directories are not visible: their layers would be on {kind}");
            ignored.notes.push(note);
            return Ok(ignored);
        }
        let mut left_out = Vec::new();
        for (n, relative) in directories.iter().enumerate() {
            let host = repository.top_level().join(relative);
            let why = if n >= TREES_MAX {
                Some(format!("there are more than {TREES_MAX}"))
            } else if !is_way_clear(workspace, relative) {
                Some("the agent replaced it".to_owned())
            } else {
                mounted.obstacle(&host)
            };
            match why {
                Some(why) => left_out.push(format!("{} ({why})", relative.display())),
                None => ignored.add(relative, host, layers, owner)?,
            }
        }
        if !left_out.is_empty() {
            let left_out = left_out.join(", ");
            let note = format!("ignored directories that are not visible: {left_out}");
            ignored.notes.push(note);
        }
        Ok(ignored)
    }

    fn add(
        &mut self,
        relative: &Path,
        host: PathBuf,
        layers: &Path,
        owner: &str,
    ) -> Result<(), Failure> {
        let failed = |error: &dyn std::error::Error| failure::plain(error);
        let dir = layers.join(layer_name(relative));
        let layer = Layer::open(&dir, Marks::User, owner).map_err(|error| failed(&error))?;
        let work = layer.fresh_work().map_err(|error| failed(&error))?;
        self.mounts.push(Mount {
            host,
            inside: Path::new(WORKSPACE_INSIDE).join(relative),
            access: MountAccess::CopyOnWrite(kapi_sandbox::spec::OverlayLayer {
                upper: layer.upper(),
                work,
                beneath: Vec::new(),
            }),
        });
        self.layers.push(layer);
        Ok(())
    }
}

/// Returns the ignored directories that an agent may see: those whose names say that tools made
/// them, and none that holds a repository of its own.
///
/// A project that is the person's home, or holds it, shows none.
pub fn shown(repository: &Repository, home: &Path) -> Result<Vec<PathBuf>, Failure> {
    let top = repository.top_level();
    if holds_home(top, home) {
        return Ok(Vec::new());
    }
    let directories = repository
        .ignored_directories()
        .map_err(|error| failure::plain(&error))?;
    let is_known = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| KNOWN.contains(&name))
    };
    let known = directories.into_iter().filter(is_known);
    Ok(known
        .filter(|path| !holds_repository(&top.join(path)))
        .collect())
}

/// Returns the ignored directories of dependencies near the top, which cost little to find.
fn dependencies(repository: &Repository, home: &Path) -> Result<Vec<PathBuf>, Failure> {
    let top = repository.top_level();
    if holds_home(top, home) {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    let mut n_seen = 0;
    let mut waiting = VecDeque::from([(PathBuf::new(), 1)]);
    while let Some((dir, depth)) = waiting.pop_front() {
        // What cannot be listed here cannot be read inside either.
        for entry in fs::read_dir(top.join(&dir)).into_iter().flatten().flatten() {
            n_seen += 1;
            let name = entry.file_name();
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if n_seen > DEPENDENCIES_ENTRIES_MAX || !is_directory {
                continue;
            }
            let path = dir.join(&name);
            if name
                .to_str()
                .is_some_and(|name| DEPENDENCIES.contains(&name))
            {
                found.push(path);
            } else if depth < DEPENDENCIES_DEPTH && name != ".git" && name != ".ilchul" {
                waiting.push_back((path, depth + 1));
            }
        }
    }
    if found.is_empty() {
        return Ok(found);
    }
    let mut ignored = repository
        .ignored_of(&found)
        .map_err(|error| failure::plain(&error))?;
    ignored.retain(|path| !holds_repository(&top.join(path)));
    Ok(ignored)
}

fn holds_home(top: &Path, home: &Path) -> bool {
    let real_home = fs::canonicalize(home).unwrap_or_else(|_| home.to_path_buf());
    home.starts_with(top) || real_home.starts_with(top)
}

/// Tells whether a directory can be shown at its place: nothing on the way there is a link or a file.
pub fn is_way_clear(workspace: &Path, relative: &Path) -> bool {
    let mut path = workspace.to_path_buf();
    relative.components().all(|component| {
        path.push(component);
        match fs::symlink_metadata(&path) {
            Ok(found) => found.is_dir(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    })
}

/// Tells whether a repository of its own lies in a directory: its history, its other branches and
/// the addresses of its remotes are nobody's dependency.
fn holds_repository(directory: &Path) -> bool {
    let mut waiting = VecDeque::from([(directory.to_path_buf(), 0)]);
    for _ in 0..LOOKED_INTO_MAX {
        let Some((path, depth)) = waiting.pop_front() else {
            return false;
        };
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            if entry.file_name() == ".git" {
                return true;
            }
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_directory && depth < LOOKED_INTO_DEPTH {
                waiting.push_back((entry.path(), depth + 1));
            }
        }
    }
    false
}

/// Returns a directory name that no two paths share.
pub fn layer_name(relative: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;

    use sha2::{Digest as _, Sha256};
    let digest = Sha256::digest(relative.as_os_str().as_bytes());
    let digits: Vec<String> = digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    digits.concat()
}

/// What is mounted where, as the kernel tells it.
pub struct MountPoints(Vec<(PathBuf, String)>);

impl MountPoints {
    /// Reads the mount points of this process.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn read() -> Result<Self, Failure> {
        let path = Path::new("/proc/self/mountinfo");
        let text = fs::read_to_string(path).map_err(|error| failure::file("read", path, &error))?;
        Ok(Self(text.lines().filter_map(mount_point).collect()))
    }

    /// Returns the kind of file system below a path if no layer can lie there.
    pub fn unfit(&self, path: &Path) -> Option<&str> {
        let below = self.0.iter().filter(|(point, _)| path.starts_with(point));
        let (_, kind) = below.max_by_key(|(point, _)| point.components().count())?;
        let is_unfit = UNFIT.iter().any(|unfit| {
            kind == unfit
                || kind
                    .strip_prefix(unfit)
                    .is_some_and(|rest| rest.starts_with('.'))
        });
        is_unfit.then_some(kind.as_str())
    }

    /// Returns why a directory cannot be the lower part of a layer.
    pub fn obstacle(&self, host: &Path) -> Option<String> {
        let is_below = |point: &&(PathBuf, String)| point.0.starts_with(host);
        if self.0.iter().any(|point| is_below(&point)) {
            return Some("another file system is mounted in it".to_owned());
        }
        let owner = fs::metadata(host).ok()?.uid();
        let ours = rustix::process::geteuid().as_raw();
        (owner != ours).then(|| format!("it belongs to user {owner}"))
    }
}

/// Reads the mount point and the kind of file system from one line of mountinfo (proc(5)).
fn mount_point(line: &str) -> Option<(PathBuf, String)> {
    let (before, after) = line.split_once(" - ")?;
    let point = before.split(' ').nth(4)?;
    let kind = after.split(' ').next()?;
    Some((PathBuf::from(unescaped(point)), kind.to_owned()))
}

/// Undoes the octal escapes of blanks and backslashes.
fn unescaped(text: &str) -> String {
    let pairs = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    pairs
        .iter()
        .fold(text.to_owned(), |text, (escaped, plain)| {
            text.replace(escaped, plain)
        })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{MountPoints, mount_point};

    const LINES: &str = "22 1 8:1 / / rw shared:1 - ext4 /dev/a rw\n\
        23 22 0:5 / /srv/a\\040b rw - overlay none rw\n\
        24 22 0:6 / /srv/net rw - nfs4 host:/x rw\n\
        25 22 0:7 / /srv/f rw - fuse.sshfs x rw";

    #[test]
    fn layers_lie_only_where_an_overlay_can_write() {
        let points = MountPoints(LINES.lines().filter_map(mount_point).collect());
        assert_eq!(points.unfit(Path::new("/home/user/layers")), None);
        assert_eq!(points.unfit(Path::new("/srv/a b/layers")), Some("overlay"));
        assert_eq!(points.unfit(Path::new("/srv/net/x")), Some("nfs4"));
        assert_eq!(points.unfit(Path::new("/srv/f")), Some("fuse.sshfs"));
        assert!(points.obstacle(Path::new("/srv")).is_some());
    }
}
