//! JSON in one form only, so that its hash means its content.
//!
//! Keys sorted by their bytes, no white space. Knows nothing of what the document says.

use serde::Serialize;
use serde_json::Value;

use crate::hash::sha256_hex;

/// Returns the SHA-256 of a value's canonical JSON.
///
/// # Errors
/// When the value cannot be written as JSON.
pub fn canonical_hash(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let value = serde_json::to_value(value)?;
    let mut text = String::new();
    write_value(&value, &mut text);
    Ok(sha256_hex(text.as_bytes()))
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
        Value::Array(items) => {
            out.push('[');
            for (idx, item) in items.iter().enumerate() {
                if idx > 0 {
                    out.push(',');
                }
                write_value(item, out);
            }
            out.push(']');
        }
        // Sorted here and not by the map, whose order depends on how serde_json was built.
        Value::Object(fields) => {
            let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (idx, (key, field)) in sorted.into_iter().enumerate() {
                if idx > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_value(field, out);
            }
            out.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{canonical_hash, write_value};

    #[test]
    fn keys_are_sorted_at_every_depth() {
        let mut text = String::new();
        write_value(
            &json!({"b": [1, {"z": null, "a": "\n"}], "a": true}),
            &mut text,
        );
        assert_eq!(text, r#"{"a":true,"b":[1,{"a":"\n","z":null}]}"#);
    }

    #[test]
    fn the_hash_follows_the_content() {
        let hash = |value| canonical_hash(&value).unwrap();
        assert_eq!(hash(json!({"a": 1, "b": 2})), hash(json!({"b": 2, "a": 1})));
        assert_ne!(hash(json!({"a": 1})), hash(json!({"a": "1"})));
    }
}
