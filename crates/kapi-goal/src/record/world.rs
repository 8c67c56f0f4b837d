//! The world seam: performing one effect.
//!
//! The engine never names git, sandboxes or agents; whoever implements this does. Tests
//! implement it with a simulated world that survives crashes.

use kapi_machine::watch::Watch;

use crate::rules::effect::Effect;
use crate::rules::outcome::Outcome;

/// Performs effects. Performing one effect twice under the same id must be safe.
pub trait World: Sync {
    /// Performs one effect to its end.
    ///
    /// Returns [`Outcome::Cancelled`] soon after `watch.cancel` is raised. What an agent uses is
    /// reported through `watch` as it happens, and only the rest stands in the outcome.
    fn perform(&self, effect: &Effect, watch: &Watch<'_>) -> Outcome;
}
