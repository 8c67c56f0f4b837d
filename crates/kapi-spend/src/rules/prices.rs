//! Which price holds for a model on a day: the person's own word, then the list that comes along.
//!
//! A name matches a row when it is the row's name, or that name and a date or a word that marks a
//! version of the same model. A newer model with a longer name is another model: a price nobody
//! knows stays unknown, and is never nought.

use std::collections::BTreeMap;

use crate::rules::day::Day;
use crate::rules::price::{AmountError, Price, parse_usd_micros};
use crate::rules::price_table::{PriceRow, ROWS};
use crate::rules::tokens::TokenCounts;

/// Digits from which on a number in a name is a date or a serial and not a generation.
const DATE_DIGITS_MIN: usize = 3;
/// The name that stands for every model of a provider.
const ANY: &str = "*";
/// Millionths of a US dollar in a thousandth.
const MICROS_PER_MILL: u64 = 1_000;

/// A price that a person wrote down wrongly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// The name is not that of a model of a provider.
    #[error("read {name:?} as a model: it must have the form provider/model")]
    Name {
        /// What was given.
        name: String,
    },
    /// An amount cannot be read.
    #[error("read the price `{key}` of {name:?}")]
    Amount {
        /// The model.
        name: String,
        /// Which of its amounts.
        key: &'static str,
        /// Why.
        #[source]
        source: AmountError,
    },
}

/// A price as a person writes it: US dollars for a million tokens, as decimal text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenPrice<'a> {
    /// Tokens that came from no cache.
    pub input: &'a str,
    /// Tokens written.
    pub output: &'a str,
    /// Tokens read from a cache; as input where it is left out.
    pub cache_read: Option<&'a str>,
    /// Tokens written to a cache; as input where it is left out.
    pub cache_write: Option<&'a str>,
}

/// Every price that is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prices {
    /// The person's own, by provider and model; they hold on every day.
    own: BTreeMap<(String, String), Price>,
}

/// A price and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriceMatch {
    /// The price.
    pub price: Price,
    /// Where it was read; "your configuration" for the person's own.
    pub source: &'static str,
    /// The day from which it holds; none for the person's own.
    pub from: Option<Day>,
}

impl Prices {
    /// Returns the prices that come with Kapi.
    #[must_use]
    pub fn built_in() -> Self {
        Self::default()
    }

    /// Takes a price that a person wrote for `provider/model`.
    ///
    /// # Errors
    /// When the name or an amount cannot be read; nothing has changed then.
    pub fn set_own(&mut self, name: &str, written: &WrittenPrice<'_>) -> Result<(), PriceError> {
        let parts = name.split_once('/');
        let Some((provider, model)) = parts.filter(|(provider, model)| {
            let is_word = |word: &str| !word.is_empty() && !word.contains(char::is_whitespace);
            is_word(provider) && is_word(model)
        }) else {
            return Err(PriceError::Name {
                name: name.to_owned(),
            });
        };
        let amount = |key: &'static str, text: &str| {
            parse_usd_micros(text).map_err(|source| PriceError::Amount {
                name: name.to_owned(),
                key,
                source,
            })
        };
        let cached = |key, text: Option<&str>| amount(key, text.unwrap_or(written.input));
        let price = Price {
            input: amount("input", written.input)?,
            output: amount("output", written.output)?,
            cache_read: cached("cache_read", written.cache_read)?,
            cache_write: cached("cache_write", written.cache_write)?,
        };
        self.own
            .insert((provider.to_owned(), model.to_owned()), price);
        Ok(())
    }

    /// Returns the price of a model on a day; `None` when nobody knows it.
    #[must_use]
    pub fn find(&self, provider: &str, model: &str, day: Day) -> Option<PriceMatch> {
        let model = model.strip_prefix("models/").unwrap_or(model);
        self.find_own(provider, model)
            .or_else(|| find_built_in(provider, model, day))
    }

    /// Returns what tokens of a model cost on a day, in millionths of a US dollar; `None` when
    /// nobody knows.
    #[must_use]
    pub fn cost(&self, provider: &str, model: &str, day: Day, tokens: &TokenCounts) -> Option<u64> {
        let found = self.find(provider, model, day)?;
        Some(found.price.cost(tokens))
    }

    fn find_own(&self, provider: &str, model: &str) -> Option<PriceMatch> {
        let rows = self.own.iter().filter(|((of, _), _)| of == provider);
        let fitting = rows.filter(|((_, name), _)| fits(name, model));
        let (_, price) = fitting.max_by_key(|((_, name), _)| weight(name))?;
        Some(PriceMatch {
            price: *price,
            source: "your configuration",
            from: None,
        })
    }
}

fn find_built_in(provider: &str, model: &str, day: Day) -> Option<PriceMatch> {
    let is_for =
        |row: &&PriceRow| row.provider == provider && row.from <= day && fits(row.model, model);
    let rows = ROWS.iter().filter(is_for);
    let row = rows.max_by_key(|row| (weight(row.model), row.from))?;
    let [input, output, cache_read, cache_write] =
        row.mills.map(|mills| mills.saturating_mul(MICROS_PER_MILL));
    Some(PriceMatch {
        price: Price {
            input,
            output,
            cache_read,
            cache_write,
        },
        source: row.source,
        from: Some(row.from),
    })
}

/// A longer name says more, and `*` says nothing.
fn weight(name: &str) -> usize {
    if name == ANY { 0 } else { name.len() }
}

fn fits(name: &str, model: &str) -> bool {
    name == ANY || model.strip_prefix(name).is_some_and(is_version)
}

/// Tells whether the rest of a name only says which issue of the same model is meant.
fn is_version(rest: &str) -> bool {
    const MARKS: [&str; 4] = ["latest", "preview", "exp", "customtools"];
    if rest.is_empty() {
        return true;
    }
    if !rest.starts_with(['-', '@', ':']) {
        return false;
    }
    let is_number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
    let words = || rest.split(['-', '@', ':']).filter(|word| !word.is_empty());
    let n_digits: usize = words().filter(is_number).map(str::len).sum();
    let is_dated = n_digits == 0 || n_digits >= DATE_DIGITS_MIN;
    is_dated && words().all(|word| is_number(&word) || MARKS.contains(&word))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{PriceError, Prices, WrittenPrice};
    use crate::rules::day::Day;
    use crate::rules::price_table::ROWS;
    use crate::rules::tokens::TokenCounts;

    const TODAY: Day = Day::of_date(2026, 11, 22);

    fn input(provider: &str, model: &str) -> Option<u64> {
        let found = Prices::built_in().find(provider, model, TODAY);
        found.map(|found| found.price.input)
    }

    #[test]
    fn a_model_is_found_by_its_name_with_or_without_a_date() {
        for (provider, model, mills) in [
            ("anthropic", "claude-sonnet-4-5", 3_000),
            ("anthropic", "claude-sonnet-4-5-20250929", 3_000),
            ("anthropic", "claude-sonnet-4-5@20250929", 3_000),
            ("anthropic", "claude-3-5-haiku-latest", 800),
            ("anthropic", "claude-opus-4-20250514", 15_000),
            ("anthropic", "claude-opus-4-7", 5_000),
            ("anthropic", "claude-opus-5-5", 4_000),
            ("openai", "gpt-5-mini-2025-08-07", 250),
            ("openai", "gpt-5.4", 2_500),
            ("gemini", "gemini-2.5-flash-preview-09-2025", 300),
            ("gemini", "models/gemini-2.5-flash-lite", 100),
            ("gemini", "gemini-3-pro-preview", 2_000),
            ("gemini", "gemini-2.5-pro-001", 1_250),
            ("subscription", "whatever", 0),
        ] {
            assert_eq!(input(provider, model), Some(mills * 1_000), "{model}");
        }
    }

    #[test]
    fn another_model_has_no_known_price_and_no_cost() {
        for (provider, model) in [
            ("anthropic", "claude-sonnet-4-9"),
            ("anthropic", "claude-opus-6"),
            ("anthropic", "claude-sonnet-5-5-fast"),
            ("openai", "gpt-5-ultra"),
            ("openai", "gpt-5.9"),
            ("openai", "gpt-55"),
            ("openai", "claude-opus-5"),
            ("openrouter", "anthropic/claude-opus-5"),
            ("gemini", "gemini-2.5-pro-tts"),
            ("anthropic", ""),
            ("", "claude-opus-5"),
            ("local", "qwen3-coder:30b"),
        ] {
            assert_eq!(input(provider, model), None, "{model}");
            let cost = Prices::built_in().cost(provider, model, TODAY, &TokenCounts::default());
            assert_eq!(cost, None, "not even no tokens have a price: {model}");
        }
    }

    #[test]
    fn a_price_holds_from_its_day_on() {
        let cached = |day| {
            let found = Prices::built_in().find("anthropic", "claude-sonnet-5-5", day);
            found.map(|found| found.price.cache_read)
        };
        assert_eq!(cached(Day::of_date(2026, 9, 1)), None);
        assert_eq!(cached(Day::of_date(2026, 10, 6)), Some(200_000));
        assert_eq!(cached(Day::of_date(2026, 10, 7)), Some(100_000));
        assert_eq!(cached(TODAY), Some(100_000));
    }

    #[test]
    fn the_persons_price_comes_first() {
        let mut prices = Prices::built_in();
        let written = WrittenPrice {
            input: "0.5",
            output: "1.25",
            cache_read: Some("0"),
            cache_write: None,
        };
        prices.set_own("anthropic/claude-opus-5", &written).unwrap();
        prices.set_own("openrouter/z/glm-5", &written).unwrap();
        for (provider, model) in [
            ("anthropic", "claude-opus-5"),
            ("anthropic", "claude-opus-5-20261001"),
            ("openrouter", "z/glm-5"),
        ] {
            let found = prices.find(provider, model, TODAY).unwrap();
            let price = found.price;
            assert_eq!((price.input, price.output), (500_000, 1_250_000));
            assert_eq!((price.cache_read, price.cache_write), (0, 500_000));
            assert_eq!((found.source, found.from), ("your configuration", None));
        }
        let other = prices.find("anthropic", "claude-opus-5-5", TODAY).unwrap();
        assert_eq!(other.price.input, 4_000_000);
        prices.set_own("openrouter/*", &written).unwrap();
        assert!(prices.find("openrouter", "anything", TODAY).is_some());
        let free = WrittenPrice {
            input: "0",
            output: "0",
            cache_read: None,
            cache_write: None,
        };
        prices.set_own("local/*", &free).unwrap();
        let tokens = TokenCounts {
            input: 9_000,
            ..TokenCounts::default()
        };
        let cost = prices.cost("local", "qwen3-coder:30b", TODAY, &tokens);
        assert_eq!(cost, Some(0), "the person said so");
    }

    #[test]
    fn a_price_written_wrongly_is_refused_and_named() {
        let mut prices = Prices::built_in();
        let good = WrittenPrice {
            input: "1",
            output: "2",
            cache_read: None,
            cache_write: None,
        };
        for name in ["", "claude", "/m", "p/", "a b/c", "a/b c"] {
            let refused = prices.set_own(name, &good);
            assert!(matches!(refused, Err(PriceError::Name { .. })), "{name}");
        }
        let bad = WrittenPrice {
            cache_read: Some("-1"),
            ..good
        };
        let refused = prices.set_own("a/b", &bad);
        assert!(matches!(
            refused,
            Err(PriceError::Amount {
                key: "cache_read",
                ..
            })
        ));
        assert_eq!(prices, Prices::built_in());
    }

    #[test]
    fn the_list_is_sound() {
        let mut seen = BTreeSet::new();
        for row in ROWS {
            assert!(seen.insert((row.provider, row.model, row.from)), "{row:?}");
            assert!(
                row.source.contains("read 20") || row.mills == [0; 4],
                "{row:?}"
            );
            let [input, output, cache_read, _] = row.mills;
            assert!(cache_read <= input && input <= output, "{row:?}");
        }
    }
}
