//! A YAML document as a value, and on which line each of its keys stands.
//!
//! Knows no key.

use std::collections::BTreeMap;

use kapi_core::kernel::value::Value;

use kapi_settings::fault::Faults;
use kapi_settings::node::{Entry, Node, Value as Yaml};
use kapi_settings::yaml;

/// A document.
pub(super) struct Document {
    /// What it says; a table.
    pub(super) value: Value,
    lines: BTreeMap<Vec<String>, usize>,
}

impl Document {
    /// Parses a document; the error is a line, from 1, and what is wrong there.
    pub(super) fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut faults = Faults::of(String::new());
        let root = yaml::parse(text, &mut faults).ok_or_else(|| {
            let first = faults.into_list().into_iter().next();
            first.map_or_else(Default::default, |fault| (fault.line, fault.what))
        })?;
        let mut reader = Reader {
            at: Vec::new(),
            lines: BTreeMap::new(),
        };
        let value = reader.table(root.entries())?;
        Ok(Self {
            value,
            lines: reader.lines,
        })
    }

    /// Returns the line of what some keys lead to, or of the nearest thing above it.
    pub(super) fn line_of(&self, at: &[String]) -> usize {
        let mut ends = (0..=at.len()).rev();
        let found = ends.find_map(|end| self.lines.get(at.get(..end)?));
        found.copied().unwrap_or(1)
    }
}

struct Reader {
    at: Vec<String>,
    lines: BTreeMap<Vec<String>, usize>,
}

impl Reader {
    fn table(&mut self, entries: &[Entry]) -> Result<Value, (usize, String)> {
        let mut table = BTreeMap::new();
        for entry in entries {
            let value = self.below(entry.key.clone(), entry.line, &entry.node)?;
            table.insert(entry.key.clone(), value);
        }
        Ok(Value::Map(table))
    }

    fn below(&mut self, key: String, line: usize, node: &Node) -> Result<Value, (usize, String)> {
        self.at.push(key);
        self.lines.insert(self.at.clone(), line);
        let value = self.value(node);
        self.at.pop();
        value
    }

    fn value(&mut self, node: &Node) -> Result<Value, (usize, String)> {
        Ok(match &node.value {
            Yaml::Null => Value::Null,
            Yaml::Bool(is_true) => Value::Bool(*is_true),
            Yaml::Whole(number) => Value::Integer(*number),
            Yaml::Real(number) => Value::from_float(*number)
                .ok_or_else(|| (node.line, format!("{number} is no number")))?,
            Yaml::Text(text) => Value::Text(text.clone()),
            Yaml::List(items) => {
                let mut list = Vec::new();
                for (place, item) in items.iter().enumerate() {
                    list.push(self.below(place.to_string(), item.line, item)?);
                }
                Value::List(list)
            }
            Yaml::Map(entries) => self.table(entries)?,
        })
    }
}
