//! What is heard while an effect runs, and how it is told to stop.

use kapi_core::usage::Usage;
use kapi_sys::cancel::Cancel;

/// The engine's ear while an effect runs.
#[derive(Clone, Copy)]
pub struct EffectWatch<'a> {
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
