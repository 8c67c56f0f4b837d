//! A candidate behind the commits that the agent made by itself.
//!
//! Each is written anew on the base: its files, its message and its time, the person's name, and the
//! trailers of the candidate.

use std::path::PathBuf;

use crate::candidate::{CandidateError, CandidatePlan, is_kapi_state, lfs};
use crate::command::GitError;
use crate::commit_object::{CommitObject, utc};
use crate::id::{CommitId, TreeId};
use crate::own_commits::OwnCommit;
use crate::refused_path::RefusedPath;
use crate::repository::Repository;
use crate::workspace::GitWorkspace;

impl Repository {
    /// Returns those of an agent's commits whose files may all be committed.
    pub(crate) fn committable(
        &self,
        workspace: &GitWorkspace,
        own: &[OwnCommit],
        refused: &[RefusedPath],
    ) -> Result<Vec<OwnCommit>, CandidateError> {
        let mut kept = Vec::new();
        for commit in own {
            let changed = self.tree_changes(&workspace.base, commit.tree.as_str())?;
            let paths: Vec<PathBuf> = changed.into_iter().map(|change| change.path).collect();
            let is_refused = |path: &PathBuf| {
                is_kapi_state(path) || refused.iter().any(|found| found.path == *path)
            };
            // What a filter has to clean was committed as it is.
            if paths.iter().any(is_refused)
                || !lfs::filtered(&workspace.scratch(self)?, &paths)?.is_empty()
            {
                continue;
            }
            kept.push(commit.clone());
        }
        Ok(kept)
    }

    /// Writes commits of an agent anew, one after the other on the base, each with the trailers of the
    /// candidate; returns what the candidate comes after, and its plan.
    pub(crate) fn write_own_commits(
        &self,
        base: &CommitId,
        plan: &CandidatePlan,
        own: &[OwnCommit],
        tree: &TreeId,
    ) -> Result<(CommitId, CandidatePlan), GitError> {
        let mut plan = plan.clone();
        let trailers = trailers(&plan.message);
        let (before, last) = match own.split_last() {
            Some((last, before)) if last.tree == *tree => (before, Some(last)),
            Some(_) | None => (own, None),
        };
        let mut parent = base.clone();
        for commit in before {
            let at = utc(commit.at_unix_seconds);
            let message = with_trailers(&commit.message, &trailers);
            let object = CommitObject {
                tree: &commit.tree,
                parents: &[&parent],
                message: message.as_bytes(),
                author: &plan.author,
                authored: &at,
                committer: &plan.author,
                committed: &at,
            };
            parent = object.write(self.call("commit-tree"))?;
        }
        if let Some(last) = last {
            plan.message = with_trailers(&last.message, &trailers);
        }
        Ok((parent, plan))
    }
}

/// Returns the trailers of a message: the lines of its last paragraph that are Kapi's.
fn trailers(message: &str) -> String {
    let paragraph = message.trim_end().rsplit("\n\n").next().unwrap_or_default();
    let lines = paragraph.lines().filter(|line| is_trailer(line));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Returns an agent's message with these trailers and none of Kapi's that it wrote itself.
fn with_trailers(message: &str, trailers: &str) -> String {
    let lines: Vec<&str> = message.lines().filter(|line| !is_trailer(line)).collect();
    let text = lines.join("\n");
    match text.trim() {
        "" => format!("work\n\n{trailers}"),
        text => format!("{text}\n\n{trailers}"),
    }
}

fn is_trailer(line: &str) -> bool {
    line.starts_with("Kapi-")
}
