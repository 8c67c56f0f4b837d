//! How an agent's turn ended, and what came of it.
//!
//! Text in here is foreign: it is capped before it arrives and never parsed with authority.

use serde::{Deserialize, Serialize};

use crate::usage::Usage;

/// How an agent's turn went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRun {
    /// How it ended.
    pub end: AgentEnd,
    /// What the agent claims of the goal, if it claims anything.
    pub claim: Option<Claim>,
    /// Its last message, capped.
    pub message: String,
    /// The session to resume next turn.
    pub session: Option<String>,
    /// What it used beyond what was already reported while it ran.
    pub usage: Usage,
    /// How many tools it used.
    pub tools: u32,
    /// The isolation it really had, layer by layer, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// What its tools amount to (pi-until-done: progress signals); `None` where they cannot be
    /// seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<u32>,
}

/// An agent's word about the goal: noted, never evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "claim", rename_all = "snake_case", deny_unknown_fields)]
pub enum Claim {
    /// It says the goal is reached.
    Done,
    /// It says it cannot go on without a person.
    Blocked {
        /// Why.
        reason: String,
    },
}

/// The named ways an agent process can end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case", deny_unknown_fields)]
pub enum AgentEnd {
    /// Its turn is over.
    Finished,
    /// Its model refused the task.
    Refused,
    /// It stopped at a limit of its own.
    LimitReached,
    /// It exited without saying that its turn is over.
    Crashed {
        /// The exit code, or 128 plus the signal.
        code: i32,
    },
    /// It was killed because it used more of the machine than it may.
    OutOfResources {
        /// Which: `memory`, `disk`.
        resource: String,
        /// The limit, for people: `8 GiB`.
        limit: String,
    },
    /// It was killed at the turn's time limit.
    DeadlinePassed,
    /// It was killed after a long silence.
    IdlePassed,
    /// Its provider failed; no turn was had.
    Provider(ProviderFailure),
}

/// A failure of the model's provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderFailure {
    /// What kind of failure.
    pub kind: ProviderFailureKind,
    /// What was said, capped.
    pub message: String,
    /// Milliseconds the provider asks us to wait.
    pub retry_after_ms: Option<u64>,
}

/// Kinds of provider failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderFailureKind {
    /// HTTP 429 or a quota message.
    RateLimited,
    /// HTTP 5xx.
    ServerError,
    /// No connection.
    Unreachable,
    /// The answer broke off.
    TruncatedStream,
    /// An answer with no content.
    EmptyAnswer,
    /// HTTP 401 or 403: waiting will not help.
    Unauthorized,
    /// Another 4xx, such as an unknown model: waiting will not help.
    BadRequest,
}

impl ProviderFailureKind {
    /// Tells whether the same request may succeed later.
    #[must_use]
    pub const fn may_pass(self) -> bool {
        match self {
            Self::RateLimited
            | Self::ServerError
            | Self::Unreachable
            | Self::TruncatedStream
            | Self::EmptyAnswer => true,
            Self::Unauthorized | Self::BadRequest => false,
        }
    }

    /// Returns the kind in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::RateLimited => "rate limited",
            Self::ServerError => "server error",
            Self::Unreachable => "unreachable",
            Self::TruncatedStream => "answer was cut off",
            Self::EmptyAnswer => "empty answer",
            Self::Unauthorized => "not authorized",
            Self::BadRequest => "request refused",
        }
    }
}
