//! What should come of the sources: each is merged anew with what came of those before it.
//!
//! Where they do not fit, what somebody made of the conflict is taken, and only that. Everything that is
//! written is thrown away.

use super::conflict_block::{self, Meeting};
use super::{CoverageFinding, CoveragePlan};
use crate::author::Author;
use crate::command::GitError;
use crate::commit_object::{CommitObject, utc};
use crate::hunks::{TracedHunks, traced};
use crate::id::{CommitId, TreeId};
use crate::land::merge::MergeOutcome;
use crate::scratch::Scratch;

/// What should come of the sources.
#[derive(Debug)]
pub(super) struct Replay {
    /// The heads there should be after each source.
    pub(super) heads: Vec<CommitId>,
    /// What each of them brought.
    pub(super) steps: Vec<TracedHunks>,
    /// What was lost in conflicts that somebody settled.
    pub(super) settled: Vec<CoverageFinding>,
}

/// Applies the sources of a plan again.
pub(super) fn replay(scratch: &Scratch<'_>, plan: &CoveragePlan<'_>) -> Result<Replay, GitError> {
    let mut replay = Replay {
        heads: Vec::new(),
        steps: Vec::new(),
        settled: Vec::new(),
    };
    for (place, source) in plan.sources.iter().enumerate() {
        let head = replay.heads.last().unwrap_or(plan.dev).clone();
        if is_within(scratch, &head, &source.range.commit)? {
            replay.heads.push(head);
            replay.steps.push(TracedHunks::default());
            continue;
        }
        let meeting = Meeting {
            ours: &head,
            theirs: &source.range.commit,
            after: &source.after,
            place,
            steps: &replay.steps,
        };
        let (next, settled) = merged(scratch, &meeting)?;
        let diff_tree = scratch.call("diff-tree");
        let step = traced(diff_tree, head.as_str(), next.as_str())?;
        replay.settled.extend(settled);
        replay.heads.push(next);
        replay.steps.push(step);
    }
    Ok(replay)
}

/// Merges two commits as git does, with what somebody made of the conflicts.
pub(super) fn merged(
    scratch: &Scratch<'_>,
    meeting: &Meeting<'_>,
) -> Result<(CommitId, Vec<CoverageFinding>), GitError> {
    let (tree, settled) = match scratch.merged(meeting.ours, meeting.theirs)? {
        MergeOutcome::Clean(tree) => (tree, Vec::new()),
        MergeOutcome::Conflicts(conflict) => conflict_block::settled(scratch, meeting, &conflict)?,
    };
    let commit = commit(scratch, &tree, &[meeting.ours, meeting.theirs])?;
    Ok((commit, settled))
}

fn commit(
    scratch: &Scratch<'_>,
    tree: &TreeId,
    parents: &[&CommitId],
) -> Result<CommitId, GitError> {
    let nobody = Author {
        name: "kapi".to_owned(),
        email: "kapi".to_owned(),
    };
    let at = utc(0);
    let commit = CommitObject {
        tree,
        parents,
        message: b"what should come of it\n",
        author: &nobody,
        authored: &at,
        committer: &nobody,
        committed: &at,
    };
    commit.write(scratch.call("commit-tree"))
}

fn is_within(scratch: &Scratch<'_>, head: &CommitId, commit: &CommitId) -> Result<bool, GitError> {
    let call = scratch.call("merge-base").arg("--is-ancestor");
    call.args([commit.as_str(), head.as_str()]).holds()
}
