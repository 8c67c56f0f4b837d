//! What a provider counted, kept apart by what each kind of token costs.
//!
//! The parts do not overlap. Knows no prices.

use kapi_core::usage::Usage;
use serde::{Deserialize, Serialize};

/// Tokens of one or more calls, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenCounts {
    /// Tokens read by the model that came from no cache.
    pub input: u64,
    /// Tokens written by the model, reasoning included.
    pub output: u64,
    /// Tokens read from a cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    /// Tokens read and written to a cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write: u64,
}

impl TokenCounts {
    /// Returns the counts of a usage that does not tell what came from a cache.
    ///
    /// All that was read counts as fresh, so its price is the most that it can have cost where
    /// reading from a cache is cheaper.
    #[must_use]
    pub const fn of_usage(usage: &Usage) -> Self {
        Self {
            input: usage.input_tokens,
            output: usage.output_tokens,
            cache_read: 0,
            cache_write: 0,
        }
    }

    /// Returns the counts of a provider that tells, of all it read, how much came from a cache.
    #[must_use]
    pub const fn with_cached(read: u64, cached: u64, output: u64) -> Self {
        let cached = if cached < read { cached } else { read };
        Self {
            input: read.saturating_sub(cached),
            output,
            cache_read: cached,
            cache_write: 0,
        }
    }

    /// Returns the larger of what was read, with its parts, and the larger of what was written.
    #[must_use]
    pub fn larger(&self, other: &Self) -> Self {
        let wider = if other.read() >= self.read() {
            other
        } else {
            self
        };
        Self {
            output: self.output.max(other.output),
            ..*wider
        }
    }

    /// Returns what these have beyond earlier ones. Together with those it is as much as there is
    /// now; what was first told as fresh and then as cached stays fresh.
    #[must_use]
    pub fn beyond(&self, earlier: &Self) -> Self {
        let read = self.read().saturating_sub(earlier.read());
        let cache_read = self.cache_read.saturating_sub(earlier.cache_read).min(read);
        let left = read.saturating_sub(cache_read);
        let cache_write = self.cache_write.saturating_sub(earlier.cache_write);
        let cache_write = cache_write.min(left);
        Self {
            input: left.saturating_sub(cache_write),
            output: self.output.saturating_sub(earlier.output),
            cache_read,
            cache_write,
        }
    }

    /// Returns the same as a usage of this cost; `None` where the cost is not known.
    #[must_use]
    pub const fn usage(&self, usd_micros: Option<u64>) -> Usage {
        Usage {
            input_tokens: self.read(),
            output_tokens: self.output,
            usd_micros,
            ..Usage::ZERO
        }
    }

    /// Returns everything that was read, cached or not.
    #[must_use]
    pub const fn read(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    /// Returns everything together.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.read().saturating_add(self.output)
    }

    /// Adds what was counted since.
    pub const fn add(&mut self, more: &Self) {
        self.input = self.input.saturating_add(more.input);
        self.output = self.output.saturating_add(more.output);
        self.cache_read = self.cache_read.saturating_add(more.cache_read);
        self.cache_write = self.cache_write.saturating_add(more.cache_write);
    }

    /// Tells whether nothing was counted.
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.total() == 0
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde asks for"
)]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::TokenCounts;

    const fn counts(input: u64, output: u64, cache_read: u64, cache_write: u64) -> TokenCounts {
        TokenCounts {
            input,
            output,
            cache_read,
            cache_write,
        }
    }

    #[test]
    fn parts_told_one_after_another_are_as_much_as_the_whole() {
        for reported in [
            vec![counts(9, 1, 300, 20), counts(0, 42, 0, 0)],
            vec![counts(100, 0, 0, 0), counts(40, 30, 60, 0)],
            vec![
                counts(10, 0, 5, 0),
                counts(10, 7, 50, 5),
                counts(30, 9, 50, 5),
            ],
        ] {
            let (mut seen, mut sum) = (TokenCounts::default(), TokenCounts::default());
            for one in &reported {
                let now = seen.larger(one);
                sum.add(&now.beyond(&seen));
                seen = now;
            }
            assert_eq!(
                (sum.read(), sum.output),
                (seen.read(), seen.output),
                "{reported:?}"
            );
        }
    }

    #[test]
    fn more_cannot_be_cached_than_was_read() {
        assert_eq!(TokenCounts::with_cached(100, 60, 5), counts(40, 5, 60, 0));
        assert_eq!(TokenCounts::with_cached(100, 160, 5), counts(0, 5, 100, 0));
    }
}
