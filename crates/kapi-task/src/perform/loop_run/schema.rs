//! Whether a value fits a JSON Schema: the part of draft 2020-12 that describes plain shapes.
//!
//! `type`, `enum`, `const`, `properties`, `required`, `additionalProperties`, `items`, the limits of
//! numbers, texts and lists, `pattern`, `anyOf`, `allOf`, `oneOf`, `not`. Any other word that would
//! restrict something is an error: what is not understood does not pass.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use kapi_core::value::KernelValue;
use regex_lite::Regex;

/// How deep a schema may lie in itself.
const DEPTH_MAX: usize = 32;
/// Words that say something to people only.
const ANNOTATIONS: &[&str] = &[
    "$schema",
    "$id",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// Where in a value a schema is applied.
#[derive(Clone, Copy)]
struct SchemaPosition<'a> {
    /// The path from the top, `$.a[0]`.
    path: &'a str,
    /// How many schemas lie around this one.
    depth: usize,
}

impl SchemaPosition<'_> {
    /// Returns the position of a schema within this one.
    const fn below(self, path: &str) -> SchemaPosition<'_> {
        SchemaPosition {
            path,
            depth: self.depth + 1,
        }
    }
}

/// One word of a schema and what it is set to.
#[derive(Clone, Copy)]
struct Keyword<'a> {
    name: &'a str,
    setting: &'a KernelValue,
}

/// Says why a value does not fit, with the place in it.
pub(super) fn check(schema: &KernelValue, value: &KernelValue) -> Result<(), String> {
    let at = SchemaPosition {
        path: "$",
        depth: 0,
    };
    fits(schema, value, at)
}

fn fits(schema: &KernelValue, value: &KernelValue, at: SchemaPosition<'_>) -> Result<(), String> {
    let location = at.path;
    if at.depth > DEPTH_MAX {
        return Err(format!("{location}: the schema is too deep"));
    }
    let words = match schema {
        KernelValue::Bool(true) => return Ok(()),
        KernelValue::Bool(false) => return Err(format!("{location}: nothing is allowed here")),
        KernelValue::Map(words) => words,
        _ => return Err(format!("{location}: the schema is {}", schema.kind())),
    };
    for (name, setting) in words {
        word_fits(words, Keyword { name, setting }, value, at)?;
    }
    Ok(())
}

fn word_fits(
    words: &BTreeMap<String, KernelValue>,
    keyword: Keyword<'_>,
    value: &KernelValue,
    at: SchemaPosition<'_>,
) -> Result<(), String> {
    let wrong = |what: String| Err(format!("{}: {what}", at.path));
    let Keyword { name, setting } = keyword;
    let is_met = match name {
        "type" => list(setting).iter().any(|kind| is_type(kind, value)),
        "const" => setting == value,
        "enum" => list(setting).contains(value),
        "minimum" => !is_ordered(value, setting, &[Ordering::Less]),
        "maximum" => !is_ordered(value, setting, &[Ordering::Greater]),
        "exclusiveMinimum" => !is_ordered(value, setting, &[Ordering::Less, Ordering::Equal]),
        "exclusiveMaximum" => !is_ordered(value, setting, &[Ordering::Greater, Ordering::Equal]),
        "minLength" | "minItems" | "minProperties" => {
            size(name, value).is_none_or(|size| whole(setting).is_some_and(|limit| size >= limit))
        }
        "maxLength" | "maxItems" | "maxProperties" => {
            size(name, value).is_none_or(|size| whole(setting).is_some_and(|limit| size <= limit))
        }
        "pattern" => return pattern_fits(setting, value, at.path),
        "required" | "properties" | "additionalProperties" => {
            return table_fits(words, keyword, value, at);
        }
        "items" => return items_fit(setting, value, at),
        "anyOf" | "allOf" | "oneOf" | "not" => {
            return joined_fit(keyword, value, at);
        }
        annotation if ANNOTATIONS.contains(&annotation) => true,
        unknown => {
            return wrong(format!("the schema uses {unknown}, which is not supported"));
        }
    };
    if is_met {
        return Ok(());
    }
    wrong(format!(
        "{} does not match {name}: {}",
        shown(value),
        setting.to_json()
    ))
}

/// Returns a list, or what stands for a list of one.
fn list(setting: &KernelValue) -> Vec<KernelValue> {
    match setting {
        KernelValue::List(items) => items.clone(),
        one => vec![one.clone()],
    }
}

fn is_type(name: &KernelValue, value: &KernelValue) -> bool {
    let KernelValue::Text(name) = name else {
        return false;
    };
    match value {
        KernelValue::Null => name == "null",
        KernelValue::Bool(_) => name == "boolean",
        KernelValue::Integer(_) => name == "integer" || name == "number",
        KernelValue::Decimal(_) => name == "number",
        KernelValue::Text(_) => name == "string",
        KernelValue::List(_) => name == "array",
        KernelValue::Map(_) => name == "object",
    }
}

/// Tells whether two numbers stand so; what is no number is not restricted.
fn is_ordered(value: &KernelValue, setting: &KernelValue, orders: &[Ordering]) -> bool {
    match value {
        KernelValue::Integer(_) | KernelValue::Decimal(_) => value
            .order(setting)
            .is_none_or(|order| orders.contains(&order)),
        KernelValue::Null
        | KernelValue::Bool(_)
        | KernelValue::Text(_)
        | KernelValue::List(_)
        | KernelValue::Map(_) => false,
    }
}

fn size(word: &str, value: &KernelValue) -> Option<i64> {
    let size = match value {
        KernelValue::Text(text) if word.ends_with("Length") => text.chars().count(),
        KernelValue::List(items) if word.ends_with("Items") => items.len(),
        KernelValue::Map(entries) if word.ends_with("Properties") => entries.len(),
        _ => return None,
    };
    i64::try_from(size).ok()
}

/// Returns a limit of sizes; one that is no whole number is met by nothing.
const fn whole(setting: &KernelValue) -> Option<i64> {
    match setting {
        KernelValue::Integer(number) => Some(*number),
        _ => None,
    }
}

fn pattern_fits(setting: &KernelValue, value: &KernelValue, location: &str) -> Result<(), String> {
    let (KernelValue::Text(pattern), KernelValue::Text(text)) = (setting, value) else {
        return Ok(());
    };
    let regex = Regex::new(pattern).map_err(|error| format!("{location}: pattern: {error}"))?;
    if regex.is_match(text) {
        return Ok(());
    }
    Err(format!(
        "{location}: {} does not match {pattern}",
        shown(value)
    ))
}

fn table_fits(
    words: &BTreeMap<String, KernelValue>,
    keyword: Keyword<'_>,
    value: &KernelValue,
    at: SchemaPosition<'_>,
) -> Result<(), String> {
    let KernelValue::Map(entries) = value else {
        return Ok(());
    };
    let SchemaPosition { path, .. } = at;
    let known = match words.get("properties") {
        Some(KernelValue::Map(known)) => Some(known),
        _ => None,
    };
    match keyword.name {
        "required" => {
            let missing = list(keyword.setting).into_iter().find(|name| match name {
                KernelValue::Text(name) => !entries.contains_key(name),
                _ => true,
            });
            match missing {
                Some(name) => Err(format!("{path}: {name} is missing")),
                None => Ok(()),
            }
        }
        "properties" => entries.iter().try_for_each(|(name, value)| {
            match known.and_then(|known| known.get(name)) {
                Some(schema) => fits(schema, value, at.below(&format!("{path}.{name}"))),
                None => Ok(()),
            }
        }),
        _ => entries.iter().try_for_each(|(name, value)| {
            if known.is_some_and(|known| known.contains_key(name)) {
                return Ok(());
            }
            fits(keyword.setting, value, at.below(&format!("{path}.{name}")))
        }),
    }
}

fn items_fit(
    setting: &KernelValue,
    value: &KernelValue,
    at: SchemaPosition<'_>,
) -> Result<(), String> {
    let KernelValue::List(items) = value else {
        return Ok(());
    };
    let mut items = items.iter().enumerate();
    items.try_for_each(|(idx, item)| fits(setting, item, at.below(&format!("{}[{idx}]", at.path))))
}

fn joined_fit(
    keyword: Keyword<'_>,
    value: &KernelValue,
    at: SchemaPosition<'_>,
) -> Result<(), String> {
    let schemas = list(keyword.setting);
    let tried = schemas
        .iter()
        .map(|schema| fits(schema, value, at.below(at.path)));
    let tried: Vec<Result<(), String>> = tried.collect();
    let n_fitting = tried.iter().filter(|one| one.is_ok()).count();
    let word = keyword.name;
    let is_met = match word {
        "anyOf" => n_fitting > 0,
        "allOf" => n_fitting == schemas.len(),
        "oneOf" => n_fitting == 1,
        _ => n_fitting == 0,
    };
    if is_met {
        return Ok(());
    }
    let why = tried.into_iter().find_map(Result::err);
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    Err(format!(
        "{}: {n_fitting} of {} in {word} match{why}",
        at.path,
        schemas.len()
    ))
}

fn shown(value: &KernelValue) -> String {
    let text = value.to_json();
    match text.len() {
        0..=80 => text,
        _ => format!(
            "{}…",
            text.get(..text.floor_char_boundary(80)).unwrap_or_default()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    fn said(schema: &str, value: &str) -> String {
        let schema = serde_json::from_str(schema).unwrap();
        let value = serde_json::from_str(value).unwrap();
        check(&schema, &value).err().unwrap_or_default()
    }

    #[test]
    fn shapes_fit_or_say_where_they_do_not() {
        let schema = r#"{"$schema": "x", "type": "object", "required": ["a"],
            "additionalProperties": false,
            "properties": {"a": {"type": "integer", "minimum": 1, "maximum": 3},
                           "b": {"type": "array", "minItems": 1, "items": {"enum": ["x", 2]}},
                           "c": {"type": ["string", "null"], "pattern": "^v", "maxLength": 3}}}"#;
        for (value, expected) in [
            (r#"{"a": 1}"#, ""),
            (r#"{"a": 3, "b": ["x", 2], "c": null}"#, ""),
            (r#"{"b": []}"#, "$.b: [] does not match minItems: 1"),
            (r#"{"c": null}"#, "$: a is missing"),
            (r#"{"a": 4}"#, "$.a: 4 does not match maximum: 3"),
            (
                r#"{"a": 1.5}"#,
                r#"$.a: 1.5 does not match type: "integer""#,
            ),
            (r#"{"a": 1, "d": 0}"#, "$.d: nothing is allowed here"),
            (
                r#"{"a": 1, "b": ["y"]}"#,
                r#"$.b[0]: "y" does not match enum: ["x",2]"#,
            ),
            (r#"{"a": 1, "c": "w"}"#, r#"$.c: "w" does not match ^v"#),
            (
                r#"{"a": 1, "c": "vvvv"}"#,
                r#"$.c: "vvvv" does not match maxLength: 3"#,
            ),
            ("[]", r#"$: [] does not match type: "object""#),
        ] {
            let found = said(schema, value);
            if expected.is_empty() {
                assert_eq!(found, "", "{value}");
            } else {
                assert!(found.contains(expected), "{value}: {found}");
            }
        }
    }

    #[test]
    fn joined_shapes_count_what_fits() {
        let one = r#"{"oneOf": [{"type": "integer"}, {"minimum": 2}]}"#;
        assert_eq!(said(one, "1"), "");
        assert!(said(one, "3").contains("2 of 2 in oneOf match"));
        assert_eq!(said(r#"{"not": {"const": 1}}"#, "2"), "");
        assert!(said(r#"{"not": {"const": 1}}"#, "1").contains("1 of 1 in not"));
        assert!(said(r#"{"anyOf": [{"const": 1}]}"#, "2").contains("0 of 1 in anyOf"));
        assert_eq!(
            said(r#"{"allOf": [true, {"exclusiveMinimum": 1}]}"#, "2"),
            ""
        );
    }

    #[test]
    fn what_is_not_understood_does_not_pass() {
        assert!(said(r#"{"format": "email"}"#, "1").contains("not supported"));
        assert!(said("3", "1").contains("the schema is a whole number"));
        assert!(!said(r#"{"minLength": "x"}"#, r#""a""#).is_empty());
    }
}
