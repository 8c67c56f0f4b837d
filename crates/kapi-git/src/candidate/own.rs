//! A candidate behind the commits that the agent made by itself.
//!
//! Each is written anew on the base: its files, its message and its time, the person's name, and the
//! trailers of the candidate. What a candidate may not hold, none of them may hold, whatever the files
//! are in the end.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::candidate::{CHANGES_MAX, CandidatePlan, is_kapi_state, lfs, link};
use crate::change::{ChangeKind, RawChange};
use crate::check_ignore::check_ignore;
use crate::command::GitError;
use crate::commit_object::{CommitObject, utc};
use crate::id::{CommitId, TreeId};
use crate::own_commits::OwnCommit;
use crate::refused_path::{FILE_BYTES_MAX, RefusedPath};
use crate::repository::Repository;
use crate::scratch::Scratch;
use crate::sweep::PATH_BYTES_MAX;

/// Begins a line that names somebody beside the author.
const CO_AUTHOR: &str = "Co-authored-by:";

/// What git calls the kinds of entries that a candidate changes, and nothing being there.
const MODES: &[&str] = &["000000", "100644", "100755", LINK];
/// What it calls a link.
const LINK: &str = "120000";

/// What decides which of an agent's commits may stay.
pub(crate) struct OwnCommitRules<'a> {
    /// What the commits come after.
    base: &'a CommitId,
    /// What was left out of the files as they are in the end.
    refused: BTreeSet<&'a Path>,
}

impl<'a> OwnCommitRules<'a> {
    pub(crate) fn new(base: &'a CommitId, refused: &'a [RefusedPath]) -> Self {
        let refused = refused.iter().map(|found| found.path.as_path());
        Self {
            base,
            refused: refused.collect(),
        }
    }

    /// Returns those of an agent's commits whose files may all be committed. The working tree has the
    /// rules about what is ignored and what belongs in Git LFS.
    pub(crate) fn committable(
        &self,
        scratch: &Scratch<'_>,
        own: &[OwnCommit],
    ) -> Result<Vec<OwnCommit>, GitError> {
        let mut kept = Vec::new();
        for commit in own {
            if self.allows(scratch, commit)? {
                kept.push(commit.clone());
            }
        }
        Ok(kept)
    }

    fn allows(&self, scratch: &Scratch<'_>, commit: &OwnCommit) -> Result<bool, GitError> {
        let repository = scratch.repository();
        let changes = repository.raw_versions(self.base.as_str(), commit.tree.as_str())?;
        if changes.len() > CHANGES_MAX || !changes.iter().all(|change| self.is_plain(change)) {
            return Ok(false);
        }
        let has = |change: &&RawChange| change.kind != ChangeKind::Deleted;
        let there: Vec<&RawChange> = changes.iter().filter(has).collect();
        if !are_small(repository, &there)? || has_refused_link(repository, &there)? {
            return Ok(false);
        }
        let paths: Vec<PathBuf> = there.iter().map(|it| it.entry.path.clone()).collect();
        // What a filter has to clean was committed as it is.
        if !lfs::filtered(scratch, &paths)?.is_empty() {
            return Ok(false);
        }
        let new = there.iter().filter(|it| it.kind == ChangeKind::Added);
        let new = new.map(|change| &change.entry.path);
        Ok(check_ignore(scratch.call("check-ignore"), new)?.is_empty())
    }

    /// Tells whether a change is one of files and links, at a place where they may be.
    fn is_plain(&self, change: &RawChange) -> bool {
        let path = &change.entry.path;
        let modes = [&change.entry.mode, &change.mode_before];
        modes.iter().all(|mode| MODES.contains(&mode.as_str()))
            && path.as_os_str().len() <= PATH_BYTES_MAX
            && !is_kapi_state(path)
            && !self.refused.contains(path.as_path())
    }
}

fn are_small(repository: &Repository, changes: &[&RawChange]) -> Result<bool, GitError> {
    let lines = changes.iter().map(|it| format!("{}\n", it.entry.object));
    let call = repository
        .call("cat-file")
        .arg("--batch-check=%(objectsize)");
    let sizes = call.stdin(lines.collect::<String>().into_bytes()).text()?;
    let sizes: Vec<&str> = sizes.lines().collect();
    let is_small = |(size, change): (&&str, &&RawChange)| {
        let most = match change.entry.mode.as_str() {
            LINK => PATH_BYTES_MAX as u64,
            _ => FILE_BYTES_MAX,
        };
        size.parse::<u64>().is_ok_and(|bytes| bytes <= most)
    };
    Ok(sizes.len() == changes.len() && sizes.iter().zip(changes).all(is_small))
}

fn has_refused_link(repository: &Repository, changes: &[&RawChange]) -> Result<bool, GitError> {
    let format = repository.object_format();
    for change in changes.iter().filter(|it| it.entry.mode == LINK) {
        let target = repository.blob(&change.entry.object)?;
        let of_base = (change.mode_before == LINK).then_some(change.object_before.as_str());
        let target = OsStr::from_bytes(&target);
        if link::is_refused(format, &change.entry.path, target, of_base) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Repository {
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
            plan.at_unix_seconds = last.at_unix_seconds;
        }
        Ok((parent, plan))
    }
}

/// Returns the trailers of a message: the lines of its last paragraph that are Kapi's or name somebody
/// beside the author.
fn trailers(message: &str) -> Vec<&str> {
    let paragraph = message.trim_end().rsplit("\n\n").next().unwrap_or_default();
    let is_kept = |line: &&str| is_of_kapi(line) || line.starts_with(CO_AUTHOR);
    paragraph.lines().filter(is_kept).collect()
}

/// Returns an agent's message with these trailers, and none of Kapi's that it wrote itself.
fn with_trailers(message: &str, trailers: &[&str]) -> String {
    let is_its = |line: &&str| !is_of_kapi(line) && !trailers.contains(line);
    let lines: Vec<&str> = message.lines().filter(is_its).collect();
    let text = lines.join("\n");
    let text = match text.trim() {
        "" => "work",
        text => text,
    };
    let trailers: String = trailers.iter().map(|line| format!("{line}\n")).collect();
    match trailers.is_empty() {
        true => format!("{text}\n"),
        false => format!("{text}\n\n{trailers}"),
    }
}

fn is_of_kapi(line: &str) -> bool {
    line.starts_with("Kapi-")
}
