//! What came back from the world for a workflow's effect.
//!
//! Text in here is foreign: capped before it arrives, and never parsed with authority.

use kapi_check::rules::measure::MeasurementReport;
use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::failure::Failure;
use kapi_core::id::GoalId;
use kapi_core::usage::Usage;
use kapi_goal::rules::state::GoalStatus;

use crate::rules::branch::PartBranch;
use crate::rules::changed::LandedPaths;
use crate::rules::effect::combine::CombineReport;
use crate::rules::identity::ReviewerIdentity;
use crate::rules::modes::ModeAnswer;

/// The result of one performed effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkflowOutcome {
    /// An agent answered in the shape that was asked for.
    Answered {
        /// Who.
        by: ReviewerIdentity,
        /// What.
        answer: Box<ModeAnswer>,
        /// What it used beyond what was reported while it ran.
        usage: Usage,
    },
    /// An agent answered in another shape, or not at all.
    Unreadable {
        /// Who.
        by: ReviewerIdentity,
        /// What is wrong with it, for the agent to mend.
        why: String,
        /// What it used.
        usage: Usage,
    },
    /// The branch and its worktree are there.
    Prepared {
        /// The branch; another name than asked for when that one was somebody else's.
        branch: String,
        /// The worktree.
        worktree: String,
        /// What the checks show on the base, where there are any.
        baseline: Option<Box<VerifyReport>>,
    },
    /// A goal came to rest.
    Rested {
        /// Which.
        goal: GoalId,
        /// The worktree it worked in.
        worktree: Option<String>,
        /// Where it stands.
        status: GoalStatus,
        /// The proved commit.
        commit: Option<String>,
        /// Why it stands there.
        reason: Option<String>,
    },
    /// A commit is on the branch.
    Landed {
        /// The branch's commit now.
        head: String,
        /// Its tree.
        tree: String,
        /// Whether it was merged with what had landed meanwhile.
        merged: bool,
        /// The paths that the task's commit changed.
        changed: LandedPaths,
    },
    /// A commit changes paths beside those that it may change; nothing was done with it.
    Strayed {
        /// The paths beside.
        paths: Vec<String>,
    },
    /// A commit does not fit what landed meanwhile.
    Conflicted {
        /// The paths.
        paths: Vec<String>,
    },
    /// Commands were run on a clean checkout.
    Verified(VerifyReport),
    /// The integration branch is where it should be.
    Advanced {
        /// Its commit now.
        at: String,
        /// The checkout of it that was brought along.
        brought: Option<String>,
    },
    /// The integration branch is not where it was when that was planned; nothing was changed.
    Moved {
        /// Its commit; `None` when it is gone.
        found: Option<String>,
    },
    /// An agent changed the worktree and said why.
    Proposed(Box<ProposalReport>),
    /// A change was applied to another commit than the one that it was made on.
    Reapplied(Box<ProposedCommit>),
    /// A commit was measured.
    Measured(Box<MeasurementReport>),
    /// The branch and its worktree are where they belong.
    Restored(RestorationReport),
    /// Each part has its branch, and together they are the whole.
    Split {
        /// The branches, without parts that came to nothing.
        branches: Vec<PartBranch>,
    },
    /// A step of bringing the work of several together was taken.
    Combined(Box<CombineReport>),
    /// The effect was stopped because it was no longer wanted, or its process is to end.
    Cancelled {
        /// What it used and had not reported.
        usage: Usage,
    },
    /// The world refused.
    Failed {
        /// Why.
        failure: Failure,
        /// Whether trying again may help.
        may_pass: bool,
        /// What it used and had not reported.
        usage: Usage,
    },
}

/// What an agent's turn in the worktree left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposalReport {
    /// Who.
    pub by: ReviewerIdentity,
    /// What it said.
    pub answer: ModeAnswer,
    /// A commit of what it left; `None` where it changed nothing.
    pub candidate: Option<ProposedCommit>,
    /// What it used beyond what was reported while it ran.
    pub usage: Usage,
}

/// A commit of what an agent left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedCommit {
    /// The commit.
    pub commit: String,
    /// Its tree.
    pub tree: String,
    /// The paths that it changes.
    pub changed: LandedPaths,
    /// What could not be taken over, and why.
    pub left_out: Vec<String>,
}

/// Where a branch and its worktree were proved to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestorationReport {
    /// The commit.
    pub commit: String,
    /// The tree of the commit and of the files.
    pub tree: String,
    /// How many files were removed that are not in it, those that git ignores included.
    pub n_removed: u64,
}

impl WorkflowOutcome {
    /// Returns what it used beyond what was reported while it ran; nothing for what is not metered.
    #[must_use]
    pub fn usage(&self) -> Usage {
        match self {
            Self::Answered { usage, .. }
            | Self::Unreadable { usage, .. }
            | Self::Cancelled { usage }
            | Self::Failed { usage, .. } => *usage,
            Self::Proposed(proposed) => proposed.usage,
            Self::Measured(_)
            | Self::Reapplied(_)
            | Self::Restored(_)
            | Self::Split { .. }
            | Self::Combined(_)
            | Self::Prepared { .. }
            | Self::Rested { .. }
            | Self::Landed { .. }
            | Self::Conflicted { .. }
            | Self::Strayed { .. }
            | Self::Verified(_)
            | Self::Advanced { .. }
            | Self::Moved { .. } => Usage::default(),
        }
    }

    /// Adds to what it used, where it is metered.
    pub fn add_usage(&mut self, more: &Usage) {
        match self {
            Self::Answered { usage, .. }
            | Self::Unreadable { usage, .. }
            | Self::Cancelled { usage }
            | Self::Failed { usage, .. } => usage.add(more),
            Self::Proposed(proposed) => proposed.usage.add(more),
            Self::Measured(_)
            | Self::Reapplied(_)
            | Self::Restored(_)
            | Self::Split { .. }
            | Self::Combined(_)
            | Self::Prepared { .. }
            | Self::Rested { .. }
            | Self::Landed { .. }
            | Self::Conflicted { .. }
            | Self::Strayed { .. }
            | Self::Verified(_)
            | Self::Advanced { .. }
            | Self::Moved { .. } => {}
        }
    }

    /// Returns what an agent answered, or what is wrong with it; `None` where no agent was asked.
    #[must_use]
    pub fn answer(&self) -> Option<Result<&ModeAnswer, &str>> {
        if let Self::Answered { answer, .. } = self {
            Some(Ok(answer))
        } else if let Self::Unreadable { why, .. } = self {
            Some(Err(why))
        } else {
            None
        }
    }

    /// Returns why the world refused, if it did.
    #[must_use]
    pub const fn failure(&self) -> Option<&Failure> {
        if let Self::Failed { failure, .. } = self {
            Some(failure)
        } else {
            None
        }
    }

    /// Tells whether it was stopped before its end.
    #[must_use]
    pub const fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled { .. })
    }
}
