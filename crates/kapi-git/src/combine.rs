//! What is left of bringing sources together once each was applied: the commits of a conflict and of its
//! resolution, refs of ours that keep what a history may lose, and the first place of the integration branch.
//!
//! Which source comes when, and what a resolution is worth, is not known here.

use kapi_core::integration_branch::IntegrationBranch;

use crate::author::Author;
use crate::command::GitError;
use crate::commit_object::{CommitObject, utc};
use crate::id::{CommitId, RefPart};
use crate::land::LandError;
use crate::land::source::{SettlePlan, SettledFile, SourcePlan};
use crate::ref_name::branch_ref;
use crate::reference::plain::RefChange;
use crate::repository::Repository;
use crate::workspace::goal_ref;

/// A resolution that is made the merge that it was meant to be.
#[derive(Debug, Clone, Copy)]
pub struct ResolvedMerge<'a> {
    /// What the source was applied to.
    pub head: &'a CommitId,
    /// The source's commit.
    pub source: &'a CommitId,
    /// The commit whose files are the resolution.
    pub files: &'a CommitId,
    /// The message.
    pub message: &'a str,
    /// Author and committer.
    pub author: &'a Author,
    /// The time, in seconds since the Unix epoch, UTC.
    pub at_unix_seconds: i64,
}

impl Repository {
    /// Returns where a branch of ours may be looked at: a commit with the conflict in its files, but for
    /// those that are named, whose parents are both sides. Moves no ref.
    ///
    /// # Errors
    /// When git fails.
    pub fn conflict_commit(&self, settled: &SettlePlan<'_>) -> Result<CommitId, LandError> {
        let SettlePlan {
            source: plan,
            conflict,
            files,
        } = *settled;
        let tree = self.tree_with(&plan, conflict.conflict.tree.as_str(), files)?;
        let at = utc(plan.at_unix_seconds);
        let message = format!("A conflict that is not resolved yet\n\n{}", plan.message);
        let commit = CommitObject {
            tree: &tree,
            parents: &[&conflict.head, &conflict.commit],
            message: message.as_bytes(),
            author: plan.author,
            authored: &at,
            committer: plan.author,
            committed: &at,
        };
        Ok(commit.write(self.call("commit-tree"))?)
    }

    /// Writes a commit on another one, in which some files are as they are given. Moves no ref.
    ///
    /// # Errors
    /// When git fails.
    pub fn commit_with_files(
        &self,
        plan: &SourcePlan<'_>,
        on: &CommitId,
        files: &[SettledFile],
    ) -> Result<CommitId, LandError> {
        let tree = self.tree_with(plan, self.tree_of(on)?.as_str(), files)?;
        let at = utc(plan.at_unix_seconds);
        let commit = CommitObject {
            tree: &tree,
            parents: &[on],
            message: b"Files that tools write, written again\n",
            author: plan.author,
            authored: &at,
            committer: plan.author,
            committed: &at,
        };
        Ok(commit.write(self.call("commit-tree"))?)
    }

    /// Writes the merge of two commits with the files of a third. Moves no ref.
    pub fn resolved_merge(&self, merge: &ResolvedMerge<'_>) -> Result<CommitId, GitError> {
        let at = utc(merge.at_unix_seconds);
        let commit = CommitObject {
            tree: &self.tree_of(merge.files)?,
            parents: &[merge.head, merge.source],
            message: merge.message.as_bytes(),
            author: merge.author,
            authored: &at,
            committer: merge.author,
            committed: &at,
        };
        commit.write(self.call("commit-tree"))
    }

    /// Keeps a commit under a name of an owner's; repeating it is fine.
    pub fn hold_commit(
        &self,
        owner: &RefPart,
        name: &RefPart,
        commit: &CommitId,
    ) -> Result<(), GitError> {
        let name = format!("{}/{name}", goal_ref(owner));
        let from = self.ref_value(&name)?;
        if from.as_ref() == Some(commit) {
            return Ok(());
        }
        self.set_refs(&[RefChange {
            name: &name,
            from: from.as_ref(),
            to: commit,
        }])
    }

    /// Makes the integration branch at a commit; `false` where there is one.
    pub fn create_integration(
        &self,
        branch: IntegrationBranch,
        at: &CommitId,
    ) -> Result<bool, GitError> {
        let name = branch_ref(branch.as_str());
        if self.ref_value(&name)?.is_some() {
            return Ok(false);
        }
        self.set_refs(&[RefChange {
            name: &name,
            from: None,
            to: at,
        }])?;
        Ok(true)
    }
}
