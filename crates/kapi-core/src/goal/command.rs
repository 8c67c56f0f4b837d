//! Every request that can be made of a goal, reports of finished effects included.
//!
//! A command is a wish: only the events that `decide` returns for it ever happened.

use crate::goal::budget::Raise;
use crate::goal::contract::Contract;
use crate::goal::event::ApprovalMeans;
use crate::goal::outcome::Outcome;
use crate::id::{EffectId, GoalId};
use crate::usage::Usage;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Propose a contract under a new id.
    Create {
        /// The id.
        id: GoalId,
        /// The contract.
        contract: Box<Contract>,
        /// SHA-256 of the contract's canonical JSON.
        contract_hash: String,
    },
    /// Approve the contract with this hash.
    Approve {
        /// The hash that was shown.
        contract_hash: String,
        /// How the approval is given.
        means: ApprovalMeans,
    },
    /// Record that an effect is about to be performed.
    Intend {
        /// Its id.
        effect: EffectId,
    },
    /// Report what a running effect used.
    Progress {
        /// Its id.
        effect: EffectId,
        /// Used since the last report.
        usage: Usage,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// Report how an effect ended.
    Report {
        /// Its id.
        effect: EffectId,
        /// What came back.
        outcome: Outcome,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// Stop for now.
    Interrupt,
    /// Go on.
    Resume,
    /// Stop for good.
    Cancel {
        /// Why, if it is said.
        reason: Option<String>,
    },
    /// Raise the limits.
    RaiseBudget(Raise),
}
