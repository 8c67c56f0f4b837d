//! The commits that an agent made by itself, taken from the git directory it worked in.
//!
//! That directory is the agent's to write: no command runs in it, and nothing of it is read but the
//! name HEAD has, the ref behind it, and objects. The objects go through a directory of Kapi's own
//! and are checked one by one, as those of a stranger, before the repository has them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use kapi_core::quote::is_hidden;

use crate::command::{GitCall, GitError};
use crate::id::{CommitId, TreeId};
use crate::owned_dir::{self, DirError, failed};
use crate::repository::Repository;
use crate::scratch::{config_text, quoted};

/// The most commits that are taken; an agent that makes more has one commit.
pub const COMMITS_MAX: usize = 200;
/// The most files with objects that are looked at.
const FILES_MAX: usize = 100_000;
/// The most bytes of them.
const BYTES_MAX: u64 = 1 << 30;
/// The longest file with refs.
const REFS_BYTES_MAX: u64 = 1 << 20;
/// The most bytes of a message.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

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
    /// When it says that it was made, in seconds since the Unix epoch.
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
        let Some(tip) = head_of(plan.view)? else {
            return Ok(Vec::new());
        };
        if tip == *plan.base {
            return Ok(Vec::new());
        }
        let quarantine = Quarantine::prepare(self, plan)?;
        let line = quarantine.line(&tip, plan.base)?;
        self.take(&quarantine, &tip, plan.base)?;
        owned_dir::discard(plan.scratch)?;
        line.iter().map(|id| Ok(self.read_own(id)?)).collect()
    }

    /// Takes the objects of a commit and all between it and the base, each checked.
    fn take(
        &self,
        quarantine: &Quarantine<'_>,
        tip: &CommitId,
        base: &CommitId,
    ) -> Result<(), GitError> {
        let wanted = format!("{tip}\n^{base}\n").into_bytes();
        let pack = quarantine
            .call("pack-objects")
            .args(["--revs", "--thin", "--stdout", "--delta-base-offset", "-q"])
            .stdin(wanted)
            .bytes()?;
        self.unpack_checked(pack, tip)
    }

    fn read_own(&self, id: &CommitId) -> Result<OwnCommit, GitError> {
        let unexpected = || GitError::Unexpected {
            subcommand: "log".to_owned(),
        };
        let call = self.call("log").args(["-1", "--no-show-signature"]);
        let text = call.args(["--format=%T%n%at%n%B", id.as_str()]).bytes()?;
        let text = String::from_utf8_lossy(&text);
        let mut parts = text.splitn(3, '\n');
        let tree = parts.next().and_then(|line| TreeId::parse(line).ok());
        let at = parts.next().and_then(|line| line.parse().ok());
        // What nobody would see in it is no part of what they approve.
        let is_seen = |c: &char| matches!(c, '\n' | '\t') || !is_hidden(*c);
        let message: String = parts
            .next()
            .unwrap_or_default()
            .chars()
            .filter(is_seen)
            .collect();
        let message = message.trim();
        let end = message.floor_char_boundary(MESSAGE_BYTES_MAX);
        Ok(OwnCommit {
            tree: tree.ok_or_else(unexpected)?,
            at_unix_seconds: at.ok_or_else(unexpected)?,
            message: message.get(..end).unwrap_or_default().to_owned(),
        })
    }
}

/// A git directory of Kapi's own with the objects of an agent, beside those of the repository.
struct Quarantine<'a> {
    repository: &'a Repository,
    dir: PathBuf,
}

impl<'a> Quarantine<'a> {
    fn prepare(
        repository: &'a Repository,
        plan: &OwnCommitsPlan<'_>,
    ) -> Result<Self, OwnCommitsError> {
        owned_dir::prepare(plan.scratch)?;
        let dir = plan.scratch.to_path_buf();
        for part in ["refs", "objects/info", "objects/pack"] {
            owned_dir::create(&dir.join(part))?;
        }
        owned_dir::write(&dir.join("HEAD"), b"ref: refs/heads/none\n")?;
        owned_dir::write(&dir.join("config"), config_text(repository).as_bytes())?;
        let shallow = repository.common_dir().join("shallow");
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
        Ok(Self { repository, dir })
    }

    fn call(&self, subcommand: &str) -> GitCall<'_> {
        let mut lent = OsString::new();
        for objects in self.repository.object_dirs() {
            if !lent.is_empty() {
                lent.push(":");
            }
            lent.push(quoted(objects));
        }
        self.repository
            .git()
            .call(&self.dir, subcommand)
            .env("GIT_DIR", &self.dir)
            .env("GIT_OBJECT_DIRECTORY", self.dir.join("objects"))
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", lent)
    }

    /// Returns the commits from the base to the tip, along first parents.
    fn line(&self, tip: &CommitId, base: &CommitId) -> Result<Vec<CommitId>, OwnCommitsError> {
        let elsewhere = || OwnCommitsError::Elsewhere { base: base.clone() };
        let most = format!("--max-count={}", COMMITS_MAX + 1);
        let call = self.call("rev-list");
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

/// Returns the commit that HEAD of a foreign git directory is at; `None` where it names none.
fn head_of(view: &Path) -> Result<Option<CommitId>, DirError> {
    let Some(head) = text(&view.join("HEAD"))? else {
        return Ok(None);
    };
    let head = head.trim();
    let Some(name) = head.strip_prefix("ref: ") else {
        return Ok(CommitId::parse(head).ok());
    };
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    if !name.starts_with("refs/heads/") || !name.split('/').all(is_plain) {
        return Ok(None);
    }
    if let Some(id) = text(&view.join(name))? {
        return Ok(CommitId::parse(id.trim()).ok());
    }
    let packed = text(&view.join("packed-refs"))?.unwrap_or_default();
    let id = packed.lines().find_map(|line| {
        let (id, of) = line.split_once(' ')?;
        (of == name).then_some(id)
    });
    Ok(id.and_then(|id| CommitId::parse(id).ok()))
}

/// Reads a small file of an agent's; nothing where there is none, or no plain one.
fn text(path: &Path) -> Result<Option<String>, DirError> {
    let no_follow = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
    let mut options = fs::OpenOptions::new();
    options.read(true).custom_flags(no_follow.cast_signed());
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // A directory above it is no directory, or a link.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(failed("read", path)(error)),
    };
    if !file.metadata().map_err(failed("look at", path))?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let read = file.take(REFS_BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(failed("read", path))?;
    Ok(String::from_utf8(bytes).ok())
}
