//! The smallest value that fits a JSON schema, for arguments a step does not name
//! and for formats that side requests demand.
//! It is not a validator.

use serde_json::{Map, Value, json};

/// How deep a schema is followed; deeper parts become null.
const DEPTH_MAX: usize = 8;

/// Returns the smallest value that fits; `hint` becomes the text of strings.
pub(crate) fn smallest(schema: &Value, hint: &str) -> Value {
    smallest_at(schema, hint, 0)
}

/// Adds what a schema requires and the arguments do not have.
pub(crate) fn fill_required(schema: &Value, arguments: &mut Map<String, Value>) {
    for key in required_keys(schema) {
        if !arguments.contains_key(key) {
            let value = smallest(&schema["properties"][key], key);
            arguments.insert(key.to_owned(), value);
        }
    }
}

/// Returns the properties that a schema requires at its top.
pub(crate) fn required_keys(schema: &Value) -> Vec<&str> {
    schema["required"]
        .as_array()
        .map(|keys| keys.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

fn smallest_at(schema: &Value, hint: &str, depth: usize) -> Value {
    if depth > DEPTH_MAX {
        return Value::Null;
    }
    if let Some(fixed) = schema.get("const").or_else(|| schema.get("default")) {
        return fixed.clone();
    }
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        if let Some(first) = schema[choice].get(0) {
            return smallest_at(first, hint, depth + 1);
        }
    }
    let kind = match &schema["type"] {
        Value::String(kind) => kind.to_ascii_lowercase(),
        Value::Array(kinds) => kinds
            .first()
            .and_then(Value::as_str)
            .unwrap_or("string")
            .to_ascii_lowercase(),
        _ if schema["properties"].is_object() => "object".to_owned(),
        _ => "string".to_owned(),
    };
    match kind.as_str() {
        "object" => {
            let mut object = Map::new();
            for key in required_keys(schema) {
                let value = smallest_at(&schema["properties"][key], key, depth + 1);
                object.insert(key.to_owned(), value);
            }
            Value::Object(object)
        }
        "array" => {
            let length = schema["minItems"].as_u64().unwrap_or(0).min(16);
            (0..length)
                .map(|_| smallest_at(&schema["items"], hint, depth + 1))
                .collect()
        }
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| json!(0)),
        "boolean" => json!(false),
        "null" => Value::Null,
        _ => json!(hint),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::smallest;

    #[test]
    fn the_smallest_value_of_each_kind() {
        let check = |schema: Value, expected: Value| {
            assert_eq!(smallest(&schema, "hint"), expected, "{schema}");
        };
        check(json!({ "type": "string" }), json!("hint"));
        check(json!({ "type": "STRING" }), json!("hint"));
        check(
            json!({ "type": ["number", "null"], "minimum": 3 }),
            json!(3),
        );
        check(json!({ "enum": ["a", "b"] }), json!("a"));
        check(json!({ "anyOf": [{ "type": "boolean" }] }), json!(false));
        check(
            json!({ "type": "array", "minItems": 2, "items": { "type": "null" } }),
            json!([null, null]),
        );
        check(
            json!({
                "properties": { "a": { "type": "integer" }, "b": { "type": "string" } },
                "required": ["a"],
            }),
            json!({ "a": 0 }),
        );
    }
}
