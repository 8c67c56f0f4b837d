//! Whose status file it is: names that never mean two runs, and the newest run's right to write.
//!
//! `kapi-{project}-{id}.json` is what outside tools look for, but `a` with `b-c` and `a-b` with
//! `c` make the same name, and so do two checkouts called `api`. An owner file beside it says
//! whose it is; whoever comes second gets a name with the project's hash in it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use kapi_sys::disk::Disk as _;
use kapi_sys::lock::Lock;
use kapi_sys::real_disk::RealDisk;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::StatusError;
use super::private_file::{self, Durability};

/// Where the owner files and locks are, below the directory of the status files.
const OWNERS: &str = ".owners";
/// The longest a status file is waited for.
const LOCK_WAIT_MS: u64 = 2_000;
/// Characters of a project's name or a run's id in a file name.
const PROJECT_CHARS_MAX: usize = 64;
const ID_CHARS_MAX: usize = 64;
/// Bytes of an owner file.
const OWNER_BYTES_MAX: u64 = 16 * 1024;

/// Which run a status file is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StatusSubject {
    pub(super) project: String,
    /// The canonical path of the project.
    pub(super) root: PathBuf,
    pub(super) agent_id: String,
}

/// The content of an owner file.
#[derive(Debug, Serialize, Deserialize)]
struct StatusOwner {
    subject: StatusSubject,
    /// Differs each time the file is taken.
    token: String,
}

/// The right to write one status file, until a newer run of the same subject takes it.
#[derive(Debug)]
pub(super) struct Ownership {
    path: PathBuf,
    owner_path: PathBuf,
    lock_path: PathBuf,
    token: String,
}

/// Whether a write took place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteOutcome {
    Written,
    /// A newer run of the same id has the file now.
    Superseded,
}

impl Ownership {
    /// Takes the file of a subject, from an earlier run of the same subject if need be.
    pub(super) fn take(
        dir: &Path,
        subject: &StatusSubject,
        now_ms: i64,
    ) -> Result<Self, StatusError> {
        let owners = dir.join(OWNERS);
        private_file::make_dir(&owners)?;
        let token = new_token(now_ms);
        for name in names(subject) {
            let ownership = Self {
                path: dir.join(&name),
                owner_path: owners.join(format!("{name}.owner")),
                lock_path: owners.join(format!("{name}.lock")),
                token: token.clone(),
            };
            let _lock = ownership.lock()?;
            let owner = ownership.owner()?;
            if owner.is_none_or(|owner| owner.subject == *subject) {
                ownership.sign(subject)?;
                return Ok(ownership);
            }
        }
        Err(StatusError::Taken {
            agent_id: subject.agent_id.clone(),
            project: subject.project.clone(),
        })
    }

    /// Returns the right of whoever has the file of a subject, dead or alive.
    pub(super) fn of(dir: &Path, subject: &StatusSubject) -> Result<Option<Self>, StatusError> {
        let owners = dir.join(OWNERS);
        for name in names(subject) {
            let mut ownership = Self {
                path: dir.join(&name),
                owner_path: owners.join(format!("{name}.owner")),
                lock_path: owners.join(format!("{name}.lock")),
                token: String::new(),
            };
            let owner = ownership.owner()?;
            if let Some(owner) = owner.filter(|owner| owner.subject == *subject) {
                ownership.token = owner.token;
                return Ok(Some(ownership));
            }
        }
        Ok(None)
    }

    /// Returns the status file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the status file, if it is still owned.
    pub(super) fn write(
        &self,
        bytes: &[u8],
        durability: Durability,
    ) -> Result<WriteOutcome, StatusError> {
        let _lock = self.lock()?;
        if self.owner()?.is_none_or(|owner| owner.token != self.token) {
            return Ok(WriteOutcome::Superseded);
        }
        private_file::replace(&self.path, bytes, durability)?;
        Ok(WriteOutcome::Written)
    }

    fn lock(&self) -> Result<Lock, StatusError> {
        let owner = format!("pid {}", std::process::id());
        Ok(RealDisk.lock(&self.lock_path, &owner, LOCK_WAIT_MS)?)
    }

    /// Returns who has the file; nobody where the owner file is missing or half written.
    fn owner(&self) -> Result<Option<StatusOwner>, StatusError> {
        let bytes = private_file::read(&self.owner_path, OWNER_BYTES_MAX)?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    fn sign(&self, subject: &StatusSubject) -> Result<(), StatusError> {
        let owner = StatusOwner {
            subject: subject.clone(),
            token: self.token.clone(),
        };
        let bytes = serde_json::to_vec(&owner).map_err(|source| StatusError::Form {
            path: self.owner_path.clone(),
            source,
        })?;
        private_file::replace(&self.owner_path, &bytes, Durability::Derived)
    }
}

/// Removes a status file with what belongs to it. What is missing already is no error.
pub(super) fn forget(path: &Path) -> Result<(), StatusError> {
    let (Some(dir), Some(name)) = (
        path.parent(),
        path.file_name().and_then(|name| name.to_str()),
    ) else {
        return Ok(());
    };
    let owners = dir.join(OWNERS);
    let belonging = [
        path.to_path_buf(),
        owners.join(format!("{name}.owner")),
        owners.join(format!("{name}.lock")),
    ];
    for file in belonging {
        match fs::remove_file(&file) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(StatusError::at("remove", &file)(error)),
        }
    }
    Ok(())
}

/// Returns the names a subject's file may have, in the order they are tried.
fn names(subject: &StatusSubject) -> [String; 3] {
    let project = file_word(&subject.project, PROJECT_CHARS_MAX);
    let id = file_word(&subject.agent_id, ID_CHARS_MAX);
    let mut hasher = Sha256::new();
    hasher.update(subject.root.as_os_str().as_encoded_bytes());
    hasher.update([0]);
    hasher.update(subject.project.as_bytes());
    hasher.update([0]);
    hasher.update(subject.agent_id.as_bytes());
    let hash: String = hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let part = |n: usize| hash.get(..n).unwrap_or_default();
    [
        format!("kapi-{project}-{id}.json"),
        format!("kapi-{project}.{}-{id}.json", part(8)),
        format!("kapi-{project}.{}-{id}.json", part(32)),
    ]
}

/// Returns a text as part of a file name: no separator, no leading dot, never empty.
fn file_word(text: &str, chars_max: usize) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '_'
        }
    };
    let word: String = text.chars().take(chars_max).map(plain).collect();
    let word = word.trim_start_matches('.');
    if word.is_empty() {
        "_".to_owned()
    } else {
        word.to_owned()
    }
}

fn new_token(now_ms: i64) -> String {
    static N_TAKEN: AtomicU64 = AtomicU64::new(0);
    let n = N_TAKEN.fetch_add(1, Ordering::Relaxed);
    format!("{}-{now_ms}-{n}", std::process::id())
}
