//! What can be asked of an integration beside what can be asked of every workflow.

use kapi_core::id::GoalId;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntegrateCommand {
    /// Say what a source was meant to do, where that is unclear.
    Clarify {
        /// The source.
        source: GoalId,
        /// What was meant.
        text: String,
    },
    /// Go on without a source.
    Evict {
        /// The source.
        source: GoalId,
        /// Why.
        why: String,
    },
}
