//! Changing one place of JSON with comments, with everything else left as it is written: comments,
//! order, indentation.
//!
//! Knows no file and no key. Whether what comes out says what it should is checked by whoever asked.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::Value;

/// Why a text cannot be changed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsoncEditError {
    /// It cannot be read.
    #[error("it cannot be read: {what}")]
    Broken {
        /// What is wrong, and where.
        what: String,
    },
    /// A name on the way is something else than a group of entries; no name is the whole text.
    #[error("`{}` is not a group of entries there", key.as_deref().unwrap_or("the whole file"))]
    NotGroup {
        /// The name.
        key: Option<String>,
    },
}

/// Returns the text with a value at a place, given by the names from the outside in, in the stead of
/// what is there. Groups on the way are made.
///
/// # Errors
/// When the text is none, or something on the way is no group.
pub fn set(text: &str, path: &[&str], value: &Value) -> Result<String, JsoncEditError> {
    let Some((last, groups)) = path.split_last() else {
        return Ok(text.to_owned());
    };
    let (mark, body) = without_mark(text);
    let root = parse(body)?;
    let mut group = root
        .object_value_or_create()
        .ok_or(JsoncEditError::NotGroup { key: None })?;
    for key in groups {
        open_up(&group);
        group = group
            .object_value_or_create(key)
            .ok_or_else(|| JsoncEditError::NotGroup {
                key: Some((*key).to_owned()),
            })?;
    }
    match group.get(last) {
        Some(property) => property.set_value(input(value)),
        None => {
            open_up(&group);
            let property = group.append(last, input(value));
            if let Some(entry) = property.object_value() {
                entry.ensure_multiline();
            }
        }
    }
    let mut after = root.to_string();
    if body.trim().is_empty() {
        after = format!("{}\n", after.trim_end());
    }
    Ok(format!("{mark}{after}"))
}

/// Returns the text without what is at a place; nothing where nothing is. The group around it goes,
/// too, where it is empty then and `goes_when_empty` says so of its name.
#[must_use]
pub fn remove(text: &str, path: &[&str], goes_when_empty: &dyn Fn(&str) -> bool) -> Option<String> {
    let (mark, body) = without_mark(text);
    let root = parse(body).ok()?;
    let (last, groups) = path.split_last()?;
    let mut group = root.object_value()?;
    let mut around = None;
    for key in groups {
        let property = group.get(key)?;
        group = property.object_value()?;
        around = Some(property).filter(|_| goes_when_empty(key));
    }
    group.get(last)?.remove();
    if let Some(property) = around.filter(|_| group.properties().is_empty()) {
        property.remove();
    }
    Some(format!("{mark}{root}"))
}

fn parse(body: &str) -> Result<CstRootNode, JsoncEditError> {
    CstRootNode::parse(body, &ParseOptions::default()).map_err(|error| JsoncEditError::Broken {
        what: error.to_string(),
    })
}

/// Splits a byte order mark off.
fn without_mark(text: &str) -> (&str, &str) {
    let mark = text.len() - text.trim_start_matches('\u{feff}').len();
    text.split_at(mark)
}

/// An empty group is opened, so that what it gets stands on a line of its own.
fn open_up(group: &CstObject) {
    if group.properties().is_empty() {
        group.ensure_multiline();
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(fields) => {
            let fields = fields.iter();
            CstInputValue::Object(
                fields
                    .map(|(key, value)| (key.clone(), input(value)))
                    .collect(),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};
    use serde_json::{Value, json};

    use super::{remove, set};

    fn put(text: &str, path: &[&str], value: &Value) -> String {
        set(text, path, value).unwrap()
    }

    #[test]
    fn a_new_key_is_laid_out_like_the_others() {
        for (before, after) in [
            ("", "{\n  \"new\": 3\n}\n"),
            ("{\n}\n", "{\n  \"new\": 3\n}\n"),
            ("{}", "{\n  \"new\": 3\n}"),
            ("{ // a\n  // b\n}", "{ // a\n  // b\n  \"new\": 3\n}"),
            (
                "{\n\t\"a\": \"a\" // why\n\t// end\n}",
                "{\n\t\"a\": \"a\", // why\n\t\"new\": 3\n\t// end\n}",
            ),
            (
                "{\r\n  \"a\": \"a\" , // why\r\n}\r\n",
                "{\r\n  \"a\": \"a\" , // why\r\n  \"new\": 3,\r\n}\r\n",
            ),
            ("{ \"a\": \"a\", }", "{\n  \"a\": \"a\",\n  \"new\": 3,\n}"),
            (
                "{ \"a\": \"a\" /* x, */ }",
                "{\n  \"a\": \"a\", /* x, */\n  \"new\": 3\n}",
            ),
            (
                "\u{feff}{ \"a\": 1 }",
                "\u{feff}{\n  \"a\": 1,\n  \"new\": 3\n}",
            ),
            (
                "{\"a\": \"a\",\n \"b\": \"b\"}",
                "{\"a\": \"a\",\n \"b\": \"b\",\n \"new\": 3}",
            ),
        ] {
            assert_eq!(put(before, &["new"], &json!(3)), after);
            assert_eq!(put(after, &["new"], &json!(3)), after);
        }
    }

    #[test]
    fn groups_are_made_on_the_way_and_go_again() {
        let made = put("{\n}\n", &["a", "b"], &json!({"x": "y"}));
        let expected = "{\n  \"a\": {\n    \"b\": {\n      \"x\": \"y\"\n    }\n  }\n}\n";
        assert_eq!(made, expected);
        let kept = remove(&made, &["a", "b"], &|_| false).unwrap();
        let gone = remove(&made, &["a", "b"], &|key| key == "a").unwrap();
        assert!(kept.contains("\"a\"") && !kept.contains("\"b\""), "{kept}");
        assert!(!gone.contains("\"a\""), "{gone}");
        assert_eq!(remove(&made, &["a", "c"], &|_| true), None);
        let error = set("{\"a\": 1}", &["a", "b"], &json!(1)).unwrap_err();
        assert_eq!(error.to_string(), "`a` is not a group of entries there");
    }

    /// Makes one property, in one of many layouts.
    fn property(idx: usize, layout: usize) -> String {
        let (before, colon, after) = [
            ("\n  ", ": ", ""),
            ("\n\t// one, \"two\": {3}\n\t", " : ", " /* x */"),
            (" ", ":", ""),
            ("\r\n  /* a\n b */ ", ": /* , */ ", " // } end\n"),
        ][layout];
        format!("{before}\"k{idx}\"{colon}\"v{idx}\"{after}")
    }

    /// Returns whether all of one text but its spaces is in the other, in order.
    fn is_inside(one: &str, other: &str) -> bool {
        let mut other = other.chars();
        let mut one = one.chars().filter(|c| !c.is_whitespace());
        one.all(|c| other.any(|found| found == c))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn any_layout_keeps_what_it_says(
            layouts in proptest::collection::vec(0_usize..4, 0..5),
            has_comma in proptest::bool::ANY,
            (head, tail) in ("[ \n]{0,3}", "[ \n\t]{0,3}"),
            old in 0_usize..4,
        ) {
            let properties: Vec<String> =
                layouts.iter().enumerate().map(|(idx, layout)| property(idx, *layout)).collect();
            let comma = if has_comma && !layouts.is_empty() { "," } else { "" };
            let before = format!("{head}{{{}{comma}{tail}}}{tail}", properties.join(","));
            // A key that is there: one value, in place, and not a byte besides.
            if old < layouts.len() {
                let after = put(&before, &[&format!("k{old}")], &json!("new"));
                prop_assert_eq!(after, before.replace(&format!("\"v{old}\""), "\"new\""));
            }
            // A key that is not: the rest is there in order.
            let after = put(&before, &["new"], &json!(7));
            prop_assert_eq!(after.matches("\"new\": 7").count(), 1);
            prop_assert!(is_inside(&before, &after), "{:?} in {:?}", before, after);
            prop_assert_eq!(put(&after, &["new"], &json!(7)), after);
        }
    }
}
