//! The private directory of one container on the host, and the sweep of those that dead launchers left behind.
//!
//! Holds copies of the spec's files and links to its layers, under names that need no quoting. Its
//! lock is held while its container runs: a directory whose lock is free belongs to a host side that died.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::cleanup;
use super::error::PodmanError;
use super::host::PodmanHost;
use super::options::{check_host, check_name};
use crate::spec::{OverlayLayer, SandboxSpec};

/// The directory of all run directories, below the user's runtime directory.
const DIRECTORY: &str = "kapi-containers";
/// The prefix of a run directory's name while it is being made.
const UNFINISHED: &str = ".new-";
/// The lock's name in a run directory.
const LOCK: &str = "lock";
/// The directory of the file copies in a run directory.
const FILES: &str = "files";
/// Random bytes in a run directory's name.
const NAME_BYTES: usize = 8;
/// The most run directories that one start looks at.
const DIRECTORIES_MAX: usize = 10_000;

/// A run directory, locked by this process.
#[derive(Debug)]
pub(super) struct RunDirectory {
    /// Its path.
    path: PathBuf,
    /// Its random name, the label of its container.
    pub name: String,
    _lock: File,
}

impl RunDirectory {
    /// Makes a directory for one run of a sandbox, whose name its lock holds.
    pub(super) fn new(host: &PodmanHost, sandbox: &str) -> Result<Self, PodmanError> {
        let base = base(host)?;
        check_host(&base)?;
        let name = random_name()?;
        let unfinished = base.join(format!("{UNFINISHED}{name}"));
        // A sweep must not find a directory whose lock is there and not yet taken.
        let no_sweep = hold(&base, FlockOperation::LockShared)?;
        make_private(&unfinished).map_err(PodmanError::file("create directory", &unfinished))?;
        let mut lock = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(unfinished.join(LOCK))
            .map_err(PodmanError::file("create the lock of", &unfinished))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(PodmanError::call("lock a container's directory"))?;
        drop(no_sweep);
        lock.write_all(sandbox.as_bytes())
            .map_err(PodmanError::file("write the lock of", &unfinished))?;
        let path = base.join(&name);
        fs::rename(&unfinished, &path).map_err(PodmanError::file("rename", &unfinished))?;
        Ok(Self {
            path,
            name,
            _lock: lock,
        })
    }

    /// Copies the spec's files and returns where the copies are, in their order.
    pub(super) fn seal_files(&self, spec: &SandboxSpec) -> Result<Vec<PathBuf>, PodmanError> {
        let files = self.path.join(FILES);
        make_private(&files).map_err(PodmanError::file("create directory", &files))?;
        let copy = |(index, (_, content)): (usize, &(PathBuf, Vec<u8>))| {
            let path = files.join(index.to_string());
            let options = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o444)
                .clone();
            let file = options.open(&path);
            file.and_then(|mut file| file.write_all(content))
                .map_err(PodmanError::file("write", &path))?;
            Ok(path)
        };
        spec.files.iter().enumerate().map(copy).collect()
    }

    /// Links the parts of a layer under names that podman cannot misread and returns overlayfs's
    /// options for it.
    pub(super) fn link_layer(
        &self,
        index: usize,
        lower: &Path,
        layer: &OverlayLayer,
    ) -> Result<String, PodmanError> {
        let mut words = Vec::new();
        let mut stack = Vec::new();
        let beneath = layer.beneath.iter().map(PathBuf::as_path);
        for (depth, target) in std::iter::once(lower).chain(beneath).enumerate() {
            let link = self.path.join(format!("lower{index}-{depth}"));
            symlink(target, &link).map_err(PodmanError::file("link", &link))?;
            stack.push(link.display().to_string());
        }
        words.push(format!("lowerdir={}", stack.join(":")));
        for (part, target) in [("upper", &layer.upper), ("work", &layer.work)] {
            let link = self.path.join(format!("{part}{index}"));
            symlink(target, &link).map_err(PodmanError::file("link", &link))?;
            words.push(format!("{part}dir={}", link.display()));
        }
        // The same attributes whoever mounts it, and no sync of the whole file system at the end.
        words.push("userxattr,volatile".to_owned());
        Ok(words.join(","))
    }

    /// Makes an empty directory in it, for a build that needs no files.
    pub(super) fn context(&self) -> Result<PathBuf, PodmanError> {
        let context = self.path.join("context");
        make_private(&context).map_err(PodmanError::file("create directory", &context))?;
        Ok(context)
    }

    /// Removes the directory and what is in it.
    pub(super) fn remove(self) -> Result<(), PodmanError> {
        fs::remove_dir_all(&self.path).map_err(PodmanError::file("remove", &self.path))
    }
}

/// Clears what dead host sides left: their containers, layer volumes and run directories.
pub(super) fn sweep(host: &PodmanHost) -> Result<usize, PodmanError> {
    let base = base(host)?;
    let entries = fs::read_dir(&base).map_err(PodmanError::file("list", &base))?;
    let mut n_swept = 0;
    for entry in entries.flatten().take(DIRECTORIES_MAX) {
        let path = entry.path();
        let no_new_directory = hold(&base, FlockOperation::LockExclusive)?;
        let Ok(mut lock) = File::open(path.join(LOCK)) else {
            // Being made or being removed at this moment.
            continue;
        };
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK | Errno::INTR) => continue,
            Err(errno) => return Err(PodmanError::call("lock a container's directory")(errno)),
        }
        drop(no_new_directory);
        if let Some(name) = entry.file_name().to_str() {
            cleanup::remove_container(host, name, name, &|| true)?;
            cleanup::remove_layers(host, name)?;
        }
        let mut sandbox = String::new();
        lock.read_to_string(&mut sandbox)
            .map_err(PodmanError::file("read the lock of", &path))?;
        if check_name(&sandbox).is_ok() {
            cleanup::remove_unlisted(host, &sandbox)?;
        }
        fs::remove_dir_all(&path).map_err(PodmanError::file("remove", &path))?;
        n_swept += 1;
    }
    Ok(n_swept)
}

/// Whether a run directory is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunDirectoryState {
    /// Its launcher lives.
    InUse,
    /// Its launcher is dead.
    Abandoned,
    /// There is no run directory of this name here.
    Missing,
}

/// Returns whether the run directory of this name is in use.
pub(super) fn state(host: &PodmanHost, name: &str) -> Result<RunDirectoryState, PodmanError> {
    if check_name(name).is_err() {
        return Ok(RunDirectoryState::Missing);
    }
    let base = base(host)?;
    let _no_new_directory = hold(&base, FlockOperation::LockExclusive)?;
    let lock = match File::open(base.join(name).join(LOCK)) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(RunDirectoryState::Missing);
        }
        Err(error) => {
            return Err(PodmanError::file("open the lock of", &base.join(name))(
                error,
            ));
        }
    };
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(RunDirectoryState::Abandoned),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(RunDirectoryState::InUse),
        Err(errno) => Err(PodmanError::call("lock a container's directory")(errno)),
    }
}

/// Locks the directory of all run directories, for moments only, until the file is dropped.
fn hold(base: &Path, how: FlockOperation) -> Result<File, PodmanError> {
    let directory = File::open(base).map_err(PodmanError::file("open", base))?;
    loop {
        match flock(&directory, how) {
            Ok(()) => return Ok(directory),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(PodmanError::call("lock the directory of containers")(errno)),
        }
    }
}

/// Returns the directory of all run directories, made when missing, owned by this user and closed to others.
fn base(host: &PodmanHost) -> Result<PathBuf, PodmanError> {
    let path = match &host.runtime_dir {
        Some(dir) => dir.join(DIRECTORY),
        None => PathBuf::from(format!("/tmp/{DIRECTORY}-{}", host.uid)),
    };
    match make_private(&path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(PodmanError::file("create directory", &path)(error)),
    }
    let found = fs::symlink_metadata(&path).map_err(PodmanError::file("inspect", &path))?;
    if !found.is_dir() || found.uid() != host.uid || found.mode() & 0o077 != 0 {
        return Err(PodmanError::Refused {
            what: "the directory of containers",
            value: path.display().to_string(),
            why: "it must be a directory of this user that no other user can enter",
        });
    }
    Ok(path)
}

fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

fn random_name() -> Result<String, PodmanError> {
    let mut bytes = [0_u8; NAME_BYTES];
    let source = Path::new("/dev/urandom");
    File::open(source)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(PodmanError::file("read", source))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
