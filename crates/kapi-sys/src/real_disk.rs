//! The disk of the machine.
//!
//! State directories are private.
//! Whatever writes refuses to follow a symbolic link in the last place of the path, and nothing
//! opens a device or a named pipe: a state directory may have come with a cloned repository.
//! Knows nothing of what the files mean.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::{fs, io, thread};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags, openat, statx};

use crate::disk::{Disk, DiskError};
use crate::lock::{Lock, LockError};
use crate::private_mode;

/// Files whose lengths are asked for by one thread before another is worth its start, and the most
/// threads that ask.
const FILES_PER_ASKER: usize = 256;
const ASKERS_MAX: usize = 4;

/// The disk of the machine, through the standard library.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn read(&self, path: &Path, from: u64) -> Result<Option<Vec<u8>>, DiskError> {
        let read = || {
            let Some(mut file) = unless_missing(open_file(path, OpenOptions::new().read(true)))?
            else {
                return Ok(None);
            };
            file.seek(SeekFrom::Start(from))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        };
        read().map_err(at("read", path))
    }

    fn len(&self, path: &Path) -> Result<Option<u64>, DiskError> {
        let length = || match unless_missing(fs::metadata(path))? {
            None => Ok(None),
            Some(metadata) if metadata.is_file() => Ok(Some(metadata.len())),
            Some(_) => Err(not_a_file()),
        };
        length().map_err(at("measure", path))
    }

    fn lens(&self, dir: &Path, files: &[PathBuf]) -> Vec<Result<Option<u64>, DiskError>> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, dir, flags, Mode::empty());
        let len = |file: &PathBuf| {
            // Where the short way is barred, the long one says why.
            let short = directory.as_ref().map(|from| len_from(from, file));
            short
                .ok()
                .flatten()
                .map_or_else(|| self.len(&dir.join(file)), |len| Ok(Some(len)))
        };
        // The kernel takes its time for each, and serves several who ask at once.
        let n_askers = files.len().div_ceil(FILES_PER_ASKER).clamp(1, ASKERS_MAX);
        let share = files.len().div_ceil(n_askers).max(1);
        let mut shares = files.chunks(share);
        let own = shares.next().unwrap_or_default();
        thread::scope(|scope| {
            let ask = |share: &[PathBuf]| share.iter().map(len).collect::<Vec<_>>();
            let others: Vec<_> = shares
                .map(|share| scope.spawn(move || ask(share)))
                .collect();
            let mut lens = ask(own);
            for other in others {
                lens.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            lens
        })
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>, DiskError> {
        let list = || {
            let Some(entries) = unless_missing(fs::read_dir(dir))? else {
                return Ok(Vec::new());
            };
            let mut names = Vec::new();
            for entry in entries {
                names.push(entry?.file_name().to_string_lossy().into_owned());
            }
            names.sort();
            Ok(names)
        };
        list().map_err(at("list", dir))
    }

    fn create_dir(&self, dir: &Path) -> Result<bool, DiskError> {
        private_mode::create_dir(dir).map_err(at("create directory", dir))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        let write = || {
            let mut file = open_for_writing(path, OpenOptions::new().write(true).create(true))?;
            file.set_len(0)?;
            file.write_all(bytes)
        };
        write().map_err(at("write", path))
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        let append = || {
            let mut file = open_for_writing(path, OpenOptions::new().append(true).create(true))?;
            file.write_all(bytes)
        };
        append().map_err(at("append to", path))
    }

    fn truncate(&self, path: &Path, len: u64) -> Result<(), DiskError> {
        let truncate = || {
            let file = open_for_writing(path, OpenOptions::new().write(true))?;
            if len > file.metadata()?.len() {
                return Err(too_short_to_cut());
            }
            file.set_len(len)
        };
        truncate().map_err(at("truncate", path))
    }

    fn sync(&self, path: &Path) -> Result<(), DiskError> {
        let sync = || {
            let file = open_any(path, OpenOptions::new().read(true), OFlags::NONBLOCK)?;
            let kind = file.metadata()?.file_type();
            if kind.is_dir() {
                file.sync_all()
            } else if kind.is_file() {
                // Also writes the length, which is what reading the content back needs.
                file.sync_data()
            } else {
                Err(not_a_file())
            }
        };
        sync().map_err(at("sync", path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        fs::rename(from, to).map_err(at("rename to", to))
    }

    fn lock(&self, path: &Path, owner: &str, wait_ms: u64) -> Result<Lock, LockError> {
        Lock::acquire(path, owner, wait_ms)
    }
}

/// Returns the length of a regular file, without walking the way to `directory` again; `None` when
/// there is anything else to say.
fn len_from(directory: &OwnedFd, file: &Path) -> Option<u64> {
    let asked = StatxFlags::TYPE | StatxFlags::SIZE;
    let found = statx(directory, file, AtFlags::empty(), asked).ok()?;
    let is_file = FileType::from_raw_mode(found.stx_mode.into()) == FileType::RegularFile;
    is_file.then_some(found.stx_size)
}

/// The complaint about a path that is there but is no regular file.
pub(crate) fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

/// The complaint about a cut that would make the file longer.
pub(crate) fn too_short_to_cut() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "the file is shorter than that")
}

fn at(op: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DiskError {
    move |source| DiskError {
        op,
        path: path.to_path_buf(),
        source,
    }
}

fn unless_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn open_for_writing(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let options = options.mode(private_mode::file_mode(path));
    let file = regular(open_any(
        path,
        options,
        OFlags::NONBLOCK | OFlags::NOFOLLOW,
    )?)?;
    private_mode::tighten(path, &file)?;
    Ok(file)
}

fn open_file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    regular(open_any(path, options, OFlags::NONBLOCK)?)
}

/// Opens without waiting for the other end of a named pipe.
fn open_any(path: &Path, options: &mut OpenOptions, flags: OFlags) -> io::Result<File> {
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    options.custom_flags(flags).open(path)
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(not_a_file())
    }
}
