//! The commits that an agent made by itself, taken from the git directory it worked in.
//!
//! That directory is the agent's to write: no command runs in it, and nothing of it is read but the
//! name HEAD has, the ref behind it, and objects. The objects go through a directory of Kapi's own
//! and are checked one by one, as those of a stranger, before the repository has them.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use kapi_core::quote::{head, is_hidden};

use crate::bundle::thin_pack;
use crate::command::GitError;
use crate::id::{CommitId, TreeId};
use crate::owned_dir::{self, DirError, failed};
use crate::repository::Repository;
use crate::scratch::{Objects, Scratch};

/// The most commits that are taken; an agent that makes more has one commit.
pub const COMMITS_MAX: usize = 200;
/// The most files with objects that are looked at.
const FILES_MAX: usize = 100_000;
/// The most bytes of them.
const BYTES_MAX: u64 = 1 << 30;
/// The most bytes of a message.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// The latest moment of a commit: the end of the year 9999. Git writes no later one.
const LATEST_UNIX_SECONDS: i64 = 253_402_300_799;

/// Where an agent's commits are.
#[derive(Debug, Clone, Copy)]
pub struct OwnCommitsPlan<'a> {
    /// The git directory that the agent worked in.
    pub view: &'a Path,
    /// A directory to use meanwhile: missing, or made by an earlier call.
    pub scratch: &'a Path,
    /// The commit that they must all come after.
    pub base: &'a CommitId,
}

/// One commit of an agent's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCommit {
    /// Its files.
    pub tree: TreeId,
    /// When it says that it was made, in seconds since the Unix epoch; a moment that git can write.
    pub at_unix_seconds: i64,
    /// Its whole message.
    pub message: String,
}

/// Commits that could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum OwnCommitsError {
    /// More than is taken.
    #[error("take the agent's own commits: there are more than {COMMITS_MAX}")]
    TooMany,
    /// More objects than are looked at.
    #[error(
        "take the agent's own commits: they have more than {FILES_MAX} files or {BYTES_MAX} bytes of objects"
    )]
    TooLarge,
    /// They do not come after the commit that the work began at.
    #[error("take the agent's own commits: they do not build on {base}")]
    Elsewhere {
        /// Where the work began.
        base: CommitId,
    },
    /// A file or directory could not be read or written.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// Git failed, or refused an object.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Repository {
    /// Returns the commits between the base and where the agent's HEAD is, the first first; of a merge
    /// the line that was merged into. Their objects are the repository's then, named by no ref.
    ///
    /// # Errors
    /// When they are too many, do not build on the base, or are not sound; nothing is named then.
    pub fn own_commits(
        &self,
        plan: &OwnCommitsPlan<'_>,
    ) -> Result<Vec<OwnCommit>, OwnCommitsError> {
        let tip = self.plain_head_commit(plan.view);
        let Some(tip) = tip.filter(|tip| tip != plan.base) else {
            return Ok(Vec::new());
        };
        let taken = self.take(plan, &tip);
        // Whatever came of it: what it holds of the agent's objects is of no more use.
        owned_dir::discard(plan.scratch)?;
        taken
    }

    fn take(
        &self,
        plan: &OwnCommitsPlan<'_>,
        tip: &CommitId,
    ) -> Result<Vec<OwnCommit>, OwnCommitsError> {
        let quarantine = self.quarantine(plan)?;
        let line = line(&quarantine, tip, plan.base)?;
        let pack = thin_pack(quarantine.call("pack-objects"), tip, &[plan.base])?;
        self.unpack_checked(pack, tip)?;
        line.iter().map(|id| Ok(self.read_own(id)?)).collect()
    }

    fn read_own(&self, id: &CommitId) -> Result<OwnCommit, GitError> {
        // What nobody would see in it is no part of what they approve.
        let is_seen = |c: &char| matches!(c, '\n' | '\t') || !is_hidden(*c);
        let message: String = self.message_of(id)?.chars().filter(is_seen).collect();
        Ok(OwnCommit {
            tree: self.tree_of(id)?,
            at_unix_seconds: self.authored_at(id)?.clamp(0, LATEST_UNIX_SECONDS),
            message: head(message.trim(), MESSAGE_BYTES_MAX).to_owned(),
        })
    }

    /// Makes a git directory of Kapi's own with the agent's objects beside those of the repository.
    fn quarantine(&self, plan: &OwnCommitsPlan<'_>) -> Result<Scratch<'_>, OwnCommitsError> {
        owned_dir::prepare(plan.scratch)?;
        let dir = plan.scratch;
        let made = Scratch::prepare(self, dir, dir, Objects::Private)?;
        let shallow = self.common_dir().join("shallow");
        if shallow.is_file() {
            let to = dir.join("shallow");
            fs::copy(&shallow, &to).map_err(failed("copy", &shallow))?;
        }
        let mut room = Room::default();
        let (from, to) = (plan.view.join("objects"), dir.join("objects"));
        // A link would lead to objects that were never the agent's.
        let found = fs::symlink_metadata(&from).map_err(failed("look at", &from))?;
        if !found.is_dir() {
            return Err(OwnCommitsError::Elsewhere {
                base: plan.base.clone(),
            });
        }
        for name in directories(&from)? {
            let is_kept = match name.as_str() {
                "pack" => is_pack,
                name if name.len() == 2 && is_hex(name) => is_hex,
                _ => continue,
            };
            owned_dir::create(&to.join(&name))?;
            let files = files(&from.join(&name), &mut room)?;
            for file in files.iter().filter(|file| is_kept(file)) {
                let (from, to) = (from.join(&name).join(file), to.join(&name).join(file));
                fs::hard_link(&from, &to).map_err(failed("link", &from))?;
            }
        }
        Ok(made)
    }
}

/// Returns the commits from the base to the tip, along first parents.
fn line(
    quarantine: &Scratch<'_>,
    tip: &CommitId,
    base: &CommitId,
) -> Result<Vec<CommitId>, OwnCommitsError> {
    let elsewhere = || OwnCommitsError::Elsewhere { base: base.clone() };
    let most = format!("--max-count={}", COMMITS_MAX + 1);
    let call = quarantine.call("rev-list");
    let text = call
        .args(["--first-parent", "--parents", &most, tip.as_str()])
        .arg(format!("^{base}"))
        .text()?;
    let mut line = Vec::new();
    let mut below = None;
    for row in text.lines() {
        let mut ids = row.split(' ');
        let id = ids.next().and_then(|id| CommitId::parse(id).ok());
        line.push(id.ok_or_else(elsewhere)?);
        below = ids.next().map(str::to_owned);
    }
    if line.len() > COMMITS_MAX {
        return Err(OwnCommitsError::TooMany);
    }
    if below.as_deref() != Some(base.as_str()) {
        return Err(elsewhere());
    }
    line.reverse();
    Ok(line)
}

/// What may still be looked at.
struct Room {
    files: usize,
    bytes: u64,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            files: FILES_MAX,
            bytes: BYTES_MAX,
        }
    }
}

fn is_pack(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(OsStr::to_str);
    matches!(ending, Some("pack" | "idx"))
}

fn is_hex(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Returns the names of the directories in a directory; links are none.
fn directories(dir: &Path) -> Result<Vec<String>, DirError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed("list", dir))? {
        let entry = entry.map_err(failed("list", dir))?;
        let is_dir = entry.file_type().is_ok_and(|found| found.is_dir());
        if let (true, Ok(name)) = (is_dir, entry.file_name().into_string()) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Returns the names of the plain files in a directory, as long as there is room for them.
fn files(dir: &Path, room: &mut Room) -> Result<Vec<String>, OwnCommitsError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed("list", dir))? {
        let entry = entry.map_err(failed("list", dir))?;
        let found = entry.metadata().map_err(failed("look at", dir))?;
        if !found.is_file() {
            continue;
        }
        let files = room.files.checked_sub(1);
        let bytes = room.bytes.checked_sub(found.len());
        let (Some(files), Some(bytes)) = (files, bytes) else {
            return Err(OwnCommitsError::TooLarge);
        };
        *room = Room { files, bytes };
        if let Ok(name) = entry.file_name().into_string() {
            names.push(name);
        }
    }
    Ok(names)
}
