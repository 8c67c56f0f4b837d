//! One line of a contract file: its value as the type it must have, or where and why not.
//!
//! Knows nothing of what the keys mean.

use std::path::Path;

use clap::ValueEnum;
use kapi_core::goal::contract::Surface;
use kapi_settings::node::{Entry, Node, Value};

use crate::amount;
use crate::contract::file::key::thing;
use crate::contract::working::parse_surface;
use crate::error::Error;

/// A key and what it is set to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Said<'a> {
    /// The file.
    pub(super) path: &'a Path,
    /// The key, with the tables it lies in.
    pub(super) key: &'a str,
    /// Its line, from 1.
    pub(super) line: usize,
    /// The value.
    pub(super) node: &'a Node,
}

/// What was said already, and where.
#[derive(Debug, Default)]
pub(super) struct Seen(Vec<(&'static str, String, usize)>);

impl Seen {
    /// Refuses a thing that is said twice under two names.
    pub(super) fn note(&mut self, name: &'static str, said: Said<'_>) -> Result<(), Error> {
        let about = thing(name);
        if let Some((_, key, line)) = self.0.iter().find(|(other, _, _)| *other == about) {
            return Err(said.refused(&format!("`{key}` on line {line} says this already")));
        }
        self.0.push((about, said.key.to_owned(), said.line));
        Ok(())
    }
}

impl<'a> Said<'a> {
    /// Returns where it stands.
    pub(super) fn at(self) -> String {
        format!("{}, line {}", self.path.display(), self.line)
    }

    /// Refuses it, for breaking a rule.
    pub(super) fn refused(self, rule: &str) -> Error {
        Error::usage(format!("{}: `{}`: {rule}", self.at(), self.key))
            .with_hint("`docs/goals.md` shows both forms of a contract file.")
    }

    fn not(self, wanted: &str) -> Error {
        self.refused(&format!(
            "it must be {wanted}, not {}",
            self.node.value.kind()
        ))
    }

    /// Returns a text that is not blank.
    pub(super) fn text(self) -> Result<String, Error> {
        match &self.node.value {
            Value::Text(text) if !text.trim().is_empty() => Ok(text.clone()),
            Value::Text(_) => Err(self.refused("it must not be blank")),
            _ => Err(self.not("text")),
        }
    }

    /// Returns texts: a list of them, or one alone.
    pub(super) fn texts(self) -> Result<Vec<String>, Error> {
        match &self.node.value {
            Value::List(items) => items
                .iter()
                .map(|node| self.item(node).text())
                .collect::<Result<_, _>>(),
            Value::Text(_) => Ok(vec![self.text()?]),
            _ => Err(self.not("text or a list of texts")),
        }
    }

    fn item(self, node: &'a Node) -> Self {
        Self {
            line: node.line,
            node,
            ..self
        }
    }

    /// Returns `true` or `false`.
    pub(super) fn truth(self) -> Result<bool, Error> {
        match self.node.value {
            Value::Bool(truth) => Ok(truth),
            _ => Err(self.not("true or false")),
        }
    }

    /// Returns a whole number within limits.
    pub(super) fn whole_within(self, least: u64, most: u64) -> Result<u64, Error> {
        let Value::Whole(number) = self.node.value else {
            return Err(self.not("a whole number"));
        };
        let fits = |number: &u64| (least..=most).contains(number);
        u64::try_from(number).ok().filter(fits).ok_or_else(|| {
            if least == most {
                self.refused(&format!("it must be {least}"))
            } else {
                self.refused(&format!("it must be {least} or more"))
            }
        })
    }

    /// Returns a count, such as `10` or `500k`.
    pub(super) fn count(self) -> Result<u64, Error> {
        match &self.node.value {
            Value::Text(text) => amount::parse_count(text).map_err(|rule| self.refused(&rule)),
            _ => self.whole_within(1, u64::MAX),
        }
    }

    /// Returns a small count.
    pub(super) fn count32(self) -> Result<u32, Error> {
        let count = self.whole_within(1, u64::MAX)?;
        u32::try_from(count).map_err(|_| self.refused("it is too large"))
    }

    /// Returns US dollars as millionths.
    pub(super) fn usd_micros(self) -> Result<u64, Error> {
        let text = match &self.node.value {
            Value::Text(text) => text.clone(),
            Value::Whole(number) => number.to_string(),
            Value::Real(number) => number.to_string(),
            _ => return Err(self.not("an amount of US dollars")),
        };
        amount::parse_usd_micros(&text).map_err(|rule| self.refused(&rule))
    }

    /// Returns a time: `90s`, `2h`, or a whole number of milliseconds under a key that says so.
    pub(super) fn milliseconds(self) -> Result<u64, Error> {
        match &self.node.value {
            Value::Text(text) => {
                amount::parse_duration_ms(text).map_err(|rule| self.refused(&rule))
            }
            Value::Whole(_) if self.key.ends_with("_ms") => self.whole_within(1, u64::MAX),
            _ => Err(self.not("a time such as \"90s\" or \"2h\"")),
        }
    }

    /// Returns one of the words that a flag of this name takes.
    pub(super) fn word<T: ValueEnum>(self) -> Result<T, Error> {
        let text = self.text()?;
        T::from_str(&text, false).map_err(|_| {
            let words: Vec<String> = T::value_variants()
                .iter()
                .filter_map(|variant| Some(variant.to_possible_value()?.get_name().to_owned()))
                .collect();
            self.refused(&format!("{text:?} is none of: {}", words.join(", ")))
        })
    }

    /// Returns surfaces: tables with kind, location and notes, or `kind=location;notes`.
    pub(super) fn surfaces(self) -> Result<Vec<Surface>, Error> {
        let Value::List(items) = &self.node.value else {
            return Err(self.not("a list of surfaces"));
        };
        items.iter().map(|node| self.item(node).surface()).collect()
    }

    fn surface(self) -> Result<Surface, Error> {
        match &self.node.value {
            Value::Text(text) => parse_surface(text).map_err(|rule| self.refused(&rule)),
            Value::Map(fields) => self.surface_table(fields),
            _ => Err(self.not("a table with kind and location")),
        }
    }

    fn surface_table(self, fields: &'a [Entry]) -> Result<Surface, Error> {
        let (mut kind, mut location, mut notes) = (None, None, None);
        for field in fields {
            let key = format!("{}.{}", self.key, field.key);
            let said = Said {
                path: self.path,
                key: &key,
                line: field.line,
                node: &field.node,
            };
            match field.key.as_str() {
                "kind" => kind = Some(said.text()?),
                "location" => location = Some(said.text()?),
                "notes" if field.node.value == Value::Null => {}
                "notes" => notes = Some(said.text()?),
                _ => {
                    return Err(said
                        .refused("there is no such key")
                        .with_hint("there are: kind, location, notes."));
                }
            }
        }
        match (kind, location) {
            (Some(kind), Some(location)) => Ok(Surface {
                kind,
                location,
                notes,
            }),
            (_, _) => Err(self.refused("a surface has a kind and a location")),
        }
    }
}
