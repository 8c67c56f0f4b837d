//! Looking at a repository before a contract is drawn up: base, branch, dirt, protected files.
//!
//! Only reads.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kapi_check::perform::dependencies::Dependencies;
use kapi_check::rules::proof::scripts;
use kapi_core::deletions::Deletions;
use kapi_core::failure::Failure;
use kapi_core::integration_branch::IntegrationBranch;
use kapi_git::candidate::CandidatePlan;
use kapi_git::changed_file::ChangedFile;
use kapi_git::diff::DiffPatch;
use kapi_git::hidden;
use kapi_git::id::CommitId;
use kapi_git::in_place::CheckoutInPlace;
use kapi_git::repository::{Dirt, Repository, RepositoryError};
use kapi_run::host_grants::HostGrants;
use kapi_run::{failure, ignored, repository_session};
use kapi_sys::cancel::Cancel;

use crate::rules::contract::Base;
use crate::rules::race::DiffSize;

/// What a commit of changes that were there before a goal in a checkout says of itself.
pub(crate) const START_MESSAGE: &str = "kapi: the checkout as it was when the goal began";

/// A repository, as a contract needs to know it.
#[derive(Debug)]
pub struct RepositorySurvey {
    repository: Repository,
}

impl RepositorySurvey {
    /// Looks at the repository that a directory is in.
    ///
    /// # Errors
    /// When there is none, it has no working tree or no commit, or git is missing or too old.
    pub fn of(grants: &HostGrants, dir: &Path) -> Result<Self, Failure> {
        let git = repository_session::find_git(grants, &Cancel::new())?;
        let repository = Repository::discover(&git, dir).map_err(|error| {
            let hint = match &error {
                RepositoryError::NotARepository { .. } => Some(
                    "run it inside a git repository, or create one with `git init`.".to_owned(),
                ),
                RepositoryError::NoCommit { .. } => {
                    Some("create a first commit: Kapi starts from a commit.".to_owned())
                }
                RepositoryError::Bare { .. } => {
                    Some("run it inside a checkout of the repository.".to_owned())
                }
                RepositoryError::NoSuchCommit { .. } | RepositoryError::Git(_) => None,
            };
            Failure {
                hint,
                ..failure::plain(&error)
            }
        })?;
        Ok(Self { repository })
    }

    /// Returns the repository's top level.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.repository.top_level().to_path_buf()
    }

    /// Returns the branch that is checked out.
    ///
    /// # Errors
    /// When git fails.
    pub fn head_branch(&self) -> Result<Option<String>, Failure> {
        self.repository
            .head_branch()
            .map_err(|error| failure::plain(&error))
    }

    /// Returns the base for a revision.
    ///
    /// # Errors
    /// When it names no commit.
    pub fn base(&self, revision: &str) -> Result<Base, Failure> {
        let commit = self
            .repository
            .resolve_commit(revision)
            .map_err(|error| Failure {
                hint: Some("give a branch, tag or commit of this repository.".to_owned()),
                ..failure::plain(&error)
            })?;
        let tree = self
            .repository
            .tree_of(&commit)
            .map_err(|error| failure::plain(&error))?;
        Ok(Base {
            revision: revision.to_owned(),
            commit: commit.to_string(),
            tree: tree.to_string(),
        })
    }

    /// Returns the base of a goal that is worked on in the person's own checkout: the commit that is
    /// checked out, with what they have changed already.
    ///
    /// # Errors
    /// When git fails.
    pub fn base_in_place(&self, index_dir: &Path, at_s: i64) -> Result<Base, Failure> {
        let head = self.base("HEAD")?;
        let checkout = CheckoutInPlace {
            base: &repository_session::commit_id(&head.commit)?,
            index_dir,
        };
        let plan = CandidatePlan {
            name: repository_session::ref_part("base")?,
            message: format!("{START_MESSAGE}\n"),
            author: repository_session::author(),
            at_unix_seconds: at_s,
        };
        let start = self
            .repository
            .start_in_place(checkout, &plan)
            .map_err(|error| failure::plain(&error))?;
        self.base(start.as_str()).map(|base| Base {
            revision: head.revision,
            ..base
        })
    }

    /// Returns what is in the checkout and in no commit.
    ///
    /// # Errors
    /// When git fails.
    pub fn dirt(&self) -> Result<Dirt, Failure> {
        self.repository
            .dirt()
            .map_err(|error| failure::plain(&error))
    }

    /// Tells whether a branch of this name can be made.
    ///
    /// # Errors
    /// When git fails.
    pub fn branch_is_free(&self, name: &str) -> Result<bool, Failure> {
        self.repository
            .branch_is_free(name)
            .map_err(|error| failure::plain(&error))
    }

    /// Returns the files of the base that pathspecs cover.
    ///
    /// # Errors
    /// When a pathspec is not valid.
    pub fn protected_files(&self, base: &Base, globs: &[String]) -> Result<usize, Failure> {
        let commit = repository_session::commit_id(&base.commit)?;
        let files = self
            .repository
            .tracked_files_matching(&commit, globs)
            .map_err(|error| failure::plain(&error))?;
        Ok(files.len())
    }

    /// Returns the scripts that verify commands name and that are checks: they are protected without
    /// being named, except those that the person's own words are about.
    ///
    /// # Errors
    /// When git fails.
    pub fn checks_named_in(
        &self,
        base: &Base,
        commands: &[String],
        persons_words: &str,
    ) -> Result<Vec<String>, Failure> {
        let commit = repository_session::commit_id(&base.commit)?;
        let mut checks = checks_named_in(&self.repository, &commit, commands)?;
        checks.retain(|file| !persons_words.contains(file.as_str()));
        Ok(checks)
    }

    /// Returns the ignored directories that an agent will see, copy-on-write.
    ///
    /// # Errors
    /// When git fails.
    pub fn ignored_shown(&self, grants: &HostGrants) -> Result<Vec<PathBuf>, Failure> {
        ignored::shown(&self.repository, &grants.home)
    }

    /// Returns those of some directories that verify commands are not lent.
    ///
    /// # Errors
    /// When git fails or a directory of the person cannot be listed.
    pub fn not_lent(
        &self,
        grants: &HostGrants,
        directories: &[PathBuf],
    ) -> Result<Vec<PathBuf>, Failure> {
        if directories.is_empty() {
            return Ok(Vec::new());
        }
        let lent = Dependencies::find(grants, &self.repository)?.shown();
        let left = directories.iter().filter(|it| !lent.contains(*it));
        Ok(left.cloned().collect())
    }

    /// Returns a file of a directory of hidden checks that the agent would see in its worktree.
    ///
    /// # Errors
    /// When the directory cannot be read, or git fails.
    pub fn hidden_in_plain_sight(
        &self,
        base: &Base,
        dir: &Path,
    ) -> Result<Option<PathBuf>, Failure> {
        let resolve = |path: &Path| {
            fs::canonicalize(path).map_err(|error| failure::file("resolve", path, &error))
        };
        let (root, dir) = (resolve(&self.root())?, resolve(dir)?);
        let Ok(below) = dir.strip_prefix(&root) else {
            return Ok(None);
        };
        let commit = repository_session::commit_id(&base.commit)?;
        let files = hidden::check(&dir).map_err(|error| failure::plain(&error))?;
        for path in files.paths {
            let path = below.join(path);
            let is_tracked = self
                .repository
                .is_tracked_file(&commit, &path)
                .map_err(|error| failure::plain(&error))?;
            if is_tracked {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Returns the patch from the base to a commit, at most `bytes_max` of it.
    ///
    /// # Errors
    /// When git fails.
    pub fn diff(&self, base: &str, commit: &str, bytes_max: usize) -> Result<DiffPatch, Failure> {
        let (base, commit) = (
            repository_session::commit_id(base)?,
            repository_session::commit_id(commit)?,
        );
        self.repository
            .diff(&base, &commit, bytes_max)
            .map_err(|error| failure::plain(&error))
    }

    /// Returns the commit that a branch points at, if there is one of this name.
    ///
    /// # Errors
    /// When git fails.
    pub fn branch_tip(&self, branch: &str) -> Result<Option<String>, Failure> {
        let tip = self.repository.branch_tip(branch);
        let tip = tip.map_err(|error| failure::plain(&error))?;
        Ok(tip.map(|tip| tip.to_string()))
    }

    /// Returns where the integration branch is, if there is one.
    ///
    /// # Errors
    /// When git fails.
    pub fn integration_branch(&self) -> Result<Option<String>, Failure> {
        self.branch_tip(IntegrationBranch::DEV.as_str())
    }

    /// Returns the commit of every branch, by its name.
    ///
    /// # Errors
    /// When git fails.
    pub fn branch_tips(&self) -> Result<BTreeMap<String, String>, Failure> {
        let refs = self.repository.refs_at("refs/heads");
        let refs = refs.map_err(|error| failure::plain(&error))?;
        let branches = refs.into_iter().filter_map(|(name, commit)| {
            let name = name.strip_prefix("refs/heads/")?;
            Some((name.to_owned(), commit.to_string()))
        });
        Ok(branches.collect())
    }

    /// Tells whether all of a commit is part of another.
    ///
    /// # Errors
    /// When git fails.
    pub fn contains(&self, newer: &str, older: &str) -> Result<bool, Failure> {
        let (newer, older) = (
            repository_session::commit_id(newer)?,
            repository_session::commit_id(older)?,
        );
        let contains = self.repository.is_ancestor(&older, &newer);
        contains.map_err(|error| failure::plain(&error))
    }

    /// Returns how many files of the base a commit deletes.
    ///
    /// # Errors
    /// When git fails.
    pub fn deletions(&self, base: &str, commit: &str) -> Result<Deletions, Failure> {
        let (base, commit) = (
            repository_session::commit_id(base)?,
            repository_session::commit_id(commit)?,
        );
        let counted = self.repository.deletions(&base, &commit);
        let (deleted, of) = counted.map_err(|error| failure::plain(&error))?;
        Ok(Deletions { deleted, of })
    }

    /// Returns the files that differ between two commits.
    ///
    /// # Errors
    /// When git fails.
    pub fn changed_files(&self, base: &str, commit: &str) -> Result<Vec<ChangedFile>, Failure> {
        let (base, commit) = (
            repository_session::commit_id(base)?,
            repository_session::commit_id(commit)?,
        );
        self.repository
            .changed_files(&base, &commit)
            .map_err(|error| failure::plain(&error))
    }

    /// Returns how much differs between two commits.
    ///
    /// # Errors
    /// When git fails.
    pub fn diff_size(&self, base: &str, commit: &str) -> Result<DiffSize, Failure> {
        let (base, commit) = (
            repository_session::commit_id(base)?,
            repository_session::commit_id(commit)?,
        );
        let count = self
            .repository
            .diff_count(&base, &commit)
            .map_err(|error| failure::plain(&error))?;
        Ok(DiffSize {
            files: count.files,
            added: count.added,
            removed: count.removed,
        })
    }
}

/// Returns the tracked files that commands name, quoted, in a subshell or after `cd`, and that are
/// checks by their name.
pub fn checks_named_in(
    repository: &Repository,
    commit: &CommitId,
    commands: &[String],
) -> Result<Vec<String>, Failure> {
    let mut checks = Vec::new();
    let named = commands
        .iter()
        .flat_map(|command| scripts::paths_in(command));
    for name in named.filter(|name| scripts::is_check(name)) {
        let is_tracked = repository
            .is_tracked_file(commit, Path::new(&name))
            .map_err(|error| failure::plain(&error))?;
        if is_tracked && !checks.contains(&name) {
            checks.push(name);
        }
    }
    Ok(checks)
}
