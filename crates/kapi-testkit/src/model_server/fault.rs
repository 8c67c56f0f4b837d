//! The failures that the scripted model can inject: which request, how often, what.
//! It does not know how a failure looks on the wire.

use serde::{Deserialize, Serialize};

/// One failure to inject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InjectedFault {
    /// The requests that are in danger.
    pub at: FaultTarget,
    /// How many of them fail.
    pub times: Times,
    /// Text that the prompt must contain; any prompt where absent.
    #[serde(rename = "match", default)]
    pub matching: Option<String>,
    /// What happens to them.
    pub kind: FaultKind,
}

/// The requests a fault may hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum FaultTarget {
    /// Requests that would play the step of this index.
    Step(usize),
    /// Requests that a judge rule would answer.
    Judge,
    /// Every request for an answer, side requests too.
    Any,
}

/// How often a fault fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Times {
    /// The first so many requests fail, later ones are answered.
    First(u32),
    /// Every request fails.
    Always,
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum FaultKind {
    /// An error status in the API's own shape.
    Status {
        /// The HTTP status.
        code: u16,
        /// The `retry-after` header in seconds, where one is sent.
        #[serde(default)]
        retry_after_s: Option<u64>,
    },
    /// No answer until the client gives up or the server ends.
    Hang,
    /// The right answer, late.
    Delay {
        /// How late.
        ms: u64,
    },
    /// Half of the answer, then silence until the client gives up or the server ends.
    Stall,
    /// Half of the answer, then a cut connection.
    Truncate,
    /// A whole answer that is not JSON.
    Malformed,
    /// A cut connection and not one byte.
    Disconnect,
    /// A valid answer with nothing in it.
    Empty,
    /// A valid answer with this much text in it.
    Huge {
        /// How much.
        bytes: usize,
    },
}

impl InjectedFault {
    /// Returns a fault for any prompt.
    pub fn new(at: FaultTarget, times: Times, kind: FaultKind) -> Self {
        Self {
            at,
            times,
            matching: None,
            kind,
        }
    }

    /// Returns an error status for the first so many requests of a step.
    pub fn status(code: u16, step: usize, times: u32) -> Self {
        let kind = FaultKind::Status {
            code,
            retry_after_s: None,
        };
        Self::new(FaultTarget::Step(step), Times::First(times), kind)
    }
}

impl FaultKind {
    /// Says whether the client still gets an answer it can use.
    pub(crate) fn is_answered(&self) -> bool {
        match self {
            Self::Delay { .. } | Self::Empty | Self::Huge { .. } => true,
            Self::Status { .. }
            | Self::Hang
            | Self::Stall
            | Self::Truncate
            | Self::Malformed
            | Self::Disconnect => false,
        }
    }
}
