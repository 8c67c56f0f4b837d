//! Commits made from what an agent left in a workspace.
//!
//! A candidate is one commit on the base, whatever the agent did with git. It is a function of
//! base, files and plan, so that doing it twice gives the same id. What cannot or must not be in
//! a commit is left out and named. No text, filter or repository of the agent's is run.

pub(crate) mod lfs;
pub(crate) mod link;
pub(crate) mod own;
pub(crate) mod staging;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::author::Author;
use crate::candidate::own::OwnCommitRules;
use crate::candidate::staging::{SEARCH_CALLS_MAX, StagingSearch, remove_paths};
use crate::change::PathChange;
use crate::command::GitError;
use crate::commit_object::{CommitObject, utc};
use crate::id::{CommitId, RefPart, TreeId};
use crate::own_commits::OwnCommit;
use crate::owned_dir::DirError;
use crate::refused_path::{FILE_BYTES_MAX, RefusalReason, RefusedPath};
use crate::repository::{ObjectFormat, Repository, path_of};
use crate::scratch::Scratch;
use crate::sweep;
use crate::workspace::{GitWorkspace, WorkspaceError, goal_ref};

/// The most files one candidate may change.
pub const CHANGES_MAX: usize = 200_000;

/// Kapi's directory at the top of a repository, in any case.
const STATE_DIR: &str = ".ilchul";

/// The candidate to make.
#[derive(Debug, Clone)]
pub struct CandidatePlan {
    /// The last part of its ref: `turn-3` for `refs/kapi/<goal>/turn-3`.
    pub name: RefPart,
    /// The whole message, with any trailers.
    pub message: String,
    /// Who it is by; also the committer.
    pub author: Author,
    /// When it is from, in seconds since the Unix epoch, UTC.
    pub at_unix_seconds: i64,
}

/// A commit of a workspace's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The commit; its only parent is the base, or the last commit of the agent's own.
    pub commit: CommitId,
    /// Its tree.
    pub tree: TreeId,
    /// What it changes against the base, by path.
    pub changed: Vec<PathChange>,
    /// What is in the workspace but not in the commit, by path; never what git ignores.
    pub refused: Vec<RefusedPath>,
    /// How many of the agent's own commits were to be kept and hold what may not be committed; what
    /// else they change is in the next.
    pub own_left_out: usize,
}

/// A candidate that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CandidateError {
    /// More changes than a candidate may have.
    #[error("commit {changes} changed files: the maximum is {CHANGES_MAX}")]
    TooManyChanges {
        /// How many there are.
        changes: usize,
    },
    /// More files that git does not take than are worth looking for.
    #[error("find out which files git cannot store")]
    TooManyUnstorable,
    /// A name or address that a commit cannot carry.
    #[error("use {text:?} as the author of a commit")]
    Author {
        /// The name or address.
        text: String,
    },
    /// A message that a commit cannot carry.
    #[error("use a commit message that is empty or contains a zero byte")]
    Message,
    /// The workspace could not be prepared.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A file or directory could not be read or written.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// The files of a workspace as a tree, not yet committed.
#[derive(Debug)]
pub(crate) struct WorkspaceSnapshot {
    pub(crate) tree: TreeId,
    pub(crate) refused: Vec<RefusedPath>,
}

impl Repository {
    /// Commits the files of a workspace on its base and names the commit.
    ///
    /// The files are taken as they are. A directory that is gone is an error and never a commit
    /// that deletes everything; one that was made anew by [`Repository::create_workspace`]
    /// ([`GitWorkspace::origin`] says so) gives the tree of its plan's `content`: no change since.
    ///
    /// When the ref already names another commit, that one is kept under `replaced-<id>`.
    pub fn commit_candidate(
        &self,
        workspace: &GitWorkspace,
        plan: &CandidatePlan,
    ) -> Result<Candidate, CandidateError> {
        self.commit_candidate_after(workspace, plan, &[])
    }

    /// Does the same after commits that the agent made by itself, which are written anew on the base.
    /// Each of them that holds what a candidate may not hold is left out, and its changes are in the
    /// next. The last is the candidate itself if it has its files.
    pub fn commit_candidate_after(
        &self,
        workspace: &GitWorkspace,
        plan: &CandidatePlan,
        own: &[OwnCommit],
    ) -> Result<Candidate, CandidateError> {
        check(plan)?;
        let WorkspaceSnapshot { tree, refused } = self.snapshot(workspace)?;
        let rules = OwnCommitRules::new(&workspace.base, &refused);
        let kept = rules.committable(&workspace.scratch(self)?, own)?;
        let (parent, plan) = self.write_own_commits(&workspace.base, plan, &kept, &tree)?;
        let commit = self.commit_for(&workspace.goal, &parent, &plan, &tree)?;
        let changed = self.tree_changes(&workspace.base, tree.as_str())?;
        Ok(Candidate {
            commit,
            tree,
            changed,
            refused,
            own_left_out: own.len() - kept.len(),
        })
    }

    /// Keeps the files of a workspace as a commit if they differ from `known`.
    ///
    /// For work of a turn that was interrupted, before the workspace is reset.
    pub fn rescue(
        &self,
        workspace: &GitWorkspace,
        plan: &CandidatePlan,
        known: &TreeId,
    ) -> Result<Option<CommitId>, CandidateError> {
        check(plan)?;
        let WorkspaceSnapshot { tree, .. } = self.snapshot(workspace)?;
        if tree == *known {
            return Ok(None);
        }
        self.commit_tree(workspace, plan, &tree).map(Some)
    }

    pub(crate) fn snapshot(
        &self,
        workspace: &GitWorkspace,
    ) -> Result<WorkspaceSnapshot, CandidateError> {
        workspace.restore_link()?;
        let mut refused: BTreeSet<RefusedPath> =
            sweep::sweep(&workspace.path).into_iter().collect();
        let scratch = workspace.scratch(self)?;
        scratch.index_commit(&workspace.base)?;
        refused.extend(workspace.disarm_submodules(&scratch)?);
        let files = StagedFiles {
            scratch: &scratch,
            root: &workspace.path,
            base: &workspace.base,
        };
        self.stage(files, refused)
    }

    /// Stages everything below a directory on an index that holds the base, and writes the tree.
    pub(crate) fn stage(
        &self,
        files: StagedFiles<'_>,
        mut refused: BTreeSet<RefusedPath>,
    ) -> Result<WorkspaceSnapshot, CandidateError> {
        let StagedFiles {
            scratch,
            root,
            base,
        } = files;
        let format = self.object_format();
        let mut pending = pending(scratch, root, format, &mut refused)?;
        if pending.is_empty() {
            return Ok(WorkspaceSnapshot {
                tree: self.tree_of(base)?,
                refused: refused.into_iter().collect(),
            });
        }
        remove_paths(scratch, &pending.gone)?;
        let mut whole = lfs::filtered(scratch, &pending.present)?;
        whole.retain(|path| lfs::is_whole(&root.join(path)));
        pending.present.retain(|path| !whole.contains(path));
        // Nobody put anything there that was only touched.
        let put_there = pending.differing(scratch, whole)?;
        refused.extend(put_there.into_iter().map(|path| RefusedPath {
            path,
            why: RefusalReason::LfsContent,
        }));
        let mut search = StagingSearch {
            scratch,
            calls_left: SEARCH_CALLS_MAX,
        };
        let mut unstorable = Vec::new();
        search.add(&pending.present, &mut unstorable)?;
        refused.extend(unstorable.into_iter().map(|path| RefusedPath {
            path,
            why: RefusalReason::Unstorable,
        }));
        let tree = scratch.write_tree()?;
        // Git leaves out names it finds unsafe and says so to nobody.
        let staged = self.tree_changes(base, tree.as_str())?;
        let staged: BTreeSet<&Path> = staged.iter().map(|change| change.path.as_path()).collect();
        let named: BTreeSet<PathBuf> = refused.iter().map(|found| found.path.clone()).collect();
        let lost = pending
            .new
            .iter()
            .filter(|path| !staged.contains(path.as_path()));
        let lost = lost.filter(|path| !named.contains(*path)).cloned();
        refused.extend(lost.map(|path| RefusedPath {
            path,
            why: RefusalReason::UnsafeName,
        }));
        Ok(WorkspaceSnapshot {
            tree,
            refused: refused.into_iter().collect(),
        })
    }

    /// Writes a commit and names it nowhere.
    pub(crate) fn write_commit(
        &self,
        parent: &CommitId,
        plan: &CandidatePlan,
        tree: &TreeId,
    ) -> Result<CommitId, GitError> {
        let at = utc(plan.at_unix_seconds);
        let commit = CommitObject {
            tree,
            parents: &[parent],
            message: plan.message.as_bytes(),
            author: &plan.author,
            authored: &at,
            committer: &plan.author,
            committed: &at,
        };
        commit.write(self.call("commit-tree"))
    }

    pub(crate) fn commit_tree(
        &self,
        workspace: &GitWorkspace,
        plan: &CandidatePlan,
        tree: &TreeId,
    ) -> Result<CommitId, CandidateError> {
        self.commit_for(&workspace.goal, &workspace.base, plan, tree)
    }

    /// Writes a commit and names it below a goal's refs; one that the name held before is kept.
    pub(crate) fn commit_for(
        &self,
        goal: &RefPart,
        base: &CommitId,
        plan: &CandidatePlan,
        tree: &TreeId,
    ) -> Result<CommitId, CandidateError> {
        let commit = self.write_commit(base, plan, tree)?;
        let name = format!("{}/{}", goal_ref(goal), plan.name);
        match self.ref_value(&name)? {
            Some(there) if there == commit => {}
            Some(there) => {
                let kept = format!("{}/replaced-{there}", goal_ref(goal));
                let changes = [
                    format!("update {kept} {there}"),
                    format!("update {name} {commit} {there}"),
                ];
                self.change_refs(&changes, &[&name, &kept])?;
            }
            None => self.change_refs(&[format!("create {name} {commit}")], &[&name])?,
        }
        Ok(commit)
    }
}

/// Files that are staged: where they are, and the private index that holds their base.
#[derive(Clone, Copy)]
pub(crate) struct StagedFiles<'a> {
    pub(crate) scratch: &'a Scratch<'a>,
    pub(crate) root: &'a Path,
    pub(crate) base: &'a CommitId,
}

/// What has to change in the index.
#[derive(Debug, Default)]
struct IndexChanges {
    gone: Vec<PathBuf>,
    present: Vec<PathBuf>,
    /// Those of `present` that the base does not hold.
    new: Vec<PathBuf>,
}

impl IndexChanges {
    const fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.present.is_empty()
    }

    /// Returns those of `paths` whose content the base does not hold; others differ only in their times.
    fn differing(
        &self,
        scratch: &Scratch<'_>,
        mut paths: BTreeSet<PathBuf>,
    ) -> Result<BTreeSet<PathBuf>, GitError> {
        let is_known = |path: &PathBuf| !self.new.contains(path);
        if paths.iter().any(is_known) {
            let refresh = scratch.call("update-index");
            let _has_differences = refresh.args(["-q", "--refresh"]).exit()?;
            let names = scratch.call("diff-files").args(["--name-only", "-z"]);
            let names = names.bytes()?;
            let differing: BTreeSet<PathBuf> = names.split(|&b| b == 0).map(path_of).collect();
            paths.retain(|path| !is_known(path) || differing.contains(path));
        }
        Ok(paths)
    }
}

fn pending(
    scratch: &Scratch<'_>,
    root: &Path,
    format: ObjectFormat,
    refused: &mut BTreeSet<RefusedPath>,
) -> Result<IndexChanges, CandidateError> {
    let mut pending = IndexChanges::default();
    let known = scratch.call("diff-files");
    let known = known
        .args(["--raw", "-z", "--no-renames", "--ignore-submodules=all"])
        .bytes()?;
    let fields: Vec<&[u8]> = known.split(|&b| b == 0).collect();
    for [marks, name] in fields.as_chunks().0 {
        let path = path_of(name);
        if marks.ends_with(b"D") && !is_kapi_state(&path) {
            pending.gone.push(path);
            continue;
        }
        match obstacle(format, root, &path, link_of_base(marks)) {
            None => pending.present.push(path),
            Some(why) => {
                // What took the file's place removed it; a file that cannot be taken is still
                // there, so the commit keeps the one it has.
                if matches!(
                    why,
                    RefusalReason::SpecialFile | RefusalReason::NestedRepository
                ) {
                    pending.gone.push(path.clone());
                }
                refused.insert(RefusedPath { path, why });
            }
        }
    }
    let others = scratch
        .call("ls-files")
        .args(["-z", "--others", "--exclude-standard"])
        .bytes()?;
    for name in others.split(|&b| b == 0).filter(|name| !name.is_empty()) {
        if let Some(dir) = name.strip_suffix(b"/") {
            let path = path_of(dir);
            let why = if is_kapi_state(&path) {
                RefusalReason::KapiState
            } else {
                RefusalReason::NestedRepository
            };
            refused.insert(RefusedPath { path, why });
            continue;
        }
        let path = path_of(name);
        if let Some(why) = obstacle(format, root, &path, None) {
            refused.insert(RefusedPath { path, why });
        } else {
            pending.new.push(path.clone());
            pending.present.push(path);
        }
    }
    let changes = pending.gone.len() + pending.present.len();
    if changes > CHANGES_MAX {
        return Err(CandidateError::TooManyChanges { changes });
    }
    Ok(pending)
}

/// Returns the object of the link that the base has, by what `diff-files` says of a path.
fn link_of_base(marks: &[u8]) -> Option<&str> {
    let marks = marks.strip_prefix(b":120000 ")?;
    let object = marks.split(|&b| b == b' ').nth(1)?;
    std::str::from_utf8(object).ok()
}

/// Returns what keeps the file at `path` out of a commit.
fn obstacle(
    format: ObjectFormat,
    root: &Path,
    path: &Path,
    link_of_base: Option<&str>,
) -> Option<RefusalReason> {
    if is_kapi_state(path) {
        return Some(RefusalReason::KapiState);
    }
    match fs::symlink_metadata(root.join(path)) {
        Err(_) => Some(RefusalReason::Unreadable),
        Ok(found) if found.is_symlink() => match fs::read_link(root.join(path)) {
            Err(_) => Some(RefusalReason::Unreadable),
            Ok(target) => link::is_refused(format, path, target.as_os_str(), link_of_base)
                .then_some(RefusalReason::EscapingLink),
        },
        // A repository took the place of a file: git would store a link to it.
        Ok(found) if found.is_dir() => Some(RefusalReason::NestedRepository),
        Ok(found) if !found.is_file() => Some(RefusalReason::SpecialFile),
        Ok(found) if found.len() > FILE_BYTES_MAX => Some(RefusalReason::TooLarge),
        Ok(_) => None,
    }
}

pub(crate) fn is_kapi_state(path: &Path) -> bool {
    path.iter()
        .next()
        .is_some_and(|first| first.eq_ignore_ascii_case(STATE_DIR))
}

pub(crate) fn check(plan: &CandidatePlan) -> Result<(), CandidateError> {
    for text in [&plan.author.name, &plan.author.email] {
        let is_plain = !text.contains(['<', '>', '\n', '\0']);
        let has_letter = text.chars().any(char::is_alphanumeric);
        if !is_plain || !has_letter || OsStr::new(text).len() > 1000 {
            return Err(CandidateError::Author { text: text.clone() });
        }
    }
    if plan.message.trim().is_empty() || plan.message.contains('\0') {
        return Err(CandidateError::Message);
    }
    Ok(())
}
