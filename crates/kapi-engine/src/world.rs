//! The world seam: performing one effect.
//!
//! The engine never names git, sandboxes or agents; whoever implements this does. Tests
//! implement it with a simulated world that survives crashes.

use kapi_core::goal::effect::Effect;
use kapi_core::goal::outcome::Outcome;
use kapi_core::usage::Usage;
use kapi_sys::cancel::Cancel;

/// Performs effects. Performing one effect twice under the same id must be safe.
pub trait World: Sync {
    /// Performs one effect to its end.
    ///
    /// Returns [`Outcome::Cancelled`] soon after `watch.cancel` is raised. What an agent uses is
    /// reported through `watch` as it happens, and only the rest stands in the outcome.
    fn perform(&self, effect: &Effect, watch: &Watch<'_>) -> Outcome;
}

/// The engine's ear while an effect runs.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Raised when the effect is no longer wanted.
    pub cancel: &'a Cancel,
    /// Takes what happens, from any thread.
    pub notice: &'a (dyn Fn(Activity) + Sync),
}

/// Something that happened inside a running effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// An agent began to use a tool.
    Tool {
        /// The tool's name, as the agent calls it.
        name: String,
        /// What it is used on, in one line.
        detail: String,
    },
    /// An agent said something.
    Text {
        /// What, capped.
        text: String,
    },
    /// The model was used.
    Used(Usage),
    /// A verify command began.
    Verifying {
        /// The command.
        command: String,
    },
    /// Anything else worth a line.
    Note {
        /// The line.
        text: String,
    },
}
