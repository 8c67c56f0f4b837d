//! What happens at a gateway, as it is told to those who watch.
//!
//! Plain data: it carries no keys and no bodies.

use kapi_core::usage::Usage;
use serde::Serialize;

use crate::model::meter::UnknownUsage;

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GatewayRefusal {
    /// It is none that an agent needs.
    NotAllowed,
    /// It has no key, or another than the placeholder.
    Key,
    /// The budget is spent.
    Spent,
    /// It cannot be read with certainty.
    Unreadable,
    /// It is too large.
    TooLarge,
    /// Too much is under way.
    Busy,
    /// It asks a model that this run may not ask.
    Model,
    /// What is left under a limit is too little for it, or nobody knows what it costs.
    Limit,
}

/// Something that happened at the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum GatewayEvent {
    /// A model call is sent on.
    Call {
        /// Its number.
        call: u64,
        /// The model that it names.
        model: String,
    },
    /// The gateway added to a call the wish to be told its usage.
    UsageAsked {
        /// Its number.
        call: u64,
    },
    /// The gateway lowered the most that the answer to a call may have, to what is left for it.
    Lowered {
        /// Its number.
        call: u64,
        /// The most tokens that the request named, if it named any.
        from: Option<u64>,
        /// The most tokens now.
        to: u64,
    },
    /// The gateway took out of a call what only the provider would have done.
    TakenOut {
        /// Its number.
        call: u64,
        /// What, each once.
        parts: Vec<String>,
    },
    /// An answer began.
    Answered {
        /// The call's number.
        call: u64,
        /// The provider's status.
        status: u16,
        /// Milliseconds after which the provider wants to be asked again, if it says so.
        retry_after_ms: Option<u64>,
    },
    /// A call used more.
    Used {
        /// Its number.
        call: u64,
        /// How much more.
        usage: Usage,
    },
    /// A call ended, and what it used is not exactly known.
    Unmetered {
        /// Its number.
        call: u64,
        /// Why it is not exactly known.
        why: UnknownUsage,
        /// An upper bound of what it used beyond the reports.
        estimate: Usage,
    },
    /// A request was refused before it reached the provider.
    Refused {
        /// The reason for the refusal.
        why: GatewayRefusal,
    },
    /// A request was refused because it asks a model that this run may not ask.
    ModelRefused {
        /// The model that it names, safe to show.
        model: String,
    },
    /// A running answer was ended because the budget is spent.
    Cut {
        /// The call's number.
        call: u64,
    },
    /// A request was sent again, because a kept connection had been closed.
    Retried {
        /// The call's number.
        call: u64,
    },
    /// The provider did not go on for too long.
    Stalled {
        /// The call's number.
        call: u64,
    },
    /// The provider gave no answer that could be passed on.
    Unreachable {
        /// The call's number.
        call: u64,
        /// What went wrong, without keys.
        why: String,
    },
    /// The provider broke an answer off.
    BrokenOff {
        /// The call's number.
        call: u64,
    },
    /// The agent went away before the end of an answer.
    AgentLeft {
        /// The call's number.
        call: u64,
    },
    /// Recording ended early; the traffic goes on.
    RecordingStopped {
        /// The error that ended it.
        why: String,
    },
    /// A replayed answer belonged to a request with another body.
    ReplayDiffers {
        /// The call's number.
        call: u64,
    },
    /// The cassette has no answer to a request.
    ReplayMissed {
        /// The call's number.
        call: u64,
    },
}
