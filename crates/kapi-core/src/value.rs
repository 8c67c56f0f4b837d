//! A value as JSON and YAML have it: what a loop is given, what an event carries, what a file says.
//!
//! Equal values have one form: `1.0` is `1`, and a number with decimals is kept as the shortest text
//! that names it, so that nothing is rounded when values are compared. Knows no file and no line.

pub mod decimal;
mod json;
mod serial;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use crate::value::decimal::Decimal;

/// A value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum KernelValue {
    /// Nothing.
    #[default]
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Decimal(Decimal),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Self>),
    /// A table, in the order of its keys.
    Map(BTreeMap<String, Self>),
}

impl KernelValue {
    /// Returns a number that a parser read as binary floating point; `None` for what is no number.
    #[must_use]
    pub fn from_float(number: f64) -> Option<Self> {
        if !number.is_finite() {
            return None;
        }
        // The shortest text that names the number, without an exponent.
        let text = number.to_string();
        let whole = text.parse().ok().map(KernelValue::Integer);
        whole.or_else(|| Decimal::from_plain(text).map(KernelValue::Decimal))
    }

    /// Reads a number as it is written: digits, before them perhaps a minus, after them perhaps a
    /// point and digits.
    #[must_use]
    pub fn parse_number(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_digits =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        match text.parse() {
            Ok(number) => Some(Self::Integer(number)),
            Err(_) => text.parse().ok().and_then(Self::from_float),
        }
    }

    /// Looks up a dotted path, `a.b.0`: keys of tables and places in lists, from 0.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, Self::child)
    }

    /// Returns what a table has under a key, or a list at a place.
    #[must_use]
    pub fn child<'a>(&'a self, key: &str) -> Option<&'a Self> {
        match self {
            Self::Map(entries) => entries.get(key),
            Self::List(items) => {
                let is_plain = key == "0" || !key.starts_with(['0', '+']);
                let location: usize = key.parse().ok().filter(|_| is_plain)?;
                items.get(location)
            }
            Self::Null | Self::Bool(_) | Self::Integer(_) | Self::Decimal(_) | Self::Text(_) => {
                None
            }
        }
    }

    /// Tells whether it counts as true where only true or false is asked: nothing, `false`, zero
    /// and the empty text do not.
    #[must_use]
    pub fn is_truthy(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(is_true) => *is_true,
            Self::Integer(number) => *number != 0,
            Self::Text(text) => !text.is_empty(),
            Self::Decimal(_) | Self::List(_) | Self::Map(_) => true,
        }
    }

    /// Orders two numbers by what they are worth, or two texts as ECMAScript does; `None` for
    /// anything else.
    #[must_use]
    pub fn order(&self, other: &Self) -> Option<Ordering> {
        if let (Self::Text(left), Self::Text(right)) = (self, other) {
            return Some(left.encode_utf16().cmp(right.encode_utf16()));
        }
        Some(self.number()?.cmp(&other.number()?))
    }

    /// Names what it is, for a person.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "true or false",
            Self::Integer(_) => "a whole number",
            Self::Decimal(_) => "a number with decimals",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a table",
        }
    }

    /// Returns it as JSON on one line without blanks.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = String::new();
        json::write(self, &mut text);
        text
    }

    fn number(&self) -> Option<Decimal> {
        match self {
            Self::Integer(number) => Some(Decimal::from_integer(*number)),
            Self::Decimal(number) => Some(number.clone()),
            Self::Null | Self::Bool(_) | Self::Text(_) | Self::List(_) | Self::Map(_) => None,
        }
    }
}

impl fmt::Display for KernelValue {
    /// Writes it as a template inserts it: text bare, everything else as JSON.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => out.write_str(text),
            Self::Null
            | Self::Bool(_)
            | Self::Integer(_)
            | Self::Decimal(_)
            | Self::List(_)
            | Self::Map(_) => out.write_str(&self.to_json()),
        }
    }
}

impl From<&str> for KernelValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

#[cfg(test)]
mod tests;
