//! Putting a workspace back to exactly a commit, ignored files too, and proving that it is there.
//!
//! For worktrees in which only what is committed may outlast a decision. What was there is the
//! caller's to keep before.

use crate::candidate::{CandidateError, CandidatePlan, check};
use crate::command::GitError;
use crate::id::{CommitId, TreeId};
use crate::owned_dir::DirError;
use crate::repository::Repository;
use crate::repository::index_file::IndexFile;
use crate::scratch::Scratch;
use crate::workspace::{GitWorkspace, WorkspaceError};

/// A workspace that is exactly a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestorationProof {
    /// The tree of the commit and of the files.
    pub tree: TreeId,
    /// How many files, or repositories, were removed that nothing tracked.
    pub n_removed: u64,
}

/// A workspace that could not be put back.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// Its files are not those of the commit all the same.
    #[error("put {branch} back to {commit}: its files are the tree {found}, not {expected}")]
    OtherTree {
        /// The branch.
        branch: String,
        /// The commit.
        commit: CommitId,
        /// The tree of the commit.
        expected: TreeId,
        /// The tree of the files.
        found: TreeId,
    },
    /// Something is left that no commit holds.
    #[error("put {branch} back to {commit}: {path} cannot be removed")]
    LeftOver {
        /// The branch.
        branch: String,
        /// The commit.
        commit: CommitId,
        /// One of what is left.
        path: String,
    },
    /// The files could not be read as a candidate.
    #[error(transparent)]
    Candidate(#[from] CandidateError),
    /// The workspace could not be changed.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A file or directory could not be read or written.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Repository {
    /// Makes the files exactly what `commit` holds, with nothing besides, and proves it.
    pub fn restore_workspace(
        &self,
        workspace: &GitWorkspace,
        commit: &CommitId,
    ) -> Result<RestorationProof, RestoreError> {
        let scratch = self.fill_workspace(workspace, commit)?;
        let n_removed = remove_others(workspace, &scratch, commit)?;
        workspace.disarm_submodules(&scratch)?;
        workspace.share_index(self, &scratch)?;
        let expected = self.tree_of(commit)?;
        let found = match unchanged_tree(&scratch)? {
            Some(tree) => tree,
            None => {
                let base = commit.clone();
                let at_commit = GitWorkspace {
                    base,
                    ..workspace.clone()
                };
                self.snapshot(&at_commit)?.tree
            }
        };
        if found != expected {
            return Err(RestoreError::OtherTree {
                branch: workspace.branch.clone(),
                commit: commit.clone(),
                expected,
                found,
            });
        }
        Ok(RestorationProof {
            tree: found,
            n_removed,
        })
    }

    /// Makes a commit with the files of another one and a parent and message of its own, and names it.
    ///
    /// A function of its arguments, so that doing it twice gives the same id.
    pub fn recommit(
        &self,
        workspace: &GitWorkspace,
        commits: Recommit<'_>,
        plan: &CandidatePlan,
    ) -> Result<CommitId, CandidateError> {
        check(plan)?;
        let tree = self.tree_of(commits.files)?;
        let on_parent = GitWorkspace {
            base: commits.parent.clone(),
            ..workspace.clone()
        };
        self.commit_tree(&on_parent, plan, &tree)
    }

    /// Commits the files of a workspace as [`Repository::commit_candidate`] does, on a commit that
    /// its branch came to.
    pub fn commit_candidate_on(
        &self,
        workspace: &GitWorkspace,
        parent: &CommitId,
        plan: &CandidatePlan,
    ) -> Result<crate::candidate::Candidate, CandidateError> {
        let on_parent = GitWorkspace {
            base: parent.clone(),
            ..workspace.clone()
        };
        self.commit_candidate(&on_parent, plan)
    }
}

/// Removes all that the index does not hold, what git ignores and empty directories too, and returns how
/// many files and repositories that were.
fn remove_others(
    workspace: &GitWorkspace,
    scratch: &Scratch<'_>,
    commit: &CommitId,
) -> Result<u64, RestoreError> {
    let others = |options: &[&str]| {
        let call = scratch.call("ls-files").args(["-z", "--others"]);
        call.args(options).bytes()
    };
    let is_clean = || Ok::<_, GitError>(others(&["--directory"])?.is_empty());
    if is_clean()? {
        return Ok(0);
    }
    let removed = others(&[])?;
    // What git ignores is no part of a commit, and must not be of the next one's measurement. Twice
    // forced, because once spares directories that hold a repository.
    scratch
        .call("clean")
        .args(["-f", "-f", "-d", "-x", "-q"])
        .done()?;
    if let Some(path) = names(&others(&["--directory"])?).next() {
        return Err(RestoreError::LeftOver {
            branch: workspace.branch.clone(),
            commit: commit.clone(),
            path: String::from_utf8_lossy(path).into_owned(),
        });
    }
    Ok(u64::try_from(names(&removed).count()).unwrap_or(u64::MAX))
}

fn names(listed: &[u8]) -> impl Iterator<Item = &[u8]> {
    listed.split(|&b| b == 0).filter(|path| !path.is_empty())
}

/// Returns the tree of the files where they are what the index holds, and the index says of which tree it
/// is.
fn unchanged_tree(scratch: &Scratch<'_>) -> Result<Option<TreeId>, GitError> {
    let changed = scratch.call("diff-files");
    let changed = changed
        .args(["--raw", "-z", "--no-renames", "--ignore-submodules=all"])
        .bytes()?;
    let format = scratch.repository().object_format();
    let index = IndexFile::read(&scratch.index(), format).filter(|_| changed.is_empty());
    let tree = index.and_then(|index| index.tree());
    Ok(tree.and_then(|tree| TreeId::parse(&tree).ok()))
}

/// What a commit is made of.
#[derive(Debug, Clone, Copy)]
pub struct Recommit<'a> {
    /// The commit with its files.
    pub files: &'a CommitId,
    /// Its only parent.
    pub parent: &'a CommitId,
}
