//! Applying a source to a head: as one merge, or its commits one by one, without a working tree.
//!
//! Moves no ref: what comes of it is a commit, or where and why it does not fit. A function of the
//! plan, so that doing it twice gives the same commits.

use std::path::{Path, PathBuf};

use super::LandError;
use super::merge::{MergeConflict, MergeOutcome};
use crate::author::Author;
use crate::changed_file::FileMode;
use crate::command::GitError;
use crate::commit_object::{CommitObject, utc};
use crate::id::{CommitId, TreeId};
use crate::repository::Repository;
use crate::repository::range::CommitRange;
use crate::scratch::{Objects, Scratch};
use crate::tree_edit::TreeEdit;

/// The oldest git that does to one commit what another did to its parent: major and minor version.
pub const REPLAY_GIT_VERSION_MIN: (u32, u32) = (2, 40);

/// A source, and what it is applied to.
#[derive(Debug, Clone, Copy)]
pub struct SourcePlan<'a> {
    /// What it is applied to.
    pub head: &'a CommitId,
    /// The source: everything from its base to its commit.
    pub source: &'a CommitRange,
    /// How.
    pub method: ApplyMethod,
    /// The most commits that it may be.
    pub commits_max: u32,
    /// The message of a merge.
    pub message: &'a str,
    /// Author of a merge, and committer of whatever is made.
    pub author: &'a Author,
    /// The time of what is made, in seconds since the Unix epoch, UTC.
    pub at_unix_seconds: i64,
    /// A directory of ours for git's own files, made anew.
    pub scratch: &'a Path,
}

/// How a source is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApplyMethod {
    /// One merge of both; the source's commits stay what they are.
    Merge,
    /// Each of its commits is made again on the head, but those whose change the head has already.
    Rebase,
    /// Each of its commits is made again on the head, and names the commit it was.
    CherryPick,
}

/// What came of applying a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceOutcome {
    /// The head holds it.
    Applied(AppliedSource),
    /// It does not fit.
    Conflicted(Box<SourceConflict>),
}

/// A source that is in the head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedSource {
    /// The head now; where it was if the head had all of it.
    pub head: CommitId,
    /// Its tree.
    pub tree: TreeId,
    /// The commits that were made, the oldest first.
    pub made: Vec<CommitId>,
    /// The source's commits that brought nothing new, so that none was made for them.
    pub left_out: Vec<CommitId>,
}

/// Where a source does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceConflict {
    /// The head so far, with the commits that did fit.
    pub head: CommitId,
    /// What does not fit it: of a merge the source's commit, otherwise one of its commits.
    pub commit: CommitId,
    /// What of the source remains once this is settled; nothing after a merge or the last commit.
    pub rest: Option<CommitRange>,
    /// Why it does not fit.
    pub conflict: MergeConflict,
    /// The commits that were made before, the oldest first.
    pub made: Vec<CommitId>,
}

/// How a conflict ends.
#[derive(Debug, Clone, Copy)]
pub struct SettlePlan<'a> {
    /// The plan that met it.
    pub source: SourcePlan<'a>,
    /// The conflict.
    pub conflict: &'a SourceConflict,
    /// What its paths are to be. Each path of the conflict is named.
    pub files: &'a [SettledFile],
}

/// A path that was in conflict, as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledFile {
    /// The path.
    pub path: PathBuf,
    /// What is there; nothing where it goes.
    pub content: Option<SettledContent>,
}

/// The content of a path that was in conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledContent {
    /// What it is to git.
    pub mode: FileMode,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Repository {
    /// Applies a source to a head, without moving a ref. Repeating it gives the same.
    ///
    /// # Errors
    /// When the source does not go on from its base, is larger than agreed, or, unless it is merged,
    /// has merges of its own, whose changes would be left out; when git is too old or fails.
    pub fn apply_source(&self, plan: &SourcePlan<'_>) -> Result<SourceOutcome, LandError> {
        self.check_source(plan)?;
        let scratch = self.merging(plan.scratch, Objects::Shared)?;
        match plan.method {
            ApplyMethod::Merge => self.apply_by_merge(&scratch, plan),
            ApplyMethod::Rebase | ApplyMethod::CherryPick => self.apply_one_by_one(&scratch, plan),
        }
    }

    /// Writes the commit of a conflict that is settled: git's own tree with the files as they are to
    /// be. What remains of the source is applied to it next.
    ///
    /// # Errors
    /// When a path of the conflict is not named, or git fails.
    pub fn settle(&self, plan: &SettlePlan<'_>) -> Result<CommitId, LandError> {
        let is_named = |path: &Path| plan.files.iter().any(|file| file.path == path);
        let mut paths = plan.conflict.conflict.paths.iter();
        if let Some(open) = paths.find(|one| !is_named(&one.path)) {
            let path = open.path.clone();
            return Err(LandError::Unsettled { path });
        }
        let conflicted = plan.conflict.conflict.tree.as_str();
        let tree = self.tree_with(&plan.source, conflicted, plan.files)?;
        let SourceConflict { head, commit, .. } = plan.conflict;
        Ok(match plan.source.method {
            ApplyMethod::Merge => self.merge_commit(&plan.source, head, &tree)?,
            ApplyMethod::Rebase | ApplyMethod::CherryPick => {
                self.replayed(&plan.source, head, commit, &tree)?
            }
        })
    }

    /// Writes a tree in which some files are as they are given.
    pub(crate) fn tree_with(
        &self,
        plan: &SourcePlan<'_>,
        tree: &str,
        files: &[SettledFile],
    ) -> Result<TreeId, LandError> {
        let scratch = self.merging(plan.scratch, Objects::Shared)?;
        let edits = files.iter().map(|file| match &file.content {
            None => Ok(TreeEdit::Gone(file.path.clone())),
            Some(SettledContent { mode, bytes }) => {
                scratch.stored(&file.path, *mode, bytes).map(TreeEdit::File)
            }
        });
        let edits: Vec<TreeEdit> = edits.collect::<Result<_, GitError>>()?;
        Ok(scratch.edited(tree, &edits)?)
    }

    fn check_source(&self, plan: &SourcePlan<'_>) -> Result<(), LandError> {
        let CommitRange { base, commit } = plan.source;
        let (base, commit) = (base.clone(), commit.clone());
        if !self.is_ancestor(&base, &commit)? {
            return Err(LandError::NotOnBase { commit, base });
        }
        if self.has_more_than(&format!("{base}..{commit}"), plan.commits_max)? {
            let commits_max = plan.commits_max;
            return Err(LandError::TooManyCommits {
                commit,
                base,
                commits_max,
            });
        }
        match plan.method {
            ApplyMethod::Merge if !self.is_ancestor(&base, plan.head)? => {
                let head = plan.head.clone();
                Err(LandError::OtherHistory { head, base })
            }
            ApplyMethod::Merge => Ok(()),
            ApplyMethod::Rebase | ApplyMethod::CherryPick => {
                let found = self.git().version()?;
                let needed = REPLAY_GIT_VERSION_MIN;
                if found < needed {
                    return Err(LandError::GitTooOld { found, needed });
                }
                match self.merges_of(plan.source, &[])?.into_iter().next() {
                    Some(merge) => Err(LandError::HasMerge { commit, merge }),
                    None => Ok(()),
                }
            }
        }
    }

    /// Returns the merges of a range that other commits do not have, the oldest first.
    pub(crate) fn merges_of(
        &self,
        range: &CommitRange,
        others: &[&CommitId],
    ) -> Result<Vec<CommitId>, GitError> {
        self.listed(range, "--merges", others)
    }

    fn listed(
        &self,
        range: &CommitRange,
        which: &str,
        without: &[&CommitId],
    ) -> Result<Vec<CommitId>, GitError> {
        let call = self
            .call("rev-list")
            .args(["--topo-order", "--reverse", which]);
        let range = format!("{}..{}", range.base, range.commit);
        let without = without.iter().map(|commit| format!("^{commit}"));
        let text = call.arg(range).args(without).arg("--").text()?;
        let ids = text.lines().map(|line| {
            CommitId::parse(line).map_err(|_malformed| GitError::Unexpected {
                subcommand: "rev-list".to_owned(),
            })
        });
        ids.collect()
    }

    fn apply_by_merge(
        &self,
        scratch: &Scratch<'_>,
        plan: &SourcePlan<'_>,
    ) -> Result<SourceOutcome, LandError> {
        let commit = &plan.source.commit;
        if self.is_ancestor(commit, plan.head)? {
            return Ok(SourceOutcome::Applied(AppliedSource {
                head: plan.head.clone(),
                tree: self.tree_of(plan.head)?,
                made: Vec::new(),
                left_out: vec![commit.clone()],
            }));
        }
        match scratch.merged(plan.head, commit)? {
            MergeOutcome::Clean(tree) => {
                let head = self.merge_commit(plan, plan.head, &tree)?;
                Ok(SourceOutcome::Applied(AppliedSource {
                    made: vec![head.clone()],
                    head,
                    tree,
                    left_out: Vec::new(),
                }))
            }
            MergeOutcome::Conflicts(conflict) => {
                Ok(SourceOutcome::Conflicted(Box::new(SourceConflict {
                    head: plan.head.clone(),
                    commit: commit.clone(),
                    rest: None,
                    conflict,
                    made: Vec::new(),
                })))
            }
        }
    }

    fn apply_one_by_one(
        &self,
        scratch: &Scratch<'_>,
        plan: &SourcePlan<'_>,
    ) -> Result<SourceOutcome, LandError> {
        let commits = self.listed(plan.source, "--no-merges", &[])?;
        let there = self.there_already(plan)?;
        let mut applied = AppliedSource {
            head: plan.head.clone(),
            tree: self.tree_of(plan.head)?,
            made: Vec::new(),
            left_out: Vec::new(),
        };
        for commit in commits {
            if there.contains(&commit) {
                applied.left_out.push(commit);
                continue;
            }
            let parent = self.parent_of(&commit)?;
            match scratch.merged_on(&parent, &applied.head, &commit)? {
                MergeOutcome::Clean(tree) if tree == applied.tree => applied.left_out.push(commit),
                MergeOutcome::Clean(tree) => {
                    applied.head = self.replayed(plan, &applied.head, &commit, &tree)?;
                    applied.made.push(applied.head.clone());
                    applied.tree = tree;
                }
                MergeOutcome::Conflicts(conflict) => {
                    let rest = CommitRange {
                        base: commit.clone(),
                        commit: plan.source.commit.clone(),
                    };
                    return Ok(SourceOutcome::Conflicted(Box::new(SourceConflict {
                        head: applied.head,
                        rest: (rest.base != rest.commit).then_some(rest),
                        commit,
                        conflict,
                        made: applied.made,
                    })));
                }
            }
        }
        Ok(SourceOutcome::Applied(applied))
    }

    /// Returns the commits of a source that a rebase leaves out, because the head makes their change.
    fn there_already(&self, plan: &SourcePlan<'_>) -> Result<Vec<CommitId>, LandError> {
        if plan.method != ApplyMethod::Rebase {
            return Ok(Vec::new());
        }
        let since = CommitRange {
            base: plan.source.base.clone(),
            commit: plan.head.clone(),
        };
        let all = self.listed(plan.source, "--no-merges", &[])?;
        let gone = self.altered_or_lost(plan.source, &since)?;
        Ok(all
            .into_iter()
            .filter(|commit| !gone.contains(commit))
            .collect())
    }

    fn parent_of(&self, commit: &CommitId) -> Result<CommitId, GitError> {
        let parents = self.parents(commit)?;
        let first = parents.first().and_then(|id| CommitId::parse(id).ok());
        first.ok_or_else(|| GitError::Unexpected {
            subcommand: "rev-list".to_owned(),
        })
    }

    fn merge_commit(
        &self,
        plan: &SourcePlan<'_>,
        head: &CommitId,
        tree: &TreeId,
    ) -> Result<CommitId, GitError> {
        let at = utc(plan.at_unix_seconds);
        let commit = CommitObject {
            tree,
            parents: &[head, &plan.source.commit],
            message: plan.message.as_bytes(),
            author: plan.author,
            authored: &at,
            committer: plan.author,
            committed: &at,
        };
        commit.write(self.call("commit-tree"))
    }

    /// Writes a commit of a source once more, on a head.
    fn replayed(
        &self,
        plan: &SourcePlan<'_>,
        head: &CommitId,
        commit: &CommitId,
        tree: &TreeId,
    ) -> Result<CommitId, GitError> {
        let format = "--format=%an%x00%ae%x00%ad%x00%B";
        let call = self.call("log").args(["-1", "--date=raw", format]);
        let text = call.args([commit.as_str(), "--"]).text()?;
        let fields: Vec<&str> = text.splitn(4, '\0').collect();
        let [name, email, date, message] = fields[..] else {
            return Err(GitError::Unexpected {
                subcommand: "log".to_owned(),
            });
        };
        let mut message = message.trim_end().to_owned();
        if plan.method == ApplyMethod::CherryPick {
            message.extend(["\n\n(cherry picked from commit ", commit.as_str(), ")"]);
        }
        message.push('\n');
        let author = Author {
            name: name.to_owned(),
            email: email.to_owned(),
        };
        let written = CommitObject {
            tree,
            parents: &[head],
            message: message.as_bytes(),
            author: &author,
            authored: date,
            committer: plan.author,
            committed: &utc(plan.at_unix_seconds),
        };
        written.write(self.call("commit-tree"))
    }
}
