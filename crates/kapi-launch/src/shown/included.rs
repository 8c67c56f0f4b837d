//! What `.kapiinclude` shows of a project in a real worktree: copies of files that git does not have
//! there.
//!
//! They are not the agent's work. A copy that is as it was lent goes again before anything is
//! committed; one that the agent changed stays and is its work. Written down first, so that what a
//! killed launch left goes, too.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use kapi_core::text::counted;
use kapi_run::failure;
use kapi_sys::disk;
use kapi_sys::real_disk::RealDisk;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{INCLUDE, beneath, found, included};
use crate::error::LaunchError;
use crate::paths::SandboxPaths;
use crate::prepare::ReadyWorkspace;
use crate::record::{SandboxRecord, WorkspaceKind};

/// The note of what was lent, in the sandbox's directory.
const NOTE: &str = "included.json";
/// The most files that are lent.
const FILES_MAX: usize = 2_000;
/// The largest file that is lent, and the most bytes of all.
const FILE_BYTES_MAX: u64 = 64 << 20;
const BYTES_MAX: usize = 256 << 20;

/// Files that were lent to a worktree.
#[derive(Debug)]
pub(crate) struct IncludedFiles {
    note: PathBuf,
    to: PathBuf,
    /// What the person should know, as sentences.
    pub(crate) notes: Vec<String>,
}

/// One file that was lent.
#[derive(Debug, Serialize, Deserialize)]
struct IncludedFile {
    path: PathBuf,
    digest: String,
}

/// Lends the files to a sandbox's worktree; nothing where the project itself is seen.
pub(crate) fn lend(
    location: &SandboxPaths,
    record: &SandboxRecord,
    ready: &ReadyWorkspace,
) -> Result<IncludedFiles, LaunchError> {
    let to = ready.written.as_path();
    let mut lending = IncludedFiles {
        note: location.dir().join(NOTE),
        to: to.to_path_buf(),
        notes: Vec::new(),
    };
    lending.withdraw()?;
    let patterns = included(&record.project)?;
    let shows_project = record.made == WorkspaceKind::Layer && ready.base.is_none();
    if shows_project || patterns.is_empty() {
        return Ok(lending);
    }
    let meant = found(&record.project, &patterns, INCLUDE)?;
    let mut taken = IncludedContents::default();
    for path in meant {
        taken.take(&record.project, &path, ready);
    }
    if taken.n_left_out > 0 {
        lending.notes.push(format!(
            "Not shown: {} listed in {INCLUDE}, too large, too many or not regular.",
            counted(taken.n_left_out, "file")
        ));
    }
    lending.write(&taken.shared_in)?;
    for (shared_in, (bytes, mode)) in taken.shared_in.iter().zip(&taken.contents) {
        let at = to.join(&shared_in.path);
        beneath::make(to, &shared_in.path, bytes, *mode)
            .map_err(|error| failure::file("write", &at, &error))?;
    }
    if !taken.shared_in.is_empty() {
        let files = counted(taken.shared_in.len(), "file");
        lending
            .notes
            .push(format!("{INCLUDE} shows {files} outside git, as copies."));
    }
    Ok(lending)
}

/// What was read of the project.
#[derive(Default)]
struct IncludedContents {
    shared_in: Vec<IncludedFile>,
    contents: Vec<(Vec<u8>, u32)>,
    n_bytes: usize,
    n_left_out: usize,
}

impl IncludedContents {
    /// Reads a file, or all files of a directory, unless the worktree has something in its place.
    fn take(&mut self, project: &Path, path: &Path, ready: &ReadyWorkspace) {
        let at = project.join(path);
        let Ok(kind) = fs::symlink_metadata(&at) else {
            return;
        };
        if kind.is_dir() {
            for entry in fs::read_dir(&at).into_iter().flatten().flatten() {
                self.take(project, &path.join(entry.file_name()), ready);
            }
            return;
        }
        let is_shown = !matches!(ready.lower.place(path), Ok(None));
        if is_shown || fs::symlink_metadata(ready.written.join(path)).is_ok() {
            return;
        }
        let bytes = beneath::read(project, path, FILE_BYTES_MAX);
        let fits = |bytes: &Vec<u8>| {
            self.shared_in.len() < FILES_MAX && self.n_bytes + bytes.len() <= BYTES_MAX
        };
        let Some(bytes) = bytes.filter(fits) else {
            self.n_left_out += 1;
            return;
        };
        self.n_bytes += bytes.len();
        self.shared_in.push(IncludedFile {
            path: path.to_path_buf(),
            digest: digest(&bytes),
        });
        self.contents
            .push((bytes, kind.permissions().mode() & 0o755));
    }
}

impl IncludedFiles {
    /// Takes back what is as it was lent.
    pub(crate) fn withdraw(&self) -> Result<(), LaunchError> {
        let Ok(text) = fs::read(&self.note) else {
            return Ok(());
        };
        let shared_in: Vec<IncludedFile> = serde_json::from_slice(&text)
            .map_err(|error| failure::file("read", &self.note, &error.into()))?;
        for one in &shared_in {
            let bytes = beneath::read(&self.to, &one.path, FILE_BYTES_MAX);
            if bytes.is_some_and(|bytes| digest(&bytes) == one.digest) {
                let at = self.to.join(&one.path);
                beneath::remove(&self.to, &one.path)
                    .map_err(|error| failure::file("remove", &at, &error))?;
            }
        }
        fs::remove_file(&self.note).map_err(|error| failure::file("remove", &self.note, &error))?;
        Ok(())
    }

    fn write(&self, shared_in: &[IncludedFile]) -> Result<(), LaunchError> {
        if shared_in.is_empty() {
            return Ok(());
        }
        let text = serde_json::to_vec(shared_in)
            .map_err(|error| failure::file("write", &self.note, &error.into()))?;
        disk::replace_durably(&RealDisk, &self.note, &text)
            .map_err(|error| LaunchError::failed(&error))
    }
}

fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let digits: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}
