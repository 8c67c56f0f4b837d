//! The content of submodules in a checkout, from the person's own checkout of each.
//!
//! Nothing is fetched: a submodule that is not checked out, or lacks the commit, stays empty and is
//! named.

use std::fs;
use std::path::{Path, PathBuf};

use super::{CheckoutError, CheckoutPlan};
use crate::change::TreeFile;
use crate::id::CommitId;
use crate::owned_dir::{self, failed};
use crate::repository::Repository;

/// The file that names submodules.
const NAMES: &str = ".gitmodules";
/// The mode of a submodule's entry.
pub(crate) const MODE: &str = "160000";
/// Submodules of submodules that are followed.
const DEPTH_MAX: usize = 4;

/// The content of a submodule, checked out in a directory of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmoduleContent {
    /// Where the submodule is, below the top.
    pub path: PathBuf,
    /// Where its content is.
    pub at: PathBuf,
}

impl Repository {
    /// Checks out the content of a commit's submodules, each in a directory of its own below `into`.
    /// One that is there already stays as it is.
    ///
    /// # Errors
    /// When git fails or a directory cannot be made.
    pub fn check_out_submodules(
        &self,
        commit: &CommitId,
        into: &Path,
    ) -> Result<Vec<SubmoduleContent>, CheckoutError> {
        let mut contents = Vec::new();
        for (n, entry) in self.submodules(commit)?.into_iter().enumerate() {
            let Some((submodule, commit)) = self.content_of(&entry) else {
                continue;
            };
            let at = into.join(format!("{n}-{commit}"));
            if !at.exists() {
                fs::create_dir_all(into).map_err(failed("create", into))?;
                submodule.check_out_by_way_of(&staging(&at, n), &commit, &at)?;
            }
            let path = entry.path;
            contents.push(SubmoduleContent { path, at });
        }
        Ok(contents)
    }

    /// Returns the submodules of a commit whose content a checkout of it would lack.
    pub fn absent_submodules(&self, commit: &CommitId) -> Result<Vec<PathBuf>, CheckoutError> {
        let entries = self.submodules(commit)?;
        let absent = entries
            .into_iter()
            .filter(|entry| self.content_of(entry).is_none());
        Ok(absent.map(|entry| entry.path).collect())
    }

    /// Fills the empty directories that a checkout has for submodules.
    pub(super) fn fill_submodules(&self, plan: &CheckoutPlan<'_>) -> Result<(), CheckoutError> {
        let depth = plan.to.as_os_str().to_string_lossy().matches(MARK).count();
        if depth >= DEPTH_MAX {
            return Ok(());
        }
        for (n, entry) in self.submodules(plan.commit)?.into_iter().enumerate() {
            let Some((submodule, commit)) = self.content_of(&entry) else {
                continue;
            };
            let location = plan.to.join(&entry.path);
            submodule.check_out_by_way_of(&staging(plan.to, n), &commit, &location)?;
        }
        Ok(())
    }

    /// Checks a commit out whole, or not at all, in the place of what is there.
    fn check_out_by_way_of(
        &self,
        staging: &Path,
        commit: &CommitId,
        to: &Path,
    ) -> Result<(), CheckoutError> {
        self.checkout(&CheckoutPlan {
            commit,
            base: commit,
            protect: &[],
            to: staging,
        })?;
        owned_dir::wipe(to)?;
        fs::rename(staging, to).map_err(failed("fill", to))?;
        owned_dir::wipe(&owned_dir::beside(staging)?)?;
        Ok(())
    }

    fn submodules(&self, commit: &CommitId) -> Result<Vec<TreeFile>, CheckoutError> {
        if !self.is_tracked_file(commit, Path::new(NAMES))? {
            return Ok(Vec::new());
        }
        let entries = self.entries(commit.as_str(), &[":(top)".into()])?;
        Ok(entries
            .into_iter()
            .filter(|entry| entry.mode == MODE)
            .collect())
    }

    /// Returns the person's checkout of a submodule and the commit that is wanted, if it is there.
    fn content_of(&self, entry: &TreeFile) -> Option<(Self, CommitId)> {
        let at = self.top_level().join(&entry.path);
        fs::symlink_metadata(at.join(".git")).ok()?;
        let submodule = Self::discover(self.git(), &at).ok()?;
        let is_own = fs::canonicalize(&at).is_ok_and(|real| real == submodule.top_level());
        let commit = submodule.resolve_commit(&entry.object).ok()?;
        is_own.then_some((submodule, commit))
    }
}

/// Names a directory beside a checkout in which a submodule is checked out.
const MARK: &str = ".submodule-";

fn staging(to: &Path, n: usize) -> PathBuf {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(format!("{MARK}{n}"));
    to.with_file_name(name)
}
