//! Tokens and money, counted in whole units.
//!
//! Money is in millionths of a US dollar, so that sums are exact and comparable.

use serde::{Deserialize, Serialize};

/// What a model's provider counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Tokens read by the model, those read from a cache included.
    pub input_tokens: u64,
    /// Tokens written by the model, reasoning included.
    pub output_tokens: u64,
    /// Cost in millionths of a US dollar; `None` where the agent does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_micros: Option<u64>,
}

impl Usage {
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
    }

    /// Tells whether nothing was counted.
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.tokens() == 0 && matches!(self.usd_micros, None | Some(0))
    }
}
