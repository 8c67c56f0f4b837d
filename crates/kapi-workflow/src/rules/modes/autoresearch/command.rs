//! What can be asked of a search beside what can be asked of every workflow.

use crate::rules::modes::autoresearch::contract::Contract;
use crate::rules::modes::autoresearch::history::History;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AutoresearchCommand {
    /// Propose this contract instead of asking an agent for one.
    Draft {
        /// The contract.
        contract: Box<Contract>,
    },
    /// Go on from what another tool recorded.
    Import {
        /// What it recorded.
        history: Box<History>,
    },
    /// Put an idea into the backlog.
    Note {
        /// The idea.
        idea: String,
    },
    /// End the search, and finish what was kept.
    Finish {},
}
