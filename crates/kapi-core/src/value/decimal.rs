//! A number that is no whole number of 64 bits, kept as text and compared digit by digit.
//!
//! Comes from a double or from a larger whole number, and reads back as the same one. Does not
//! calculate.

use std::cmp::Ordering;
use std::fmt;

/// A number. Invariant: its text is the shortest plain form, `-12.5`: no exponent, no zero too many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal(String);

impl Decimal {
    /// Takes the text of a number that has the shortest plain form already.
    pub(super) fn from_plain(text: String) -> Option<Self> {
        let digits = text.strip_prefix('-').unwrap_or(&text);
        let is_plain = !digits.is_empty()
            && digits
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
            && digits.bytes().filter(|byte| *byte == b'.').count() <= 1;
        is_plain.then_some(Self(text))
    }

    /// Returns a whole number, to compare it with.
    pub(super) fn from_integer(number: i64) -> Self {
        Self(number.to_string())
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns its sign, its digits before the point and those after it.
    fn parts(&self) -> (bool, &str, &str) {
        let digits = self.0.strip_prefix('-');
        let (whole, fraction) = match digits.unwrap_or(&self.0).split_once('.') {
            Some(parts) => parts,
            None => (digits.unwrap_or(&self.0), ""),
        };
        (digits.is_some(), whole, fraction)
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let (is_negative, whole, fraction) = self.parts();
        let (is_other_negative, other_whole, other_fraction) = other.parts();
        let size = || {
            let length = whole.len().cmp(&other_whole.len());
            // Without zeros too many, longer is larger, and what is left is the order of the text.
            length
                .then_with(|| whole.cmp(other_whole))
                .then_with(|| fraction.cmp(other_fraction))
        };
        match (is_negative, is_other_negative) {
            (false, false) => size(),
            (true, true) => size().reverse(),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}
