//! What a judge answered.

use serde::{Deserialize, Serialize};

use crate::agent_end::ProviderFailure;
use crate::usage::Usage;

/// What asking a judge came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeRun {
    /// The agent that was asked.
    pub by: String,
    /// Its verdict, or why there is none.
    pub answer: JudgeAnswer,
    /// What it used.
    pub usage: Usage,
}

/// A judge's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub enum JudgeAnswer {
    /// A verdict in the required form.
    Verdict {
        /// The verdict.
        verdict: JudgeVerdict,
        /// The judge's reason, capped.
        reason: String,
    },
    /// Something that is not a verdict.
    Malformed {
        /// The beginning of what came, capped.
        text: String,
    },
    /// No answer.
    Unavailable(ProviderFailure),
}

/// A judge's verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgeVerdict {
    /// The criteria are met.
    Done,
    /// Something is missing that the agent can supply.
    Continue,
    /// A person is needed.
    Blocked,
    /// The criteria cannot be met.
    Impossible,
}

impl JudgeVerdict {
    /// Returns the verdict as judges write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Continue => "continue",
            Self::Blocked => "blocked",
            Self::Impossible => "impossible",
        }
    }
}
