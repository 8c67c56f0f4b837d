//! What a model call may use, as it is asked before the call is sent.
//!
//! Plain data. Tokens only: what they cost is known to whoever is asked.

use kapi_spend::rules::call::CallBounds;

/// What a call would use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallWish<'a> {
    /// The call's number, counted from 1.
    pub call: u64,
    /// The model that the request names.
    pub model: &'a str,
    /// What its request tells of that.
    pub bounds: CallBounds,
}

/// Whether a call may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallAnswer {
    /// It may.
    Go {
        /// The most tokens that the model may write; `None` to leave the request as it is.
        output_max: Option<u64>,
    },
    /// It may not: too little is left, or its price is unknown.
    Refused {
        /// Why, in words for the agent and the person.
        why: String,
    },
    /// Nobody wants the answer any more.
    Stopped,
}

impl CallAnswer {
    /// Returns the answer of those who set no limit.
    #[must_use]
    pub const fn unlimited() -> Self {
        Self::Go { output_max: None }
    }
}
