//! A settings file in JSON or TOML, of which some keys are put back to what they were.
//!
//! The order of keys is kept, because it means something in some of them (`exports` of a package).

use std::fmt;
use std::path::Path;

use kapi_core::value::KernelValue;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// How deep tables are looked into.
const DEPTH_MAX: usize = 16;

/// A settings file.
#[derive(Debug, Clone)]
pub(super) enum SettingsDocument {
    /// JSON, in the order of its keys.
    Json(Json),
    /// TOML, whose order means nothing.
    Toml(toml::Table),
}

/// A JSON value, taken apart as far as it is a table.
#[derive(Debug, Clone)]
pub(super) enum Json {
    /// A table.
    Table(Vec<(String, Self)>),
    /// Anything else, as it was written.
    Other(String),
}

impl SettingsDocument {
    /// Reads a file by the end of its name; nothing where it is none of these or has a fault.
    pub(super) fn parse(path: &Path, text: &str) -> Option<Self> {
        match path.extension()?.to_str()? {
            "json" => Json::parse(text, DEPTH_MAX).map(Self::Json),
            "toml" => toml::from_str(text).ok().map(Self::Toml),
            _ => None,
        }
    }

    /// Returns what it says, without an order.
    pub(super) fn value(&self) -> KernelValue {
        let text = match self {
            Self::Json(json) => json.to_string(),
            Self::Toml(table) => serde_json::to_string(table).unwrap_or_default(),
        };
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Returns its text with these keys, `/`-separated paths, as they are in another version; a key
    /// that is not there goes. Nothing where the two are of different kinds.
    pub(super) fn with_keys_of(mut self, other: &Self, keys: &[String]) -> Option<String> {
        match (&mut self, other) {
            (Self::Json(json), Self::Json(other)) => {
                for key in keys {
                    json.put(key, other.get(key));
                }
                Some(json.to_string())
            }
            (Self::Toml(table), Self::Toml(other)) => {
                for key in keys {
                    put_toml(table, key, get_toml(other, key));
                }
                toml::to_string(table).ok()
            }
            (Self::Json(_), Self::Toml(_)) | (Self::Toml(_), Self::Json(_)) => None,
        }
    }
}

impl Json {
    fn parse(text: &str, depth: usize) -> Option<Self> {
        let is_table = text.trim_start().starts_with('{');
        let Some(below) = depth.checked_sub(1).filter(|_| is_table) else {
            let raw: &RawValue = serde_json::from_str(text).ok()?;
            return Some(Self::Other(raw.get().to_owned()));
        };
        let entries: OrderedEntries = serde_json::from_str(text).ok()?;
        let entries = entries.0.into_iter().map(|(key, value)| {
            let value = Self::parse(&value, below)?;
            Some((key, value))
        });
        entries.collect::<Option<Vec<_>>>().map(Self::Table)
    }

    fn get(&self, path: &str) -> Option<&Self> {
        let Self::Table(entries) = self else {
            return None;
        };
        entries
            .iter()
            .find_map(|(key, value)| match rest(path, key)? {
                "" => Some(value),
                below => value.get(below),
            })
    }

    fn put(&mut self, path: &str, wanted: Option<&Self>) {
        let Self::Table(entries) = self else { return };
        let is_it = |(key, _): &(String, Self)| rest(path, key).is_some_and(str::is_empty);
        if let Some(at) = entries.iter().position(is_it) {
            match (wanted, entries.get_mut(at)) {
                (Some(wanted), Some((_, value))) => value.clone_from(wanted),
                (Some(_), None) => {}
                (None, _) => drop(entries.remove(at)),
            }
            return;
        }
        let below = entries
            .iter_mut()
            .find_map(|(key, value)| Some((rest(path, key)?, value)));
        match (below, wanted) {
            (Some((below, value)), _) => value.put(below, wanted),
            (None, Some(wanted)) => entries.push(Self::nested(path, wanted)),
            (None, None) => {}
        }
    }

    /// Returns an entry with the tables that a change removed.
    fn nested(path: &str, wanted: &Self) -> (String, Self) {
        match path.split_once('/') {
            None => (path.to_owned(), wanted.clone()),
            Some((first, below)) => {
                let inner = Self::Table(vec![Self::nested(below, wanted)]);
                (first.to_owned(), inner)
            }
        }
    }
}

/// Returns what of a path is left below a key; the key itself may hold slashes.
fn rest<'p>(path: &'p str, key: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(key)?;
    if rest.is_empty() {
        return Some("");
    }
    rest.strip_prefix('/')
}

fn get_toml<'t>(table: &'t toml::Table, path: &str) -> Option<&'t toml::Value> {
    table
        .iter()
        .find_map(|(key, value)| match rest(path, key)? {
            "" => Some(value),
            below => get_toml(value.as_table()?, below),
        })
}

fn put_toml(table: &mut toml::Table, path: &str, wanted: Option<&toml::Value>) {
    if let Some(wanted) = wanted
        && let Some((first, below)) = path.split_once('/')
        && !table.contains_key(path)
    {
        let inner = table
            .entry(first)
            .or_insert_with(|| toml::Value::Table(toml::Table::new()));
        if let Some(inner) = inner.as_table_mut() {
            put_toml(inner, below, Some(wanted));
        }
        return;
    }
    match wanted {
        Some(wanted) => {
            table.insert(path.to_owned(), wanted.clone());
        }
        None => {
            table.remove(path);
            for (key, value) in table.iter_mut() {
                if let (Some(below), Some(inner)) = (rest(path, key), value.as_table_mut()) {
                    put_toml(inner, below, None);
                }
            }
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(text) => out.write_str(text),
            Self::Table(entries) => write_table(entries, out),
        }
    }
}

fn write_table(entries: &[(String, Json)], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    out.write_str("{")?;
    for (n, (key, value)) in entries.iter().enumerate() {
        let comma = if n == 0 { "" } else { "," };
        let key = serde_json::to_string(key).map_err(|_| fmt::Error)?;
        write!(out, "{comma}\n{key}: {value}")?;
    }
    out.write_str("\n}")
}

/// The entries of a table in their order.
struct OrderedEntries(Vec<(String, String)>);

/// Reads a table entry by entry.
struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = OrderedEntries;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderedEntries, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
            entries.push((key, value.get().to_owned()));
        }
        Ok(OrderedEntries(entries))
    }
}

impl<'de> Deserialize<'de> for OrderedEntries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::SettingsDocument;

    fn check(name: &str, (old, new): (&str, &str), keys: &[&str], expected: &str) {
        let path = Path::new(name);
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let old = SettingsDocument::parse(path, old).unwrap();
        let new = SettingsDocument::parse(path, new).unwrap();
        let text = new.with_keys_of(&old, &keys).unwrap();
        let compact = text.replace('\n', " ");
        assert_eq!(compact.trim(), expected, "{name} {keys:?}");
    }

    #[test]
    fn keys_go_back_to_what_they_were_and_the_rest_keeps_its_order() {
        let old = r#"{"scripts":{"test":"vitest"},"exports":{"import":1,"default":2}}"#;
        let new = r#"{"name":"x","scripts":{"test":"true","lint":"l"},"exports":{"import":1,"default":3},"a/b":1}"#;
        check(
            "package.json",
            (old, new),
            &["scripts/test", "scripts/lint", "a/b"],
            r#"{ "name": "x", "scripts": { "test": "vitest" }, "exports": { "import": 1, "default": 3 } }"#,
        );
        check(
            "package.json",
            (old, r#"{"name":"x"}"#),
            &["scripts/test"],
            r#"{ "name": "x", "scripts": { "test": "vitest" } }"#,
        );
    }

    #[test]
    fn toml_loses_and_gets_back_tables() {
        let old = "[tool.pytest]\naddopts = \"-q\"\n";
        let new =
            "[project]\nname = \"x\"\n[tool.pytest]\naddopts = \"-k none\"\n[tool.other]\na = 1\n";
        check(
            "pyproject.toml",
            (old, new),
            &["tool/pytest"],
            "[project] name = \"x\"  [tool.other] a = 1  [tool.pytest] addopts = \"-q\"",
        );
        check(
            "pyproject.toml",
            ("", new),
            &["tool/pytest"],
            "[project] name = \"x\"  [tool.other] a = 1",
        );
    }
}
