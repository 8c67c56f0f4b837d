//! Writes objects into the repository without a process: the bytes, their hash, compressed.
//!
//! For the few objects of one commit. All are written, then made durable, then named, as git
//! does; one that is cut short leaves files that git itself clears away. Reads no object.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::thread;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use sha1::{Digest as _, Sha1};
use sha2::Sha256;

use super::trees::TreeEntry;
use crate::owned_dir::{DirError, failed};
use crate::repository::{ObjectFormat, Repository};

/// The most files that are made durable at once.
const SYNCS_MAX: usize = 8;

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    /// The content of a file or link.
    Blob,
    /// A directory.
    Tree,
    /// A commit.
    Commit,
}

/// The objects of one commit on their way into a repository.
#[derive(Debug)]
pub(crate) struct ObjectWriter {
    objects: PathBuf,
    format: ObjectFormat,
    written: Vec<WrittenObject>,
}

/// A whole object under a name that nobody looks for.
#[derive(Debug)]
struct WrittenObject {
    file: File,
    at: PathBuf,
    to: PathBuf,
}

impl ObjectWriter {
    /// Returns a way into the repository, where its files have the usual permissions.
    pub(crate) fn new(repository: &Repository) -> Option<Self> {
        let is_shared = |(key, _): &(String, String)| key == "core.sharedrepository";
        let objects = repository.object_dirs().first()?;
        (!repository.conversions().iter().any(is_shared)).then(|| Self {
            objects: objects.clone(),
            format: repository.object_format(),
            written: Vec::new(),
        })
    }

    /// Writes an object that may be there already, and returns its id.
    pub(crate) fn put(&mut self, kind: ObjectKind, bytes: &[u8]) -> Result<String, DirError> {
        let id = id(self.format, kind, bytes);
        let (dir, name) = id.split_at(2);
        let dir = self.objects.join(dir);
        let to = dir.join(name);
        if to.exists() || self.written.iter().any(|written| written.to == to) {
            return Ok(id);
        }
        match fs::create_dir(&dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed("create", &dir)(error));
            }
            Ok(()) | Err(_) => {}
        }
        // Git takes a file of such a name for one that was left behind, once it is old.
        let at = dir.join(format!("tmp_obj_kapi_{}_{name}", std::process::id()));
        match fs::remove_file(&at) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("remove", &at)(error));
            }
            Ok(()) | Err(_) => {}
        }
        let options = || {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o444);
            options
        };
        let mut file = options().open(&at).map_err(failed("create", &at))?;
        let packed = compress(&header(kind, bytes), bytes).map_err(failed("write", &at))?;
        file.write_all(&packed).map_err(failed("write", &at))?;
        self.written.push(WrittenObject { file, at, to });
        Ok(id)
    }

    /// Makes everything durable and gives it its name.
    pub(crate) fn settle(self) -> Result<(), DirError> {
        sync(&self.written)?;
        // The oldest first: what an object refers to is there before it.
        for WrittenObject { at, to, .. } in &self.written {
            fs::rename(at, to).map_err(failed("move", at))?;
        }
        Ok(())
    }
}

/// The stack of a thread that waits for the disk, in bytes.
const STACK_BYTES: usize = 256 * 1024;

/// Makes files durable, several at once: those that wait together are written together.
fn sync(written: &[WrittenObject]) -> Result<(), DirError> {
    let each = |part: &[WrittenObject]| {
        let mut files = part.iter();
        files.try_for_each(|WrittenObject { file, at, .. }| {
            file.sync_all().map_err(failed("sync", at))
        })
    };
    let n_each = written.len().div_ceil(SYNCS_MAX).max(1);
    thread::scope(|scope| {
        let parts = written.chunks(n_each);
        let started: Vec<_> = parts
            .map(|part| {
                let thread = thread::Builder::new().stack_size(STACK_BYTES);
                (part, thread.spawn_scoped(scope, move || each(part)))
            })
            .collect();
        let mut parts = started.into_iter();
        parts.try_for_each(|(part, thread)| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            // No thread could be had: it takes longer, and is as durable.
            Err(_) => each(part),
        })
    })
}

/// Returns the id that git gives an object.
pub(crate) fn id(format: ObjectFormat, kind: ObjectKind, bytes: &[u8]) -> String {
    let header = header(kind, bytes);
    let digits = |hash: &[u8]| hash.iter().map(|byte| format!("{byte:02x}")).collect();
    match format {
        ObjectFormat::Sha1 => digits(
            &Sha1::new()
                .chain_update(&header)
                .chain_update(bytes)
                .finalize(),
        ),
        ObjectFormat::Sha256 => digits(
            &Sha256::new()
                .chain_update(&header)
                .chain_update(bytes)
                .finalize(),
        ),
    }
}

/// Returns the bytes of a directory.
pub(crate) fn tree<'a>(entries: impl Iterator<Item = (&'a OsStr, &'a TreeEntry)>) -> Vec<u8> {
    let mut entries: Vec<_> = entries.collect();
    // A directory stands where its name with a slash would.
    entries.sort_by_cached_key(|(name, entry)| {
        let slash: &[u8] = if entry.is_tree() { b"/" } else { b"" };
        [name.as_bytes(), slash].concat()
    });
    let mut bytes = Vec::new();
    for (name, entry) in entries {
        bytes.extend_from_slice(entry.mode.trim_start_matches('0').as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
        let digits = entry.object.as_bytes().as_chunks::<2>().0.iter();
        bytes.extend(digits.map(|pair| {
            let value = |digit: u8| {
                char::from(digit)
                    .to_digit(16)
                    .and_then(|n| u8::try_from(n).ok())
            };
            let [high, low] = pair.map(|digit| value(digit).unwrap_or_default());
            high << 4 | low
        }));
    }
    bytes
}

fn header(kind: ObjectKind, bytes: &[u8]) -> Vec<u8> {
    let name = match kind {
        ObjectKind::Blob => "blob",
        ObjectKind::Tree => "tree",
        ObjectKind::Commit => "commit",
    };
    format!("{name} {}\0", bytes.len()).into_bytes()
}

fn compress(header: &[u8], bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(header)?;
    encoder.write_all(bytes)?;
    encoder.finish()
}
