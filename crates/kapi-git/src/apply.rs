//! Brings changes from a sandbox into the person's project, all of them or none.
//!
//! What changed on the host since is never overwritten: it is merged as text where that is
//! possible and asked for, or it is a conflict. Every file is staged and synced before the first
//! one is moved, and a journal undoes a half-done apply at the next call. No link is followed.

pub mod offers;

pub mod beneath;
mod content;
#[cfg(test)]
mod crash;
mod journal;
mod judge;
mod perform;
mod rule;
mod select;
mod stage;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use kapi_sys::lock::{Lock, LockError};

use self::beneath::OpenTree;
use self::journal::Journal;
use self::judge::ApplyJudge;
use crate::command::{Git, GitError};
use crate::id::CommitId;
use crate::owned_dir::{self, DirError};
use crate::repository::Repository;

/// The largest file that is taken over.
pub const FILE_BYTES_MAX: u64 = 512 << 20;

/// The most paths one apply may change.
pub const PATHS_MAX: usize = 200_000;

/// One path that is different in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplyOffer {
    /// The path, relative to the project.
    pub path: PathBuf,
    /// What it was when the sandbox began.
    pub old: BaseState,
    /// What it is now.
    pub new: SandboxState,
}

/// What a path was when the sandbox began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseState {
    /// There was nothing.
    Absent,
    /// It was what the project still has, unless that changed since this moment.
    ///
    /// The moment is the change time (`ctime`) of a file that was made on the project's own file
    /// system when the sandbox began, so that it comes from the same clock. A change within the
    /// same tick counts as one since.
    AsOf {
        /// The moment.
        moment: Moment,
        /// A text to merge by, if it changed since: what the base commit has.
        ancestor: Option<ByteSource>,
    },
    /// It was a file of exactly this content.
    File {
        /// The content.
        source: ByteSource,
        /// Whether it could be executed.
        is_executable: bool,
    },
    /// It was a link.
    Link {
        /// Where to.
        target: OsString,
    },
}

/// What a path is in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxState {
    /// Nothing: it was removed, with all below it.
    Absent,
    /// A directory; what is in it is offered by itself.
    Directory,
    /// A file.
    File {
        /// Its content.
        source: ByteSource,
        /// Its permissions. The host's group and others may not write because of it.
        mode: u32,
    },
    /// A link.
    Link {
        /// Where to.
        target: OsString,
    },
}

/// Where bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ByteSource {
    /// In a file below a directory that an agent may have written.
    File {
        /// The directory.
        root: PathBuf,
        /// The file, relative to it.
        path: PathBuf,
    },
    /// In a blob of the repository.
    Blob {
        /// Its id, in full.
        id: String,
    },
    /// In the file that a commit of the repository has at this path.
    InCommit {
        /// The commit.
        commit: CommitId,
        /// The path, from the top of the tree.
        path: PathBuf,
    },
}

/// A change time of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Seconds since the Unix epoch.
    pub seconds: i64,
    /// Nanoseconds after that.
    pub nanoseconds: i64,
}

/// What to do about conflicts and refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    /// Apply nothing.
    Refuse,
    /// Apply the rest.
    Skip,
    /// Apply the rest, and write texts that cannot be merged with the marks of a conflict in them.
    Mark,
}

/// The apply to make.
#[derive(Debug, Clone, Copy)]
pub struct ApplyPlan<'a> {
    /// Git, for merging texts.
    pub git: &'a Git,
    /// The repository that blobs are in; not needed without any.
    pub repository: Option<&'a Repository>,
    /// The project's directory.
    pub project: &'a Path,
    /// A directory of Kapi's own for this project and nothing else, on the same file system.
    pub work: &'a Path,
    /// What is different, in any order, each path once.
    pub offers: &'a [ApplyOffer],
    /// Which of it is wanted: plain paths stand for all below them, `*`, `?` and `[…]` stay
    /// within one name, `**` does not, and `!` before a pattern leaves out. None is everything.
    pub select: &'a [String],
    /// The links that are wanted although they lead out of the project.
    pub links_out: &'a BTreeSet<PathBuf>,
    /// What to do about conflicts.
    pub on_conflict: OnConflict,
}

/// What an apply would do, or did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preview {
    /// Each wanted path, in order, and what happens to it.
    pub verdicts: Vec<(PathBuf, PathVerdict)>,
    /// How many offered paths were not wanted.
    pub n_left_out: usize,
    /// The patterns that nothing matches.
    pub unmatched: Vec<String>,
}

/// What happens to one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathVerdict {
    /// It is new.
    Create,
    /// It takes the place of what was there, unchanged since.
    Replace,
    /// It goes.
    Delete,
    /// Both sides changed the text, in different places.
    Merge,
    /// It is so already.
    Same,
    /// Both sides changed the text in the same places; it is written with marks.
    Marked {
        /// In how many places.
        n_locations: u32,
    },
    /// It changed on the host in a way that cannot be brought together.
    Conflict(ApplyConflict),
    /// It is not taken from a sandbox.
    Refused(ApplyRefusal),
}

/// Why two changes cannot be brought together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApplyConflict {
    /// The host's content or kind is another than when the sandbox began.
    ChangedHere,
    /// The host removed it.
    GoneHere,
    /// Something is at a place that was empty.
    AppearedHere,
    /// The texts changed in the same places.
    SamePlaces {
        /// In how many.
        n_locations: u32,
    },
    /// A directory that should go holds something else.
    NotEmpty,
    /// A part of the path is no directory on the host, or a link.
    NoDirectory,
    /// A device, pipe or socket is there.
    SpecialFile,
}

/// Why something is not taken from a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApplyRefusal {
    /// Not a path below the project.
    NotBelow,
    /// Git's own data, or a name that some file system takes for it.
    GitData,
    /// Kapi's own state.
    KapiState,
    /// A link that leads out of the project.
    LinkOut,
    /// The content is no plain file, or is gone.
    NoFile,
    /// Larger than [`FILE_BYTES_MAX`].
    TooLarge,
}

/// What an interrupted apply needed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Whether there was one that had not finished; it is undone.
    pub was_interrupted: bool,
    /// What somebody changed after the interruption and was left as it is, with the place where
    /// the content from before the apply is kept; `None` when there was nothing before.
    pub left: Vec<(PathBuf, Option<PathBuf>)>,
}

/// An apply that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplyResult {
    /// What was done.
    pub preview: Preview,
    /// What an earlier one needed first.
    pub recovery: Recovery,
}

/// An apply that did not happen.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// There are conflicts or refusals, and they were not to be passed over.
    #[error("apply {} changes: {} cannot be applied", preview.verdicts.len(), preview.n_obstacles())]
    Obstacles {
        /// All verdicts.
        preview: Preview,
    },
    /// Somebody changed a path while it was being applied; everything was put back.
    #[error("apply {}: it changed during the merge", path.display())]
    Raced {
        /// The path.
        path: PathBuf,
    },
    /// Too much at once.
    #[error("apply {n_paths} paths: the maximum is {PATHS_MAX}")]
    TooMany {
        /// How many there are.
        n_paths: usize,
    },
    /// Not a pattern.
    #[error("use {pattern:?} as a path pattern")]
    Pattern {
        /// The pattern.
        pattern: String,
    },
    /// A blob without a repository to read it from.
    #[error("read {source_name} of a repository: none was named")]
    NoRepository {
        /// The blob, as git names it.
        source_name: String,
    },
    /// The journal of an interrupted apply cannot be read.
    #[error("read the journal {}: it is damaged", path.display())]
    Journal {
        /// The journal.
        path: PathBuf,
    },
    /// Another apply is under way.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file or directory could not be read or written.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl PathVerdict {
    /// Tells whether the path cannot be applied as it is.
    #[must_use]
    pub fn is_obstacle(&self) -> bool {
        matches!(self, Self::Conflict(_) | Self::Refused(_))
    }
}

impl Preview {
    /// Returns how many paths cannot be applied.
    #[must_use]
    pub fn n_obstacles(&self) -> usize {
        let verdicts = self.verdicts.iter();
        verdicts
            .filter(|(_, verdict)| verdict.is_obstacle())
            .count()
    }
}

/// Tells what [`apply`] would do at this moment; changes nothing in the project, except that an
/// interrupted apply is undone first.
pub fn preview(plan: &ApplyPlan<'_>) -> Result<Preview, ApplyError> {
    let _lock = lock(plan.work)?;
    let project = OpenTree::open(plan.project)?;
    Journal::of(plan.work).recover(&project)?;
    Ok(ApplyJudge::new(plan, &project)?.judge()?.preview)
}

/// Applies the wanted changes to the project: all that the verdicts allow, or nothing.
///
/// When it returns, everything is durable. When it fails, or the process dies, the project is put
/// back as it was, now or at the next call for it.
pub fn apply(plan: &ApplyPlan<'_>) -> Result<ApplyResult, ApplyError> {
    let _lock = lock(plan.work)?;
    let project = OpenTree::open(plan.project)?;
    let journal = Journal::of(plan.work);
    let recovery = journal.recover(&project)?;
    let judge = ApplyJudge::new(plan, &project)?;
    let judged = judge.judge()?;
    if plan.on_conflict == OnConflict::Refuse && judged.preview.n_obstacles() > 0 {
        return Err(ApplyError::Obstacles {
            preview: judged.preview,
        });
    }
    let work = OpenTree::open(plan.work)?;
    let steps = stage::stage(&judge, &work, &judged)?;
    journal.run(&project, &work, &steps)?;
    Ok(ApplyResult {
        preview: judged.preview,
        recovery,
    })
}

/// Undoes an apply that was interrupted; nothing to undo is fine.
pub fn recover(project: &Path, work: &Path) -> Result<Recovery, ApplyError> {
    let _lock = lock(work)?;
    Journal::of(work).recover(&OpenTree::open(project)?)
}

fn lock(work: &Path) -> Result<Lock, ApplyError> {
    owned_dir::create(work)?;
    Ok(Lock::acquire(
        &work.join("lock"),
        "kapi, applying changes",
        0,
    )?)
}
