//! What is heard while an effect runs, and how it is told to stop.

use kapi_core::room::{CallClaim, Room};
use kapi_core::usage::Usage;
use kapi_sys::cancel::Cancel;

/// The engine's ear while an effect runs.
#[derive(Clone, Copy)]
pub struct EffectWatch<'a> {
    /// Raised when the effect is no longer wanted.
    pub cancel: &'a Cancel,
    /// Takes what happens, from any thread.
    pub notice: &'a (dyn Fn(Activity) + Sync),
    /// Is asked what is left for model calls, from any thread.
    pub room: &'a (dyn Fn(&RoomQuery<'_>) -> Room + Sync),
}

/// What is said about model calls to whoever limits them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomQuery<'a> {
    /// Calls under way may still use so much; what is left counts it as not used.
    Claim(&'a CallClaim),
    /// A call was refused, because it does not fit or has no price.
    Refused {
        /// Why, in words for people.
        why: &'a str,
    },
}

/// Answers for effects that nobody limits.
#[must_use]
pub const fn unlimited(_: &RoomQuery<'_>) -> Room {
    Room::UNLIMITED
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
