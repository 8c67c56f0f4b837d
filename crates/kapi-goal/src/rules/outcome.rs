//! What came back from the world, as data.
//!
//! One variant for each kind of effect, plus the world's own refusal. Text in here is foreign: it
//! is capped before it arrives and never parsed with authority.

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::agent_end::AgentRun;
use kapi_core::failure::Failure;
use kapi_core::usage::Usage;
use kapi_core::verdict::JudgeRun;
use serde::{Deserialize, Serialize};

/// The result of one performed effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case", deny_unknown_fields)]
pub enum GoalOutcome {
    /// The worktree and branch exist.
    Workspace {
        /// Where the worktree is.
        path: String,
    },
    /// An agent process ended.
    Agent(AgentRun),
    /// The workspace was recorded as a candidate commit.
    Committed(GoalCandidate),
    /// The verify commands ran on a clean checkout.
    Verified(VerifyReport),
    /// A judge was asked.
    Judged(JudgeRun),
    /// The branch points at the proved commit.
    Published {
        /// That commit.
        commit: String,
    },
    /// The time waited for has come.
    Waited,
    /// The effect was stopped because it was no longer wanted.
    Cancelled {
        /// What an agent had used and not yet reported, zero for anything else.
        usage: Usage,
        /// The agent's session, where one had begun.
        session: Option<String>,
    },
    /// A cap on spending is used up, or too little is left for another model call.
    CapReached {
        /// Which, and how much of it, for people.
        cap: String,
        /// The agent's session, where one had begun.
        session: Option<String>,
    },
    /// The world refused.
    Failed(Failure),
}

/// One commit on top of the base that holds the whole work so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoalCandidate {
    /// The commit; the base itself when nothing was changed.
    pub commit: String,
    /// Its tree.
    pub tree: String,
    /// How many files differ from the base.
    pub files_changed: u32,
    /// What was left out of the commit and why ("vendor/x: nested repository"), capped.
    pub left_out: Vec<String>,
}
