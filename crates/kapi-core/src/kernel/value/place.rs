//! Reading a value strictly: every key known, every kind right, every fault with its place.
//!
//! The place is a path of keys; whoever knows the file turns it into a line.

use std::collections::BTreeMap;
use std::fmt;

use crate::kernel::value::Value;

/// The most letters by which an unknown key may differ from the one that was meant.
const TYPO_MAX: usize = 3;

/// What is wrong in a value, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read {}: {what}", At(at))]
pub struct PlaceFault {
    /// The keys and places in lists that lead there; empty for the whole value.
    pub at: Vec<String>,
    /// The rule it breaks.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

struct At<'a>(&'a [String]);

impl fmt::Display for At<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return out.write_str("the settings");
        }
        write!(out, "`{}`", self.0.join("."))
    }
}

/// A value and the keys that lead to it.
#[derive(Debug, Clone)]
pub struct Place<'a> {
    /// The value.
    pub value: &'a Value,
    /// The keys and places in lists that lead there.
    pub at: Vec<String>,
}

impl<'a> Place<'a> {
    /// Begins at a value.
    #[must_use]
    pub const fn root(value: &'a Value) -> Self {
        Self {
            value,
            at: Vec::new(),
        }
    }

    /// Returns a fault at this place.
    #[must_use]
    pub fn fault(&self, what: impl Into<String>, remedy: impl Into<String>) -> PlaceFault {
        PlaceFault {
            at: self.at.clone(),
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    fn is_not(&self, wanted: &str) -> PlaceFault {
        let what = format!("it must be {wanted}, not {}", self.value.kind());
        self.fault(what, format!("write {wanted} here"))
    }

    fn below(&self, key: &str, value: &'a Value) -> Self {
        let mut at = self.at.clone();
        at.push(key.to_owned());
        Self { value, at }
    }

    /// Returns the entries of a table, each of which must be one of `keys`.
    ///
    /// # Errors
    /// When it is no table or has another key.
    pub fn table(&self, keys: &[&str]) -> Result<BTreeMap<&'a str, Self>, PlaceFault> {
        let Value::Map(entries) = self.value else {
            return Err(self.is_not("a table"));
        };
        let mut found = BTreeMap::new();
        for (key, value) in entries {
            let place = self.below(key, value);
            if !keys.contains(&key.as_str()) {
                return Err(place.fault(format!("there is no key `{key}`"), advice(key, keys)));
            }
            found.insert(key.as_str(), place);
        }
        Ok(found)
    }

    /// Returns the items of a list.
    ///
    /// # Errors
    /// When it is no list, is empty or has more than `count_max`.
    pub fn list(&self, count_max: usize) -> Result<Vec<Self>, PlaceFault> {
        let Value::List(items) = self.value else {
            return Err(self.is_not("a list"));
        };
        if items.is_empty() {
            return Err(self.fault("the list is empty", "name something, or leave the key out"));
        }
        if items.len() > count_max {
            let what = format!("the list has more than {count_max} entries");
            return Err(self.fault(what, "shorten it"));
        }
        let places = items.iter().enumerate();
        Ok(places
            .map(|(place, item)| self.below(&place.to_string(), item))
            .collect())
    }

    /// Returns the items of a list, or the one thing that stands in its place.
    ///
    /// # Errors
    /// When it is a list that is empty or has more than `count_max`.
    pub fn one_or_list(&self, count_max: usize) -> Result<Vec<Self>, PlaceFault> {
        match self.value {
            Value::List(_) => self.list(count_max),
            Value::Null
            | Value::Bool(_)
            | Value::Integer(_)
            | Value::Decimal(_)
            | Value::Text(_)
            | Value::Map(_) => Ok(vec![self.clone()]),
        }
    }

    /// Returns a text that is not blank, without the blanks around it.
    ///
    /// # Errors
    /// When it is no text, blank, or longer than `bytes_max`.
    pub fn text(&self, bytes_max: usize) -> Result<&'a str, PlaceFault> {
        let Value::Text(text) = self.value else {
            let fault = self.is_not("text");
            return Err(match self.value {
                Value::Bool(_) | Value::Integer(_) | Value::Decimal(_) => PlaceFault {
                    remedy: "put it in quotes".to_owned(),
                    ..fault
                },
                Value::Null | Value::Text(_) | Value::List(_) | Value::Map(_) => fault,
            });
        };
        if text.trim().is_empty() {
            return Err(self.fault("the text is empty", "write something, or leave the key out"));
        }
        if text.len() > bytes_max || text.contains('\0') {
            let what = format!("the text has a zero byte or more than {bytes_max} bytes");
            return Err(self.fault(what, "shorten it"));
        }
        Ok(text.trim())
    }

    /// Returns one text or a list of them.
    ///
    /// # Errors
    /// As [`Place::text`] and [`Place::list`].
    pub fn texts(&self, count_max: usize, bytes_max: usize) -> Result<Vec<String>, PlaceFault> {
        let places = self.one_or_list(count_max)?;
        let texts = places.iter().map(|place| place.text(bytes_max));
        texts.map(|text| text.map(ToOwned::to_owned)).collect()
    }

    /// Returns true or false.
    ///
    /// # Errors
    /// When it is something else.
    pub fn truth(&self) -> Result<bool, PlaceFault> {
        match self.value {
            Value::Bool(is_true) => Ok(*is_true),
            Value::Null
            | Value::Integer(_)
            | Value::Decimal(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Map(_) => Err(self.is_not("true or false")),
        }
    }

    /// Returns a whole number from 1 to `max`.
    ///
    /// # Errors
    /// When it is something else.
    pub fn count(&self, max: u64) -> Result<u64, PlaceFault> {
        let Value::Integer(number) = self.value else {
            return Err(self.is_not("a whole number"));
        };
        let is_in_range = |count: &u64| (1..=max).contains(count);
        u64::try_from(*number)
            .ok()
            .filter(is_in_range)
            .ok_or_else(|| {
                let what = format!("{number} is not from 1 to {max}");
                self.fault(what, format!("write a number from 1 to {max}"))
            })
    }

    /// Returns which of some words it is.
    ///
    /// # Errors
    /// When it is no text or another one.
    pub fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, PlaceFault> {
        let text = self.text(WORD_BYTES_MAX)?;
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, meant)| *meant).ok_or_else(|| {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.fault(
                format!("{text:?} is none of its words"),
                advice(text, &names),
            )
        })
    }
}

const WORD_BYTES_MAX: usize = 64;

/// Says which word was meant, or which there are.
fn advice(found: &str, words: &[&str]) -> String {
    let near = |word: &&&str| distance(found, word) <= TYPO_MAX.min(found.len() / 2);
    match words
        .iter()
        .filter(near)
        .min_by_key(|word| distance(found, word))
    {
        Some(word) => format!("did you mean `{word}`?"),
        None => format!("there are: {}", words.join(", ")),
    }
}

/// Counts the letters that have to be put in, taken out or changed.
fn distance(left: &str, right: &str) -> usize {
    let left: String = left.chars().take(WORD_BYTES_MAX).collect();
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, letter) in left.to_lowercase().chars().enumerate() {
        let mut next = vec![at + 1];
        for (pair, other) in row.windows(2).zip(&right) {
            let [diagonal, above] = pair else { continue };
            let before = next.last().copied().unwrap_or_default();
            let changed = diagonal + usize::from(letter != *other);
            next.push(changed.min(above + 1).min(before + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}
