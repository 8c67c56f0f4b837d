//! What can be asked of a Ralph workflow beside what can be asked of every workflow.

use kapi_goal::rules::plan::task::PlanTaskId;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RalphCommand {
    /// Return to planning: the plan is materially wrong.
    ReopenPlan {
        /// Why.
        reason: String,
    },
    /// Let the work land that is held because it changes paths beside those of the plan.
    AllowPaths,
    /// Let a task that came to rest go on, or be done anew.
    Retry {
        /// Which.
        task: PlanTaskId,
    },
}
