//! How urgent a task is, how often it is tried again, and what it may spend.
//!
//! Values alone: a request carries them, a loop's definition names them.

use serde::{Deserialize, Serialize};

/// What one attempt may use; what is absent has no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskBudget {
    /// Tokens, read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_micros: Option<u64>,
    /// Wall clock in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

impl TaskBudget {
    /// Tells whether nothing is limited.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.tokens.is_none() && self.usd_micros.is_none() && self.time_ms.is_none()
    }
}

/// How urgent a task is. One that waits gains a step every quarter of an hour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// When nothing else waits.
    Low,
    /// As everything.
    #[default]
    Normal,
    /// Before everything else.
    High,
}

impl Priority {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    pub(crate) const fn is_normal(&self) -> bool {
        matches!(self, Self::Normal)
    }

    /// Returns the step, the higher the more urgent.
    #[must_use]
    pub const fn step(self) -> u64 {
        match self {
            Self::Low => 0,
            Self::Normal => 1,
            Self::High => 2,
        }
    }
}

/// When and how often a failed attempt is tried again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// How often at most.
    pub times: u32,
    /// The pause before the first, in milliseconds; each further one is twice as long.
    pub backoff_ms: u64,
    /// The longest pause, in milliseconds.
    pub backoff_ms_max: u64,
}

impl Retry {
    /// What is not written must read back as it was, also where it comes to nothing.
    pub(crate) fn is_unsaid(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the pause before the retry with this number, from 1.
    #[must_use]
    pub fn pause_ms(&self, number: u32) -> u64 {
        let doublings = number.saturating_sub(1).min(32);
        let pause = self.backoff_ms.saturating_mul(1_u64 << doublings);
        pause.min(self.backoff_ms_max)
    }
}
