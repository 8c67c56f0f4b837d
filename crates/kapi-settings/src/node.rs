//! A tree of settings in which everything knows its line.
//!
//! Numbers, words and truth values stay apart, and a key stands once. Knows nothing of what the keys
//! mean.

use std::collections::BTreeMap;

/// A value and the line it begins on.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueNode {
    /// The line, from 1.
    pub line: usize,
    /// The value.
    pub value: SettingValue,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum SettingValue {
    /// Nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Whole(i64),
    /// A number with decimals.
    Real(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<ValueNode>),
    /// A table, in the order of the file.
    Map(Vec<TableEntry>),
}

/// One line of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableEntry {
    /// The key.
    pub key: String,
    /// The key's line, from 1.
    pub line: usize,
    /// What it is set to.
    pub node: ValueNode,
}

impl SettingValue {
    /// Names what it is, for a person.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "true or false",
            Self::Whole(_) => "a whole number",
            Self::Real(_) => "a number with decimals",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a table",
        }
    }
}

impl ValueNode {
    /// Builds an empty table.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            line: 1,
            value: SettingValue::Map(Vec::new()),
        }
    }

    /// Returns the entries of a table; none of anything else.
    #[must_use]
    pub fn entries(&self) -> &[TableEntry] {
        match &self.value {
            SettingValue::Map(entries) => entries,
            _ => &[],
        }
    }

    /// Returns the line of every key, by its dotted path.
    #[must_use]
    pub fn lines(&self) -> BTreeMap<String, usize> {
        let mut found = BTreeMap::new();
        self.collect("", &mut found);
        found
    }

    fn collect(&self, prefix: &str, found: &mut BTreeMap<String, usize>) {
        for entry in self.entries() {
            let path = below(prefix, &entry.key);
            entry.node.collect(&path, found);
            found.insert(path, entry.line);
        }
    }
}

/// Returns the dotted path of a key in a table; the outermost table has none.
#[must_use]
pub fn below(prefix: &str, key: &str) -> String {
    match prefix {
        "" => key.to_owned(),
        prefix => format!("{prefix}.{key}"),
    }
}

/// Returns the line of a byte of a text, from 1.
#[must_use]
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or(text);
    before.matches('\n').count() + 1
}
