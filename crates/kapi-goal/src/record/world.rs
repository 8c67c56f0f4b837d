//! The world seam: performing one effect.
//!
//! The engine never names git, sandboxes or agents; whoever implements this does. Tests
//! implement it with a simulated world that survives crashes.

use kapi_machine::watch::EffectWatch;

use crate::rules::effect::GoalEffect;
use crate::rules::outcome::GoalOutcome;

/// Performs effects. Performing one effect twice under the same id must be safe.
pub trait World: Sync {
    /// Performs one effect to its end.
    ///
    /// Returns [`GoalOutcome::Cancelled`] soon after `watch.cancel` is raised. What an agent uses is
    /// reported through `watch` as it happens, and only the rest stands in the outcome.
    fn perform(&self, effect: &GoalEffect, watch: &EffectWatch<'_>) -> GoalOutcome;
}
