//! A YAML document as a tree of settings.
//!
//! Nothing in it can make reading it slow or deep.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Budget, Options, Spanned};

use crate::fault::Faults;
use crate::node::{SettingValue, TableEntry, ValueNode};

/// Levels of tables that a document may have.
const DEPTH_MAX: usize = 8;
/// Levels of tables and lists that are read at all: each takes its share of the stack.
const NESTING_MAX: usize = 24;
/// The most values, those that an alias repeats counted each time.
const NODES_MAX: usize = 20_000;
/// The longest text of all values together, in bytes, counted alike.
const SCALAR_BYTES_MAX: usize = 1 << 20;
/// What to do about a text that is no such document.
const REMEDY: &str = "fix the YAML";

/// Parses one document, which is a table; an empty one is an empty table.
///
/// `None`, and a fault, when it is no YAML, too deep or too large, says a key twice, or is no table.
pub fn parse(text: &str, faults: &mut Faults) -> Option<ValueNode> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_comment = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if text.lines().all(is_comment) {
        return Some(ValueNode::empty());
    }
    let read: Result<Spanned<Raw>, _> = serde_saphyr::from_str_with_options(text, options());
    let root = match read {
        Ok(root) => node(root),
        Err(error) => {
            let line = error
                .location()
                .map_or(1, |location| number(location.line()));
            faults.at_line(line, plain(&error.to_string()), REMEDY);
            return None;
        }
    };
    match &root.value {
        SettingValue::Map(entries) => match too_deep(entries, 1) {
            None => Some(root),
            Some(line) => {
                let what = format!("tables are nested more than {DEPTH_MAX} deep");
                faults.at_line(line, what, "use fewer levels");
                None
            }
        },
        SettingValue::Null => Some(ValueNode::empty()),
        other => {
            let what = format!("it must be a table of settings, not {}", other.kind());
            faults.at_line(1, what, REMEDY);
            None
        }
    }
}

fn options() -> Options {
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
    options
}

/// Returns the line of the first table that lies too deep.
fn too_deep(entries: &[TableEntry], depth: usize) -> Option<usize> {
    entries.iter().find_map(|entry| match &entry.node.value {
        SettingValue::Map(_) if depth >= DEPTH_MAX => Some(entry.line),
        SettingValue::Map(inner) => too_deep(inner, depth + 1),
        _ => None,
    })
}

/// Says what the parser says in words for a person, where its own are for a programmer.
fn plain(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    let key = first
        .strip_prefix("duplicate mapping key: ")
        .and_then(|rest| rest.split_once(", set "));
    match key {
        Some((key, _)) => format!("`{key}` is set twice"),
        None => first.to_owned(),
    }
}

fn node(spanned: Spanned<Raw>) -> ValueNode {
    ValueNode {
        line: number(spanned.referenced.line()),
        value: spanned.value.0,
    }
}

fn number(line: u64) -> usize {
    usize::try_from(line).unwrap_or(usize::MAX).max(1)
}

/// A value as the parser hands it out.
struct Raw(SettingValue);

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlReader)
    }
}

struct YamlReader;

impl<'de> Visitor<'de> for YamlReader {
    type Value = Raw;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw(SettingValue::Null))
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw(SettingValue::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw(SettingValue::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw(SettingValue::Whole(value)))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Raw, E> {
        let too_large = |_| E::custom(format!("the number {value} is too large"));
        let whole = i64::try_from(value).map_err(too_large)?;
        Ok(Raw(SettingValue::Whole(whole)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw(SettingValue::Real(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw(SettingValue::Text(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Raw, E> {
        Ok(Raw(SettingValue::Text(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Raw>>()? {
            list.push(node(item));
        }
        Ok(Raw(SettingValue::List(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut entries: Vec<TableEntry> = Vec::new();
        while let Some((key, value)) = items.next_entry::<Spanned<String>, Spanned<Raw>>()? {
            if entries.iter().any(|entry| entry.key == key.value) {
                return Err(A::Error::custom(format!("`{}` is set twice", key.value)));
            }
            entries.push(TableEntry {
                line: number(key.referenced.line()),
                key: key.value,
                node: node(value),
            });
        }
        Ok(Raw(SettingValue::Map(entries)))
    }
}

#[cfg(test)]
mod tests {
    use crate::fault::Faults;
    use crate::node::{SettingValue, TableEntry, ValueNode};

    fn read(text: &str) -> Result<ValueNode, usize> {
        let mut faults = Faults::of("f".to_owned());
        let node = super::parse(text, &mut faults);
        let list = faults.into_list();
        node.ok_or_else(|| list[0].line)
    }

    fn parse(text: &str) -> Vec<TableEntry> {
        read(text).unwrap().entries().to_vec()
    }

    fn entry<'a>(entries: &'a [TableEntry], key: &str) -> &'a TableEntry {
        entries.iter().find(|entry| entry.key == key).unwrap()
    }

    #[test]
    fn everything_knows_its_line() {
        let text =
            "# a comment\nagent:\n  type: claude\n\n  list:\n    - a\n    - 2\nlast: false\n";
        let entries = parse(text);
        let agent = entry(&entries, "agent");
        assert_eq!(agent.line, 2);
        let SettingValue::Map(inner) = &agent.node.value else {
            panic!("a table: {agent:?}");
        };
        assert_eq!(entry(inner, "type").line, 3);
        let SettingValue::List(items) = &entry(inner, "list").node.value else {
            panic!("a list: {inner:?}");
        };
        let lines: Vec<usize> = items.iter().map(|item| item.line).collect();
        assert_eq!(lines, [6, 7]);
        assert_eq!(items[1].value, SettingValue::Whole(2));
        assert_eq!(
            entry(&entries, "last").node.value,
            SettingValue::Bool(false)
        );
    }

    #[test]
    fn only_true_and_false_are_truth_values() {
        let entries = parse("a: no\nb: off\nc: 1.5\nd: \"true\"\ne:\n");
        let values: Vec<&SettingValue> = entries.iter().map(|entry| &entry.node.value).collect();
        let text = |text: &str| SettingValue::Text(text.to_owned());
        let expected = [
            text("no"),
            text("off"),
            SettingValue::Real(1.5),
            text("true"),
            SettingValue::Null,
        ];
        assert_eq!(values, expected.iter().collect::<Vec<_>>());
    }

    #[test]
    fn an_empty_document_says_nothing() {
        for text in ["", "# only a comment\n", "\n\n"] {
            assert_eq!(parse(text), [], "{text:?}");
        }
    }

    #[test]
    fn what_is_no_table_or_stands_twice_is_refused_with_its_line() {
        let line = |text: &str| read(text).unwrap_err();
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
