//! What tokens of one model cost, in whole numbers.
//!
//! A price is in millionths of a US dollar for a million tokens, so no price list loses a digit.
//! Knows no models.

use kapi_settings::amount::parse_millionths;
use serde::{Deserialize, Serialize};

use crate::rules::tokens::TokenCounts;

/// Tokens that a price is for.
const TOKENS_PRICED: u128 = 1_000_000;

/// An amount that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "read {text:?} as US dollars: it must be a number such as 5 or 0.075, with at most six decimals"
)]
pub struct AmountError {
    /// What was given.
    pub text: String,
}

/// What a million tokens of each kind cost, in millionths of a US dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens that came from no cache.
    pub input: u64,
    /// Tokens written, reasoning included.
    pub output: u64,
    /// Tokens read from a cache.
    pub cache_read: u64,
    /// Tokens written to a cache.
    pub cache_write: u64,
}

impl Price {
    /// Returns the price of what costs nothing.
    #[must_use]
    pub const fn free() -> Self {
        Self {
            input: 0,
            output: 0,
            cache_read: 0,
            cache_write: 0,
        }
    }

    /// Returns what tokens cost, in millionths of a US dollar, rounded up.
    #[must_use]
    pub fn cost(&self, tokens: &TokenCounts) -> u64 {
        let parts = [
            (tokens.input, self.input),
            (tokens.output, self.output),
            (tokens.cache_read, self.cache_read),
            (tokens.cache_write, self.cache_write),
        ];
        let sum = parts.into_iter().fold(0_u128, |sum, (count, price)| {
            sum.saturating_add(u128::from(count) * u128::from(price))
        });
        u64::try_from(sum.div_ceil(TOKENS_PRICED)).unwrap_or(u64::MAX)
    }

    /// Returns the most that tokens can cost of which nobody knows what came from a cache or went
    /// to one.
    #[must_use]
    pub fn most(&self, read: u64, written: u64) -> u64 {
        let dearest = Self {
            input: self.input.max(self.cache_write).max(self.cache_read),
            ..*self
        };
        dearest.cost(&TokenCounts {
            input: read,
            output: written,
            ..TokenCounts::default()
        })
    }

    /// Returns how many tokens may be written for so many millionths of a US dollar.
    #[must_use]
    pub fn tokens_written_for(&self, usd_micros: u64) -> u64 {
        let tokens = (u128::from(usd_micros) * TOKENS_PRICED).checked_div(self.output.into());
        tokens.map_or(u64::MAX, |tokens| u64::try_from(tokens).unwrap_or(u64::MAX))
    }
}

/// Reads an amount of US dollars as millionths.
///
/// # Errors
/// When it is no plain decimal number, or finer than millionths.
pub fn parse_usd_micros(text: &str) -> Result<u64, AmountError> {
    parse_millionths(text).ok_or_else(|| AmountError {
        text: text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{Price, parse_usd_micros};
    use crate::rules::tokens::TokenCounts;

    const PRICE: Price = Price {
        input: 3_000_000,
        output: 15_000_000,
        cache_read: 300_000,
        cache_write: 3_750_000,
    };

    fn cost(input: u64, output: u64, cache_read: u64, cache_write: u64) -> u64 {
        PRICE.cost(&TokenCounts {
            input,
            output,
            cache_read,
            cache_write,
        })
    }

    #[test]
    fn each_kind_has_its_price_and_parts_of_a_millionth_count_as_one() {
        assert_eq!(cost(0, 0, 0, 0), 0);
        assert_eq!(cost(1_000_000, 0, 0, 0), 3_000_000);
        assert_eq!(cost(0, 1, 0, 0), 15);
        assert_eq!(cost(0, 0, 1, 0), 1);
        assert_eq!(cost(0, 0, 10, 0), 3);
        assert_eq!(cost(0, 0, 0, 1), 4);
        assert_eq!(cost(1_000, 500, 20_000, 4), 3_000 + 7_500 + 6_000 + 15);
        assert_eq!(cost(u64::MAX, u64::MAX, u64::MAX, u64::MAX), u64::MAX);
        assert_eq!(
            Price::free().cost(&TokenCounts {
                input: 9,
                ..TokenCounts::default()
            }),
            0
        );
    }

    #[test]
    fn dollars_are_read_to_the_millionth() {
        for (text, micros) in [
            ("5", 5_000_000),
            ("0.075", 75_000),
            ("0.000001", 1),
            ("18446744073709.551615", u64::MAX),
        ] {
            assert_eq!(parse_usd_micros(text), Ok(micros), "{text}");
        }
        for text in [
            "",
            ".",
            ".5",
            "5.",
            "-1",
            "+1",
            "1e3",
            "0.0000001",
            "1,5",
            "nan",
            "18446744073709.551616",
        ] {
            assert!(parse_usd_micros(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn parts_never_cost_less_than_the_whole(
            one in any::<[u32; 4]>(),
            other in any::<[u32; 4]>(),
        ) {
            let counts = |[input, output, cache_read, cache_write]: [u32; 4]| TokenCounts {
                input: input.into(),
                output: output.into(),
                cache_read: cache_read.into(),
                cache_write: cache_write.into(),
            };
            let (one, other) = (counts(one), counts(other));
            let mut both = one;
            both.add(&other);
            let parts = PRICE.cost(&one) + PRICE.cost(&other);
            prop_assert!(PRICE.cost(&both) <= parts && parts <= PRICE.cost(&both) + 1);
            prop_assert_eq!(both.total(), one.total() + other.total());
        }
    }
}
