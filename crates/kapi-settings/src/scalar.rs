//! What single values of settings may be: counts, durations, sizes, money, words.
//!
//! Each kind is read by one function, and its error says what to write instead.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, Visitor};

use crate::amount;

/// A single value as it stands in a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar<'a> {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Whole(i64),
    /// A number with decimals.
    Real(f64),
    /// Text.
    Text(&'a str),
}

/// Reads a single value.
///
/// `read` returns nothing for a value of another kind than `wanted`, and an error for one that
/// breaks a rule: what is wrong and, on a second line, what to do.
///
/// # Errors
/// Those, and when it is a list, a table or nothing.
pub fn scalar<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    wanted: &str,
    read: impl FnOnce(Scalar<'_>) -> Option<Result<T, String>>,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(ScalarReader { wanted, read })
}

/// Reads a text that is not blank, without the blanks around it.
///
/// # Errors
/// When it is something else, blank, or longer than `bytes_max`, and those of `read`: what is wrong
/// and, on a second line, what to do.
pub fn word<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    bytes_max: usize,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    scalar(deserializer, TEXT, |value| match value {
        Scalar::Text(text) => Some(short_text(text.trim(), bytes_max).and_then(read)),
        Scalar::Bool(_) | Scalar::Whole(_) | Scalar::Real(_) => None,
    })
}

const TEXT: &str = "text (in quotes if it looks like a number)";

fn short_text(text: &str, bytes_max: usize) -> Result<&str, String> {
    let what = match text {
        "" => "it is empty".to_owned(),
        text if text.len() > bytes_max => format!("it is longer than {bytes_max} bytes"),
        text if text.contains('\0') => "it contains a zero byte".to_owned(),
        text => return Ok(text),
    };
    Err(format!("{what}\ngive a short text, or remove the key"))
}

struct ScalarReader<'a, F> {
    wanted: &'a str,
    read: F,
}

impl<F> ScalarReader<'_, F> {
    fn given<E: serde::de::Error, T>(self, value: Scalar<'_>) -> Result<T, E>
    where
        F: FnOnce(Scalar<'_>) -> Option<Result<T, String>>,
    {
        let kind = match value {
            Scalar::Bool(_) => "true or false",
            Scalar::Whole(_) => "a whole number",
            Scalar::Real(_) => "a number with decimals",
            Scalar::Text(_) => "text",
        };
        match (self.read)(value) {
            Some(read) => read.map_err(E::custom),
            None => Err(E::custom(format!("it is {kind}\ngive {}", self.wanted))),
        }
    }
}

impl<F, T> Visitor<'_> for ScalarReader<'_, F>
where
    F: FnOnce(Scalar<'_>) -> Option<Result<T, String>>,
{
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.wanted)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<T, E> {
        self.given(Scalar::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<T, E> {
        self.given(Scalar::Whole(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<T, E> {
        match i64::try_from(value) {
            Ok(whole) => self.given(Scalar::Whole(whole)),
            Err(_) => Err(E::custom(format!(
                "{value} is too large\ngive {}",
                self.wanted
            ))),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<T, E> {
        self.given(Scalar::Real(value))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<T, E> {
        self.given(Scalar::Text(value))
    }
}

fn whole<'de, D: Deserializer<'de>>(deserializer: D, min: i64, max: i64) -> Result<i64, D::Error> {
    let wanted = format!("a whole number from {min} to {max}");
    scalar(deserializer, &wanted, |value| match value {
        Scalar::Whole(number) if (min..=max).contains(&number) => Some(Ok(number)),
        Scalar::Whole(number) => Some(Err(format!("{number} is out of range\ngive {wanted}"))),
        Scalar::Bool(_) | Scalar::Real(_) | Scalar::Text(_) => None,
    })
}

/// A whole number between two others, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole<const MIN: i64, const MAX: i64>(pub i64);

impl<'de, const MIN: i64, const MAX: i64> Deserialize<'de> for Whole<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        whole(deserializer, MIN, MAX).map(Self)
    }
}

/// A count between two others, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangedCount<const MIN: u32, const MAX: u32>(pub u32);

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for RangedCount<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = whole(deserializer, i64::from(MIN), i64::from(MAX))?;
        u32::try_from(number).map(Self).map_err(D::Error::custom)
    }
}

/// Milliseconds between two limits, both included: a whole number of seconds, or a text with its
/// unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Millis<const MIN: u64, const MAX: u64>(pub u64);

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Millis<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wanted = match MAX {
            u64::MAX => "seconds, or a duration such as 90s, 15m, 2h or 1d".to_owned(),
            max => format!(
                "{} to {} seconds, or a duration such as 90s, 15m, 2h or 1d",
                MIN.div_ceil(1_000),
                max / 1_000
            ),
        };
        let read = |text: &str| match amount::parse_duration_ms(text) {
            Ok(ms) if (MIN..=MAX).contains(&ms) => Ok(Self(ms)),
            Ok(_) => Err(format!("{text} is out of range\ngive {wanted}")),
            Err(_) => Err(format!("{text:?} is not a duration\ngive {wanted}")),
        };
        scalar(deserializer, &wanted, |value| match value {
            Scalar::Whole(seconds) => Some(read(&seconds.to_string())),
            Scalar::Text(text) => Some(read(text)),
            Scalar::Bool(_) | Scalar::Real(_) => None,
        })
    }
}

/// A text that is not blank, without the blanks around it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrimmedText<const BYTES_MAX: usize = { 16 * 1024 }>(pub String);

impl<'de, const BYTES_MAX: usize> Deserialize<'de> for TrimmedText<BYTES_MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word(deserializer, BYTES_MAX, |text| Ok(Self(text.to_owned())))
    }
}

/// A text that is not blank, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NonBlankText(pub String);

impl<'de> Deserialize<'de> for NonBlankText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        scalar(deserializer, TEXT, |value| match value {
            Scalar::Text(text) => Some(match short_text(text.trim(), usize::MAX) {
                Ok(_) => Ok(Self(text.to_owned())),
                Err(error) => Err(error),
            }),
            Scalar::Bool(_) | Scalar::Whole(_) | Scalar::Real(_) => None,
        })
    }
}

/// The text of a number as it is written, so that nothing of it is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberText(pub String);

impl<'de> Deserialize<'de> for NumberText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        scalar(deserializer, "a number", |value| written(value).map(Ok)).map(Self)
    }
}

fn written(value: Scalar<'_>) -> Option<String> {
    match value {
        Scalar::Whole(number) => Some(number.to_string()),
        Scalar::Real(number) => Some(number.to_string()),
        Scalar::Text(text) => Some(text.trim().to_owned()),
        Scalar::Bool(_) => None,
    }
}

/// Millionths of a US dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsdMicros(pub u64);

impl<'de> Deserialize<'de> for UsdMicros {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wanted = "US dollars such as 5 or 0.25, with at most six decimals";
        let read = |text: String| match amount::parse_usd_micros(&text) {
            Ok(micros) => Ok(Self(micros)),
            Err(_) => Err(format!("{text:?} is not an amount of money\ngive {wanted}")),
        };
        scalar(deserializer, wanted, |value| written(value).map(read))
    }
}

/// A number of bytes: a whole number, or a text with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteCount(pub u64);

impl<'de> Deserialize<'de> for ByteCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wanted = "a size such as 512m or 8g";
        let read = |text: &str| match amount::parse_bytes(text) {
            Ok(bytes) => Ok(Self(bytes)),
            Err(_) => Err(format!("{text:?} is not a size\ngive {wanted}")),
        };
        scalar(deserializer, wanted, |value| match value {
            Scalar::Whole(number) => Some(read(&number.to_string())),
            Scalar::Text(text) => Some(read(text)),
            Scalar::Bool(_) | Scalar::Real(_) => None,
        })
    }
}

/// Thousandths of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuMillis(pub u64);

impl<'de> Deserialize<'de> for CpuMillis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wanted = "0.01 to 1024 processors";
        let read = |text: String| match amount::parse_cpu_millis(&text) {
            Ok(millis) => Ok(Self(millis)),
            Err(_) => Err(format!("{text} is out of range\ngive {wanted}")),
        };
        scalar(deserializer, wanted, |value| written(value).map(read))
    }
}
