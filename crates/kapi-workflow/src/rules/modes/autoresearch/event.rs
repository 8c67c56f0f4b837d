//! The facts of a search, as they stand in its log.

use kapi_check::rules::measure::MeasurementReport;
use serde::{Deserialize, Serialize};

use crate::rules::branch::PartBranch;
use crate::rules::changed::LandedPaths;
use crate::rules::identity::ReviewerIdentity;
use crate::rules::modes::autoresearch::contract::Contract;
use crate::rules::modes::autoresearch::groups::Group;
use crate::rules::modes::autoresearch::history::History;
use crate::rules::modes::autoresearch::run::Run;

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AutoresearchEvent {
    /// A contract is proposed.
    ContractDrafted {
        /// By which agent; `None` where a person gave it.
        by: Option<ReviewerIdentity>,
        /// The contract.
        contract: Box<Contract>,
    },
    /// What another tool recorded is taken over.
    HistoryImported {
        /// What.
        history: Box<History>,
    },
    /// The workflow's branch and its worktree are there.
    BranchPrepared {
        /// The branch.
        branch: String,
        /// The worktree.
        worktree: String,
        /// The commit it begins with.
        base: String,
    },
    /// Nothing can be compared with the head as it is.
    BaselineFailed {
        /// What it showed.
        measured: Box<MeasurementReport>,
        /// Why.
        reason: String,
    },
    /// An agent changed something, and said why before it was measured.
    CandidateProposed {
        /// It.
        candidate: Box<Candidate>,
        /// Ideas for later that were not known.
        ideas: Vec<String>,
    },
    /// One of several agents that were asked at once has ended its turn.
    TryAnswered {
        /// Its place in the round, from 0.
        place: u32,
        /// What came of it.
        found: TryAnswer,
        /// Ideas for later that were not known.
        ideas: Vec<String>,
    },
    /// The change at hand is better than its parent, and waits for the others of its round.
    GainHeld {},
    /// It is the best of its round.
    GainChosen {
        /// Its place.
        place: u32,
    },
    /// A gain was applied to what was kept of its round.
    GainReapplied {
        /// Its place.
        place: u32,
        /// The change as it is now; as it was on the parent where it does not fit.
        candidate: Box<Candidate>,
    },
    /// A commit was measured.
    Measured {
        /// What it showed.
        measured: Box<MeasurementReport>,
    },
    /// What becomes of a run, before anything is done about it.
    RunDecided {
        /// The run.
        run: Box<Run>,
    },
    /// Branch and worktree are where a decision puts them.
    Settled {
        /// The commit.
        commit: String,
        /// Its tree.
        tree: String,
        /// Files that were removed because they are not in it.
        n_removed: u64,
    },
    /// An agent's answer, or what it left, was not what was asked for.
    AnswerRefused {
        /// Who was asked, in which role.
        role: String,
        /// What was wrong.
        why: String,
    },
    /// Somebody had an idea.
    IdeaNoted {
        /// It.
        text: String,
    },
    /// Another contract is wanted; its runs are compared among themselves only.
    SegmentOpened {
        /// Why.
        reason: String,
    },
    /// Nothing more is tried.
    SearchEnded {
        /// Why.
        ending: Ending,
    },
    /// What was kept was measured and checked once more.
    HeadVerified {
        /// What it showed.
        measured: Box<MeasurementReport>,
        /// What was kept, in independent parts.
        groups: Vec<Group>,
    },
    /// Each part has its branch.
    BranchesMade {
        /// The branches.
        branches: Vec<PartBranch>,
    },
}

/// What came of the turn of one of several agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TryAnswer {
    /// A change.
    Candidate(Box<Candidate>),
    /// Something that was not asked for.
    Refused {
        /// What was wrong.
        why: String,
    },
    /// It has no idea left.
    Exhausted {},
}

/// A change that was proposed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// Who made it.
    pub by: ReviewerIdentity,
    /// Why it should help.
    pub hypothesis: String,
    /// What was changed, in a line.
    pub description: String,
    /// The number of the idea that it tries, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idea: Option<u32>,
    /// The commit.
    pub commit: String,
    /// Its tree.
    pub tree: String,
    /// The paths that it changes.
    pub changed: LandedPaths,
}

/// Why nothing more is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// As many runs were made as the contract allows.
    RunsUsedUp,
    /// Too many in a row were no better.
    TooManyFailures,
    /// The agent has no idea left.
    Exhausted,
    /// A person said so.
    Finished,
}

impl Ending {
    /// Says it in a sentence, without a period.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::RunsUsedUp => "every run that the contract allows was made",
            Self::TooManyFailures => "too many runs in a row were discarded or crashed",
            Self::Exhausted => "the agent has no idea left that is worth trying",
            Self::Finished => "you ended the search",
        }
    }
}
