//! Tokens and money, counted in whole units.
//!
//! Money is in millionths of a US dollar, so that sums are exact and comparable.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a model's provider counted.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Tokens read by the model, those read from a cache included.
    pub input_tokens: u64,
    /// Tokens written by the model, reasoning included.
    pub output_tokens: u64,
    /// Cost in millionths of a US dollar; `None` where the agent does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_micros: Option<u64>,
    /// What of it is not certain.
    #[serde(default, skip_serializing_if = "Doubt::is_none")]
    pub doubt: Doubt,
}

/// What of a sum is not certain: parts that are the most they can have been, and parts that have
/// no price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Doubt {
    /// Calls whose provider did not tell all of their use, such as those that were broken off.
    #[serde(skip_serializing_if = "is_zero")]
    pub calls: u64,
    /// The tokens of the sum that are the most these calls can have used beyond what was told.
    #[serde(skip_serializing_if = "is_zero")]
    pub tokens: u64,
    /// The millionths of a US dollar of the sum that these tokens cost.
    #[serde(skip_serializing_if = "is_zero")]
    pub usd_micros: u64,
    /// Calls of models whose price nobody knows; the sum of money lacks them.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpriced_calls: u64,
}

impl Doubt {
    /// No doubt at all.
    pub const NONE: Self = Self {
        calls: 0,
        tokens: 0,
        usd_micros: 0,
        unpriced_calls: 0,
    };

    /// Adds what is not certain of another part.
    pub const fn add(&mut self, more: &Self) {
        self.calls = self.calls.saturating_add(more.calls);
        self.tokens = self.tokens.saturating_add(more.tokens);
        self.usd_micros = self.usd_micros.saturating_add(more.usd_micros);
        self.unpriced_calls = self.unpriced_calls.saturating_add(more.unpriced_calls);
    }

    /// Tells whether all is certain.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.calls == 0 && self.tokens == 0 && self.usd_micros == 0 && self.unpriced_calls == 0
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde asks for"
)]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl fmt::Debug for Usage {
    /// Shows a doubt only where there is one, as it is written.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = out.debug_struct("Usage");
        shown
            .field("input_tokens", &self.input_tokens)
            .field("output_tokens", &self.output_tokens)
            .field("usd_micros", &self.usd_micros);
        if !self.doubt.is_none() {
            shown.field("doubt", &self.doubt);
        }
        shown.finish()
    }
}

impl Usage {
    /// Nothing used.
    pub const ZERO: Self = Self {
        input_tokens: 0,
        output_tokens: 0,
        usd_micros: None,
        doubt: Doubt::NONE,
    };

    /// Returns input and output together.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Adds what was used since; an unknown cost adds nothing.
    pub const fn add(&mut self, more: &Self) {
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        self.usd_micros = match (self.usd_micros, more.usd_micros) {
            (Some(have), Some(new)) => Some(have.saturating_add(new)),
            (have, None) => have,
            (None, new) => new,
        };
        self.doubt.add(&more.doubt);
    }

    /// Tells whether nothing was counted.
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.tokens() == 0 && matches!(self.usd_micros, None | Some(0)) && self.doubt.is_none()
    }
}
