//! Why a question has no answer, in the kinds that a caller acts on differently.
//!
//! Texts of servers are foreign: capped, without control characters and without the key.

use std::error::Error;

use kapi_core::agent_end::{ProviderFailure, ProviderFailureKind};
use kapi_core::failure::chain;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The asking itself could not begin.
    #[error("prepare to ask {host}")]
    Prepare {
        /// The server.
        host: String,
        /// What is missing.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// Nobody answers there.
    #[error("reach {host}")]
    Unreachable {
        /// The server.
        host: String,
        /// What went wrong.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The answer broke off.
    #[error("read the whole answer of {host}")]
    BrokenOff {
        /// The server.
        host: String,
        /// What went wrong.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The key is not accepted.
    #[error("log in to {host}: {message} (status {status})")]
    Unauthorised {
        /// The server.
        host: String,
        /// Its status.
        status: u16,
        /// What it said.
        message: String,
    },
    /// The account has no money or quota left; waiting does not help.
    #[error("use {host}, whose account has no credit left: {message}")]
    OutOfCredit {
        /// The server.
        host: String,
        /// What it said.
        message: String,
    },
    /// There is no such model.
    #[error("find model {model:?} at {host}")]
    UnknownModel {
        /// The server.
        host: String,
        /// What was asked for.
        model: String,
    },
    /// Too much was asked in too short a time.
    #[error("stay within the rate limit of {host}: {message}")]
    RateLimited {
        /// The server.
        host: String,
        /// What it said.
        message: String,
        /// Milliseconds after which it may answer again, when it says so.
        reset_after_ms: Option<u64>,
    },
    /// The server cannot answer at the moment.
    #[error("get an answer from {host} now: {message} (status {status})")]
    Overloaded {
        /// The server.
        host: String,
        /// Its status.
        status: u16,
        /// What it said.
        message: String,
        /// Milliseconds after which it may answer again, when it says so.
        retry_after_ms: Option<u64>,
    },
    /// The model, or a filter before or after it, declines to answer.
    #[error("get an answer from the model at {host}, which declines: {reason}")]
    Refused {
        /// The server.
        host: String,
        /// Why, as the server puts it.
        reason: String,
    },
    /// The server does not accept the request.
    #[error("get {host} to accept the request: {message} (status {status})")]
    Rejected {
        /// The server.
        host: String,
        /// Its status.
        status: u16,
        /// What it said.
        message: String,
    },
    /// What came is no answer.
    #[error("understand the answer of {host}")]
    Malformed {
        /// The server.
        host: String,
        /// Where reading stopped; `None` where it is JSON of another shape.
        #[source]
        source: Option<serde_json::Error>,
    },
    /// The answer says nothing.
    #[error("get more than an empty answer from {host}")]
    Empty {
        /// The server.
        host: String,
    },
    /// The model was still writing at its limit of tokens.
    #[error("get the whole answer from {host}: it was cut at the limit of tokens")]
    CutShort {
        /// The server.
        host: String,
    },
    /// The answer did not come in time.
    #[error("get an answer from {host} within {deadline_ms} ms")]
    TimedOut {
        /// The server.
        host: String,
        /// The time there was.
        deadline_ms: u64,
    },
    /// Nobody wants the answer any more.
    #[error("wait for the answer of {host}: it was cancelled")]
    Cancelled {
        /// The server.
        host: String,
    },
}

impl AskError {
    /// Returns it as a failure of the provider; nothing where the provider did not fail.
    ///
    /// An answer that is none, a refusal and a cancelled wait are nothing that waiting would mend.
    #[must_use]
    pub fn failure(&self) -> Option<ProviderFailure> {
        let kind = match self {
            Self::Prepare { .. } | Self::Unreachable { .. } | Self::TimedOut { .. } => {
                ProviderFailureKind::Unreachable
            }
            Self::BrokenOff { .. } => ProviderFailureKind::TruncatedStream,
            Self::Unauthorised { .. } => ProviderFailureKind::Unauthorized,
            Self::OutOfCredit { .. } | Self::UnknownModel { .. } | Self::Rejected { .. } => {
                ProviderFailureKind::BadRequest
            }
            Self::RateLimited { .. } => ProviderFailureKind::RateLimited,
            Self::Overloaded { .. } => ProviderFailureKind::ServerError,
            Self::Empty { .. } => ProviderFailureKind::EmptyAnswer,
            Self::Refused { .. }
            | Self::Malformed { .. }
            | Self::CutShort { .. }
            | Self::Cancelled { .. } => return None,
        };
        let retry_after_ms = match self {
            Self::RateLimited { reset_after_ms, .. } => *reset_after_ms,
            Self::Overloaded { retry_after_ms, .. } => *retry_after_ms,
            _ => None,
        };
        Some(ProviderFailure {
            kind,
            message: format!("failed to {}", chain(self)),
            retry_after_ms,
        })
    }

    /// Returns what to do about it, if there is something.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Unauthorised { .. } => {
                "check the key: is it complete, and does it belong to \
                this server?"
            }
            Self::UnknownModel { .. } => "name a model that the server lists.",
            Self::Rejected { status: 404, .. } => "check the base URL: is its path correct?",
            Self::Unreachable { .. } => "check the address: is the server running?",
            Self::OutOfCredit { .. } => "add credit to the account, or use another judge.",
            Self::CutShort { .. } => "allow more output tokens.",
            _ => return None,
        };
        Some(text.to_owned())
    }

    /// Tells whether the server may have worked for this although it told no use.
    pub(crate) const fn may_have_cost(&self) -> bool {
        matches!(
            self,
            Self::BrokenOff { .. } | Self::TimedOut { .. } | Self::Cancelled { .. }
        )
    }
}
