//! A YAML document as a tree in which everything knows its line.
//!
//! Numbers, words and truth values stay apart, and a key stands once. Knows nothing of what the keys
//! mean.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Budget, Options, Spanned};

/// Levels of tables that a document may have.
const DEPTH_MAX: usize = 8;
/// Levels of tables and lists that are read at all: each takes its share of the stack.
const NESTING_MAX: usize = 24;
/// The most values, those that an alias repeats counted each time.
const NODES_MAX: usize = 20_000;
/// The longest text of all values together, in bytes, counted alike.
const SCALAR_BYTES_MAX: usize = 1 << 20;

/// A value and the line it begins on.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The line, from 1.
    pub line: usize,
    /// The value.
    pub value: Value,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
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
    List(Vec<Node>),
    /// A table, in the order of the file.
    Map(Vec<Entry>),
}

/// One line of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The key's line, from 1.
    pub line: usize,
    /// What it is set to.
    pub node: Node,
}

/// What is wrong with a document, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// The rule it breaks.
    pub rule: String,
}

impl Value {
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

/// Parses one document; an empty one is an empty table.
///
/// # Errors
/// When it is no YAML, too deep or too large, says a key twice, or is no table.
pub fn parse(text: &str) -> Result<Vec<Entry>, Fault> {
    if text
        .lines()
        .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
    {
        return Ok(Vec::new());
    }
    let mut options = Options::default();
    options.strict_booleans = true;
    options.with_snippet = false;
    let mut budget = Budget::default();
    budget.max_depth = NESTING_MAX;
    budget.flow_nesting_limit = NESTING_MAX;
    budget.max_nodes = NODES_MAX;
    budget.max_recorded_anchor_events = NODES_MAX;
    budget.max_total_scalar_bytes = SCALAR_BYTES_MAX;
    options.budget = Some(budget);
    let root: Spanned<Value> =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| Fault {
            line: error.location().map_or(1, |place| number(place.line())),
            rule: first_line(&error.to_string()),
        })?;
    match node(root).value {
        Value::Map(entries) => {
            check_depth(&entries, 1)?;
            Ok(entries)
        }
        Value::Null => Ok(Vec::new()),
        other => Err(Fault {
            line: 1,
            rule: format!("it must be a table of settings, not {}", other.kind()),
        }),
    }
}

fn check_depth(entries: &[Entry], depth: usize) -> Result<(), Fault> {
    for entry in entries {
        let Value::Map(inner) = &entry.node.value else {
            continue;
        };
        if depth >= DEPTH_MAX {
            return Err(Fault {
                line: entry.line,
                rule: format!("tables lie more than {DEPTH_MAX} deep"),
            });
        }
        check_depth(inner, depth + 1)?;
    }
    Ok(())
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn node(spanned: Spanned<Value>) -> Node {
    Node {
        line: number(spanned.referenced.line()),
        value: spanned.value,
    }
}

fn number(line: u64) -> usize {
    usize::try_from(line).unwrap_or(usize::MAX).max(1)
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Whole(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        let too_large = |_| E::custom(format!("the number {value} is too large"));
        i64::try_from(value).map(Value::Whole).map_err(too_large)
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Real(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Value>>()? {
            list.push(node(item));
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut entries: Vec<Entry> = Vec::new();
        while let Some((key, value)) = items.next_entry::<Spanned<String>, Spanned<Value>>()? {
            if entries.iter().any(|entry| entry.key == key.value) {
                return Err(A::Error::custom(format!("`{}` stands twice", key.value)));
            }
            entries.push(Entry {
                line: number(key.referenced.line()),
                key: key.value,
                node: node(value),
            });
        }
        Ok(Value::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, Fault, Value, parse};

    fn entry<'a>(entries: &'a [Entry], key: &str) -> &'a Entry {
        entries.iter().find(|entry| entry.key == key).unwrap()
    }

    #[test]
    fn everything_knows_its_line() {
        let text =
            "# a comment\nagent:\n  type: claude\n\n  list:\n    - a\n    - 2\nlast: false\n";
        let entries = parse(text).unwrap();
        let agent = entry(&entries, "agent");
        assert_eq!(agent.line, 2);
        let Value::Map(inner) = &agent.node.value else {
            panic!("a table: {agent:?}");
        };
        assert_eq!(entry(inner, "type").line, 3);
        let Value::List(items) = &entry(inner, "list").node.value else {
            panic!("a list: {inner:?}");
        };
        let lines: Vec<usize> = items.iter().map(|item| item.line).collect();
        assert_eq!(lines, [6, 7]);
        assert_eq!(items[1].value, Value::Whole(2));
        assert_eq!(entry(&entries, "last").node.value, Value::Bool(false));
    }

    #[test]
    fn only_true_and_false_are_truth_values() {
        let entries = parse("a: no\nb: off\nc: 1.5\nd: \"true\"\ne:\n").unwrap();
        let values: Vec<&Value> = entries.iter().map(|entry| &entry.node.value).collect();
        let text = |text: &str| Value::Text(text.to_owned());
        let expected = [
            text("no"),
            text("off"),
            Value::Real(1.5),
            text("true"),
            Value::Null,
        ];
        assert_eq!(values, expected.iter().collect::<Vec<_>>());
    }

    #[test]
    fn an_empty_document_says_nothing() {
        for text in ["", "# only a comment\n", "\n\n"] {
            assert_eq!(parse(text), Ok(Vec::new()), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_table_or_stands_twice_is_refused_with_its_line() {
        let line = |text: &str| parse(text).map_err(|Fault { line, .. }| line).unwrap_err();
        assert_eq!(line("- a\n"), 1);
        assert_eq!(line("a: 1\nb: 2\na: 3\n"), 3);
        assert_eq!(line("a: [1\nb: 2\n"), 2);
        let deep = (0..12).map(|n| format!("{}k:\n", "  ".repeat(n)));
        assert_eq!(
            line(&format!(
                "{}{}v: 1\n",
                deep.collect::<String>(),
                "  ".repeat(12)
            )),
            8
        );
    }
}
