//! Hidden checks: taken over once at approval, out of everyone's way, and named by their hash.
//!
//! They are kept in the person's own home, readable by them alone, and hashed again before each use:
//! the copy is what is run, so a later change to the directory they came from changes nothing, and a
//! change to the copy is a failure that names the file. Whether a file is executable is kept as data.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use kapi_core::failure::Failure;
use kapi_core::hidden_checks::HiddenCheckSet;
use kapi_git::hidden::{check, copy_hidden};
use kapi_git::owned_dir;
use kapi_run::failure;
use kapi_run::private_dir::make_private;
use kapi_sys::disk;
use kapi_sys::real_disk::RealDisk;
use sha2::{Digest as _, Sha256};

/// The files, below where they are kept.
const FILES: &str = "files";
/// What stands beside them: each file's kind, hash and name.
const LIST: &str = "list";
/// The most bytes of a list that are read.
const LIST_BYTES_MAX: u64 = 64 << 20;

/// Returns the contract's description of a directory of checks.
///
/// # Errors
/// When it cannot be read, or holds no file.
pub fn describe(dir: &Path) -> Result<HiddenCheckSet, Failure> {
    let entries = read(dir, &mode_kind)?;
    if entries.is_empty() {
        return Err(Failure {
            message: format!(
                "find hidden checks in {}: it contains no files",
                dir.display()
            ),
            hint: Some("give a directory with the same layout as the repository.".to_owned()),
        });
    }
    Ok(HiddenCheckSet {
        source: dir.display().to_string(),
        sha256: seal(dir, &entries)?,
        files: u32::try_from(entries.len()).unwrap_or(u32::MAX),
    })
}

/// Copies the checks of an approved contract to where they are kept, unless they are there.
///
/// # Errors
/// When they are not the ones that the contract names.
pub fn keep(hidden: &HiddenCheckSet, kept: &Path) -> Result<(), Failure> {
    if verify_kept(hidden, kept).is_ok() {
        return Ok(());
    }
    keep_from(hidden, Path::new(&hidden.source), kept)
}

/// Checks that what is kept is what was approved.
///
/// # Errors
/// When a file was changed, added or removed since, and which.
pub fn verify_kept(hidden: &HiddenCheckSet, kept: &Path) -> Result<(), Failure> {
    sealed_entries(hidden, kept).map(drop)
}

/// Does the same for a goal from before, whose checks lay in its project: they are moved first.
///
/// # Errors
/// As [`verify_kept`], and when they cannot be moved.
pub fn verify_kept_or_move(
    hidden: &HiddenCheckSet,
    kept: &Path,
    old: &Path,
) -> Result<(), Failure> {
    if kept.join(LIST).exists() || !old.is_dir() {
        return verify_kept(hidden, kept);
    }
    keep_from(hidden, old, kept)?;
    owned_dir::wipe(old).map_err(|error| failure::plain(&error))
}

/// Copies what is kept over a checkout, executable where it was; nothing that is not as approved.
pub(crate) fn lay_over(
    hidden: &HiddenCheckSet,
    kept: &Path,
    to: &Path,
) -> Result<Vec<PathBuf>, Failure> {
    let entries = sealed_entries(hidden, kept)?;
    copy_hidden(&kept.join(FILES), to).map_err(|error| failure::plain(&error))?;
    for (path, entry) in &entries {
        let mode = match entry.kind {
            HiddenFileKind::Plain => 0o644,
            HiddenFileKind::Executable => 0o755,
            HiddenFileKind::Link => continue,
        };
        set_mode(&to.join(path), mode)?;
    }
    Ok(entries.into_keys().collect())
}

/// What a file is, besides its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HiddenFileKind {
    Plain,
    Executable,
    Link,
}

impl HiddenFileKind {
    const fn mark(self) -> u8 {
        match self {
            Self::Plain => b'f',
            Self::Executable => b'x',
            Self::Link => b'l',
        }
    }
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SealedFile {
    kind: HiddenFileKind,
    sha256: String,
}

type SealedFiles = BTreeMap<PathBuf, SealedFile>;

fn keep_from(hidden: &HiddenCheckSet, source: &Path, kept: &Path) -> Result<(), Failure> {
    owned_dir::wipe(kept).map_err(|error| failure::plain(&error))?;
    let files = kept.join(FILES);
    make_private(&files)?;
    let entries = read(source, &mode_kind)?;
    copy_hidden(source, &files).map_err(|error| failure::plain(&error))?;
    for (path, entry) in &entries {
        if entry.kind != HiddenFileKind::Link {
            set_mode(&files.join(path), 0o600)?;
        }
        for dir in path.ancestors().skip(1) {
            set_mode(&files.join(dir), 0o700)?;
        }
    }
    let list = kept.join(LIST);
    disk::replace_durably(&RealDisk, &list, &listed(&entries))
        .map_err(|error| failure::plain(&error))?;
    set_mode(&list, 0o600)?;
    verify_kept(hidden, kept).map_err(|_| Failure {
        message: format!(
            "copy hidden checks: {} does not match the contract",
            source.display()
        ),
        hint: Some("the directory changed after the contract was created; start again.".into()),
    })
}

/// Returns what is kept, if it is what was approved.
fn sealed_entries(hidden: &HiddenCheckSet, kept: &Path) -> Result<SealedFiles, Failure> {
    let (files, list) = (kept.join(FILES), kept.join(LIST));
    let changed = |what: String| Failure {
        message: format!("use the hidden checks: they changed since the approval: {what}"),
        hint: Some(format!(
            "they are kept in {}, where only Kapi writes. Start a new goal with `--hidden`, or \
             restore the file.",
            kept.display()
        )),
    };
    let Some(known) = fs::symlink_metadata(&list)
        .ok()
        .filter(|found| found.is_file() && found.len() <= LIST_BYTES_MAX)
        .and_then(|_| fs::read(&list).ok())
        .and_then(|bytes| parsed(&bytes))
    else {
        return Err(changed(format!("{} is missing or damaged", list.display())));
    };
    let is_executable = |path: &Path, _: &fs::Metadata| {
        let entry = known.get(path);
        if entry.is_some_and(|entry| entry.kind == HiddenFileKind::Executable) {
            HiddenFileKind::Executable
        } else {
            HiddenFileKind::Plain
        }
    };
    let found = read(&files, &is_executable)?;
    if seal(&files, &found)? == hidden.sha256 {
        return Ok(found);
    }
    let is_other = |path: &&PathBuf| known.get(*path) != found.get(*path);
    let other = known.keys().chain(found.keys()).find(is_other);
    Err(changed(other.map_or_else(
        || format!("{} lists other files", list.display()),
        |path| format!("file {}", path.display()),
    )))
}

fn mode_kind(_: &Path, found: &fs::Metadata) -> HiddenFileKind {
    if found.permissions().mode() & 0o111 == 0 {
        HiddenFileKind::Plain
    } else {
        HiddenFileKind::Executable
    }
}

/// Reads what a directory holds, with each file's own hash.
fn read(
    dir: &Path,
    kind: &dyn Fn(&Path, &fs::Metadata) -> HiddenFileKind,
) -> Result<SealedFiles, Failure> {
    let files = check(dir).map_err(|error| failure::plain(&error))?;
    let mut entries = SealedFiles::new();
    for path in files.paths {
        let at = dir.join(&path);
        let failed = |error: std::io::Error| failure::file("read", &at, &error);
        let metadata = fs::symlink_metadata(&at).map_err(failed)?;
        let mut hash = Sha256::new();
        let kind = if metadata.is_symlink() {
            let target = fs::read_link(&at).map_err(failed)?;
            hash.update(target.as_os_str().as_bytes());
            HiddenFileKind::Link
        } else {
            add_content(&mut hash, &at)?;
            kind(&path, &metadata)
        };
        let sha256 = hex(hash);
        entries.insert(path, SealedFile { kind, sha256 });
    }
    Ok(entries)
}

/// Returns the hash that a contract names: of every name, whether it is executable or a link, and the
/// content, each with its length.
fn seal(dir: &Path, entries: &SealedFiles) -> Result<String, Failure> {
    let mut hash = Sha256::new();
    for (path, entry) in entries {
        let at = dir.join(path);
        let failed = |error: std::io::Error| failure::file("read", &at, &error);
        let name = path.as_os_str().as_bytes();
        hash.update((name.len() as u64).to_be_bytes());
        hash.update(name);
        hash.update([entry.kind.mark()]);
        if entry.kind == HiddenFileKind::Link {
            let target = fs::read_link(&at).map_err(failed)?;
            hash.update((target.as_os_str().len() as u64).to_be_bytes());
            hash.update(target.as_os_str().as_bytes());
        } else {
            let length = fs::symlink_metadata(&at).map_err(failed)?.len();
            hash.update(length.to_be_bytes());
            add_content(&mut hash, &at)?;
        }
    }
    Ok(hex(hash))
}

fn add_content(hash: &mut Sha256, path: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| failure::file("read", path, &error);
    let mut file = fs::File::open(path).map_err(failed)?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = file.read(&mut buffer).map_err(failed)?;
        match buffer.get(..count) {
            Some([]) | None => return Ok(()),
            Some(bytes) => hash.update(bytes),
        }
    }
}

fn hex(hash: Sha256) -> String {
    let digits: Vec<String> = hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    digits.concat()
}

/// Returns the list as it is written: kind, hash and name, each ended by a zero byte.
fn listed(entries: &SealedFiles) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (path, entry) in entries {
        for field in [
            &[entry.kind.mark()][..],
            entry.sha256.as_bytes(),
            path.as_os_str().as_bytes(),
        ] {
            bytes.extend_from_slice(field);
            bytes.push(0);
        }
    }
    bytes
}

fn parsed(bytes: &[u8]) -> Option<SealedFiles> {
    let mut fields = bytes.strip_suffix(&[0])?.split(|&byte| byte == 0);
    let mut entries = SealedFiles::new();
    while let Some(mark) = fields.next() {
        let kind = match mark {
            b"f" => HiddenFileKind::Plain,
            b"x" => HiddenFileKind::Executable,
            b"l" => HiddenFileKind::Link,
            _ => return None,
        };
        let sha256 = std::str::from_utf8(fields.next()?).ok()?.to_owned();
        let path = PathBuf::from(OsString::from_vec(fields.next()?.to_vec()));
        entries.insert(path, SealedFile { kind, sha256 });
    }
    Some(entries)
}

fn set_mode(path: &Path, mode: u32) -> Result<(), Failure> {
    fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(|error| failure::file("set permissions of", path, &error))
}

#[cfg(test)]
mod tests;
