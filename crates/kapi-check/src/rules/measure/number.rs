//! A finite number of a metric: read exactly as it was printed, written so that it reads back.
//!
//! Knows no unit.

use std::cmp::Ordering;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A finite number. Invariant: never infinite, never not a number, and zero has no sign.
#[derive(Debug, Clone, Copy)]
pub struct Number(f64);

impl Number {
    /// Takes a number that is finite.
    #[must_use]
    pub fn new(number: f64) -> Option<Self> {
        // Adding zero takes the sign from a zero.
        number.is_finite().then_some(Self(number + 0.0))
    }

    /// Reads a number as JavaScript's `Number` does: decimal with or without an exponent, or whole
    /// in the bases 16, 8 and 2.
    #[must_use]
    pub fn parse(token: &str) -> Option<Self> {
        let based = [
            ("0x", 16),
            ("0X", 16),
            ("0o", 8),
            ("0O", 8),
            ("0b", 2),
            ("0B", 2),
        ];
        for (prefix, base) in based {
            if let Some(digits) = token.strip_prefix(prefix) {
                return whole(digits, base).and_then(Self::new);
            }
        }
        let is_decimal = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
        if !token.bytes().all(is_decimal) {
            return None;
        }
        token.parse().ok().and_then(Self::new)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

fn whole(digits: &str, base: u32) -> Option<f64> {
    if digits.is_empty() {
        return None;
    }
    let add = |sum: f64, digit: char| {
        let digit = digit.to_digit(base)?;
        Some(sum.mul_add(f64::from(base), f64::from(digit)))
    };
    digits.chars().try_fold(0.0, add)
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The shortest text that reads back as the same number.
        fmt::Display::fmt(&self.0, out)
    }
}

// As text: a JSON parser may round a number by its last digit, and a log must fold to what was
// decided on.
impl Serialize for Number {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let found = Self::parse(&text);
        found.ok_or_else(|| D::Error::custom(format!("{text:?} is not a finite number")))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::Number;

    fn read(token: &str) -> Option<f64> {
        Number::parse(token).map(Number::get)
    }

    #[test]
    fn numbers_are_read_as_javascript_reads_them() {
        let cases = [
            ("12.5", 12.5),
            ("1e3", 1000.0),
            ("-5", -5.0),
            ("+5", 5.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("0x10", 16.0),
            ("0b11", 3.0),
            ("0o17", 15.0),
            ("-0", 0.0),
        ];
        for (token, expected) in cases {
            assert_eq!(read(token), Some(expected), "{token}");
        }
        for token in [
            "", "NaN", "nan", "Infinity", "inf", "-inf", "1_000", "1,000", "5ms", "0x", "-0x10",
            "0b12", "1e400", "e", ".", "+", "1e",
        ] {
            assert_eq!(read(token), None, "{token}");
        }
    }

    proptest! {
        #[test]
        fn a_number_reads_back_as_it_was_written(number in any::<f64>()) {
            if let Some(number) = Number::new(number) {
                assert_eq!(Number::parse(&number.to_string()), Some(number));
                let json = serde_json::to_string(&number).unwrap();
                assert_eq!(serde_json::from_str::<Number>(&json).unwrap(), number);
            }
        }
    }
}
