//! A TOML document as a tree of settings.

use toml::de::{DeTable, DeValue};

use crate::fault::Faults;
use crate::node::{SettingValue, TableEntry, ValueNode, line_at};

/// Parses one document. `None`, and a fault, when it is no TOML.
pub fn parse(text: &str, faults: &mut Faults) -> Option<ValueNode> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match DeTable::parse(text) {
        Ok(table) => Some(ValueNode {
            line: 1,
            value: entries(text, table.get_ref()),
        }),
        Err(error) => {
            let line = error.span().map_or(1, |span| line_at(text, span.start));
            let what = error.message().lines().collect::<Vec<_>>().join(" ");
            faults.at_line(line, what, "fix the TOML");
            None
        }
    }
}

fn entries(text: &str, table: &DeTable<'_>) -> SettingValue {
    let entry = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
        let key: &toml::Spanned<std::borrow::Cow<'_, str>> = key;
        TableEntry {
            key: key.get_ref().to_string(),
            line: line_at(text, key.span().start),
            node: node(text, value),
        }
    };
    SettingValue::Map(table.iter().map(entry).collect())
}

fn node(text: &str, value: &toml::Spanned<DeValue<'_>>) -> ValueNode {
    let line = line_at(text, value.span().start);
    let value = match value.get_ref() {
        DeValue::Boolean(truth) => SettingValue::Bool(*truth),
        DeValue::Integer(number) => {
            let whole = i64::from_str_radix(number.as_str(), number.radix());
            whole.map_or_else(
                |_| SettingValue::Text(number.to_string()),
                SettingValue::Whole,
            )
        }
        DeValue::Float(number) => {
            let real = number.as_str().parse();
            real.map_or_else(
                |_| SettingValue::Text(number.to_string()),
                SettingValue::Real,
            )
        }
        DeValue::String(text) => SettingValue::Text(text.to_string()),
        DeValue::Datetime(time) => SettingValue::Text(time.to_string()),
        DeValue::Array(items) => {
            SettingValue::List(items.iter().map(|item| node(text, item)).collect())
        }
        DeValue::Table(inner) => entries(text, inner),
    };
    ValueNode { line, value }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::fault::Faults;
    use crate::node::SettingValue;

    #[test]
    fn every_key_has_its_line() {
        let text = "a = 1\n\n[goal]\nagent = \"x\" # why\n[agents.claude]\nenv = { A = \"1\" }\n";
        let mut faults = Faults::of("f".to_owned());
        let found: Vec<_> = parse(text, &mut faults)
            .unwrap()
            .lines()
            .into_iter()
            .collect();
        let expected = [
            ("a", 1),
            ("agents", 5),
            ("agents.claude", 5),
            ("agents.claude.env", 6),
            ("agents.claude.env.A", 6),
            ("goal", 3),
            ("goal.agent", 4),
        ];
        let expected = expected.map(|(key, line)| (key.to_owned(), line));
        assert_eq!(found, expected);
    }

    #[test]
    fn values_keep_their_kinds() {
        let mut faults = Faults::of("f".to_owned());
        let text = "a = 0x1_0\nb = 1_000.5\nc = 2026-11-23\nd = [true]";
        let node = parse(text, &mut faults).unwrap();
        let values: Vec<&SettingValue> = node.entries().iter().map(|e| &e.node.value).collect();
        assert_eq!(values[0], &SettingValue::Whole(16));
        assert_eq!(values[1], &SettingValue::Real(1000.5));
        assert_eq!(values[2], &SettingValue::Text("2026-11-23".to_owned()));
        assert_eq!(values[3].kind(), "a list");
    }

    #[test]
    fn what_is_no_toml_is_refused_with_its_line() {
        for (text, line) in [("a = ", 1), ("a = 1\na = 2", 2), ("[a\n", 1)] {
            let mut faults = Faults::of("f".to_owned());
            assert_eq!(parse(text, &mut faults), None);
            assert_eq!(faults.into_list()[0].line, line, "{text}");
        }
    }
}
