//! The private directory of one container on the host, and what is left of the rooms of others.
//!
//! Holds copies of the spec's files and links to its layers, under names that need no quoting. Its
//! lock is held while its container runs: a room whose lock is free belongs to a host side that died.

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

/// The directory of all rooms, below the user's runtime directory.
const ROOMS: &str = "kapi-containers";
/// Begins the name of a room that nobody has moved into yet.
const UNFINISHED: &str = ".new-";
/// The lock's name in a room.
const LOCK: &str = "lock";
/// The directory of the file copies in a room.
const FILES: &str = "files";
/// Random bytes in a room's name.
const NAME_BYTES: usize = 8;
/// The most rooms that one start looks at.
const ROOMS_MAX: usize = 10_000;

/// A room, locked by this process.
#[derive(Debug)]
pub(super) struct RunDirectory {
    /// Where it is.
    path: PathBuf,
    /// Its random name, the label of its container.
    pub name: String,
    _lock: File,
}

impl RunDirectory {
    /// Makes a room for one run of a sandbox, whose name its lock holds.
    pub(super) fn new(host: &PodmanHost, sandbox: &str) -> Result<Self, PodmanError> {
        let rooms = rooms(host)?;
        check_host(&rooms)?;
        let name = random_name()?;
        let unfinished = rooms.join(format!("{UNFINISHED}{name}"));
        // A sweep must not find a room whose lock is there and not yet taken.
        let nobody_sweeps = hold(&rooms, FlockOperation::LockShared)?;
        make_private(&unfinished).map_err(PodmanError::file("create directory", &unfinished))?;
        let mut lock = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(unfinished.join(LOCK))
            .map_err(PodmanError::file("create the lock of", &unfinished))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(PodmanError::call("lock a container's directory"))?;
        drop(nobody_sweeps);
        lock.write_all(sandbox.as_bytes())
            .map_err(PodmanError::file("write the lock of", &unfinished))?;
        let path = rooms.join(&name);
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
        let parts = [
            ("lower", lower),
            ("upper", &layer.upper),
            ("work", &layer.work),
        ];
        for (part, target) in parts {
            let link = self.path.join(format!("{part}{index}"));
            symlink(target, &link).map_err(PodmanError::file("link", &link))?;
            words.push(format!("{part}dir={}", link.display()));
        }
        // The same attributes whoever mounts it, and no sync of the whole file system at the end.
        words.push("userxattr,volatile".to_owned());
        Ok(words.join(","))
    }

    /// Makes an empty directory in the room, for a build that needs no files.
    pub(super) fn context(&self) -> Result<PathBuf, PodmanError> {
        let context = self.path.join("context");
        make_private(&context).map_err(PodmanError::file("create directory", &context))?;
        Ok(context)
    }

    /// Removes the room.
    pub(super) fn remove(self) -> Result<(), PodmanError> {
        fs::remove_dir_all(&self.path).map_err(PodmanError::file("remove", &self.path))
    }
}

/// Clears what host sides that died left: their containers, layer volumes and rooms.
pub(super) fn sweep(host: &PodmanHost) -> Result<usize, PodmanError> {
    let rooms = rooms(host)?;
    let entries = fs::read_dir(&rooms).map_err(PodmanError::file("list", &rooms))?;
    let mut n_swept = 0;
    for entry in entries.flatten().take(ROOMS_MAX) {
        let path = entry.path();
        let nobody_moves_in = hold(&rooms, FlockOperation::LockExclusive)?;
        let Ok(mut lock) = File::open(path.join(LOCK)) else {
            // Being made or being removed at this moment.
            continue;
        };
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK | Errno::INTR) => continue,
            Err(errno) => return Err(PodmanError::call("lock a container's directory")(errno)),
        }
        drop(nobody_moves_in);
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

/// Whether somebody is in a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunDirectoryState {
    /// Its launcher lives.
    BySomebody,
    /// Its launcher is dead.
    ByNobody,
    /// There is no such room here.
    NoRoom,
}

/// Tells whether somebody is in the room of this name.
pub(super) fn held(host: &PodmanHost, name: &str) -> Result<RunDirectoryState, PodmanError> {
    if check_name(name).is_err() {
        return Ok(RunDirectoryState::NoRoom);
    }
    let rooms = rooms(host)?;
    let _nobody_moves_in = hold(&rooms, FlockOperation::LockExclusive)?;
    let lock = match File::open(rooms.join(name).join(LOCK)) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(RunDirectoryState::NoRoom);
        }
        Err(error) => {
            return Err(PodmanError::file("open the lock of", &rooms.join(name))(
                error,
            ));
        }
    };
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(RunDirectoryState::ByNobody),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(RunDirectoryState::BySomebody),
        Err(errno) => Err(PodmanError::call("lock a container's directory")(errno)),
    }
}

/// Locks the directory of all rooms, for moments only, until the file is dropped.
fn hold(rooms: &Path, how: FlockOperation) -> Result<File, PodmanError> {
    let directory = File::open(rooms).map_err(PodmanError::file("open", rooms))?;
    loop {
        match flock(&directory, how) {
            Ok(()) => return Ok(directory),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(PodmanError::call("lock the directory of containers")(errno)),
        }
    }
}

/// Returns the directory of all rooms, made when missing, owned by this user and closed to others.
fn rooms(host: &PodmanHost) -> Result<PathBuf, PodmanError> {
    let path = match &host.runtime_dir {
        Some(dir) => dir.join(ROOMS),
        None => PathBuf::from(format!("/tmp/{ROOMS}-{}", host.uid)),
    };
    match make_private(&path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(PodmanError::file("create directory", &path)(error)),
    }
    let found = fs::symlink_metadata(&path).map_err(PodmanError::file("look at", &path))?;
    if !found.is_dir() || found.uid() != host.uid || found.mode() & 0o077 != 0 {
        return Err(PodmanError::Refused {
            what: "the directory of containers",
            value: path.display().to_string(),
            why: "it must be a directory of this user that nobody else can enter",
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
