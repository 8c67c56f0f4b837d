//! Amounts of what is limited for a workflow as a whole, and what a person adds to them.
//!
//! Knows no workflow; what one has used stands in [`crate::rules::spent`].

use kapi_core::usage::Usage;
use kapi_goal::rules::plan::task::PlanTaskId;
use serde::{Deserialize, Serialize};

/// What a person added to the limits since the start, all together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitRaises {
    /// Tokens.
    pub tokens: u64,
    /// Millionths of a US dollar.
    pub usd_micros: u64,
    /// Milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wall_ms: u64,
}

/// Tells whether nothing is to be written: what came later is not in the logs of before.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
pub(crate) const fn is_zero(ms: &u64) -> bool {
    *ms == 0
}

impl LimitRaises {
    /// Adds what was added once more.
    pub const fn add(&mut self, more: &Self) {
        self.tokens = self.tokens.saturating_add(more.tokens);
        self.usd_micros = self.usd_micros.saturating_add(more.usd_micros);
        self.wall_ms = self.wall_ms.saturating_add(more.wall_ms);
    }

    /// Tells whether nothing was added.
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.tokens == 0 && self.usd_micros == 0 && self.wall_ms == 0
    }

    /// Tells whether it goes further than another in anything.
    #[must_use]
    pub const fn exceeds(&self, other: &Self) -> bool {
        self.tokens > other.tokens
            || self.usd_micros > other.usd_micros
            || self.wall_ms > other.wall_ms
    }
}

/// Amounts of everything that is limited; `None` is no limit of that kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amounts {
    /// Tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_micros: Option<u64>,
}

impl Amounts {
    /// Tells whether nothing is limited.
    #[must_use]
    pub const fn is_unlimited(&self) -> bool {
        self.tokens.is_none() && self.usd_micros.is_none()
    }

    /// Tells whether something of it is nothing.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.tokens == Some(0) || self.usd_micros == Some(0)
    }

    /// Returns what is left after so much.
    #[must_use]
    pub fn less(&self, used: &Usage) -> Self {
        let usd_micros = used.usd_micros.unwrap_or(0);
        Self {
            tokens: self.tokens.map(|n| n.saturating_sub(used.tokens())),
            usd_micros: self.usd_micros.map(|n| n.saturating_sub(usd_micros)),
        }
    }

    /// Returns what is left when so much of it is set aside; what is not limited there sets nothing
    /// aside.
    #[must_use]
    pub fn without(&self, aside: &Self) -> Self {
        let less = |have: Option<u64>, aside: Option<u64>| {
            have.map(|have| have.saturating_sub(aside.unwrap_or(0)))
        };
        Self {
            tokens: less(self.tokens, aside.tokens),
            usd_micros: less(self.usd_micros, aside.usd_micros),
        }
    }

    /// Returns one of so many equal parts; nothing only where there is nothing.
    #[must_use]
    pub fn part(&self, n_parts: u64) -> Self {
        let part = |n: u64| (n / n_parts.max(1)).max(n.min(1));
        Self {
            tokens: self.tokens.map(part),
            usd_micros: self.usd_micros.map(part),
        }
    }

    /// Returns so much more than somebody has used already.
    #[must_use]
    pub fn beyond(&self, used: &Usage) -> Self {
        let usd_micros = used.usd_micros.unwrap_or(0);
        Self {
            tokens: self.tokens.map(|n| n.saturating_add(used.tokens())),
            usd_micros: self.usd_micros.map(|n| n.saturating_add(usd_micros)),
        }
    }
}

/// What a goal of a workflow has used, by its own account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoalAccount {
    /// The task it is of.
    pub task: PlanTaskId,
    /// The try at that task, from 1.
    pub attempt: u32,
    /// Everything it used so far.
    pub used: Usage,
}
