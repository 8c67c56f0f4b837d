//! `contract.yaml`: the contract for people to read.
//!
//! Derived: the log holds the contract, and this file is never read back by Kapi. Writes the
//! small part of YAML that a contract needs.

use serde_json::Value;

use crate::record::error::EngineError;
use crate::rules::state::Goal;

/// Returns a goal's contract as YAML, with its hash in a comment.
///
/// # Errors
/// When the contract cannot be written as JSON, of which this is made.
pub fn contract_yaml(goal: &Goal) -> Result<String, EngineError> {
    let encode = |source| EngineError::Encode {
        what: "the contract",
        source,
    };
    let contract = serde_json::to_value(&goal.contract).map_err(encode)?;
    let mut text = format!(
        "# The contract of goal {}. A copy for reading: the log next to it is authoritative.\n\
         # Approved by its hash, {}.\n",
        goal.id, goal.contract_hash
    );
    write_fields(&contract, 0, &mut text);
    Ok(text)
}

/// Returns fields as YAML below one key, in the order given.
#[must_use]
pub fn yaml_under(key: &str, fields: &[(&str, Value)]) -> String {
    let mut text = format!("{key}:\n");
    for (name, value) in fields {
        indent(1, &mut text);
        text.push_str(name);
        text.push(':');
        write_value(value, 1, &mut text);
    }
    text
}

fn write_fields(value: &Value, depth: usize, out: &mut String) {
    let Value::Object(fields) = value else { return };
    for (key, field) in fields {
        indent(depth, out);
        out.push_str(key);
        out.push(':');
        write_value(field, depth, out);
    }
}

/// Writes what follows a key or a dash, up to the end of the line or lines.
fn write_value(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            write_fields(value, depth + 1, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            for item in items {
                indent(depth + 1, out);
                out.push('-');
                write_value(item, depth + 1, out);
            }
        }
        Value::String(text) if is_plain_block(text) => {
            out.push_str(" |-\n");
            for line in text.lines() {
                indent(depth + 1, out);
                out.push_str(line);
                out.push('\n');
            }
        }
        // JSON's scalars are YAML's too.
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {
            out.push(' ');
            out.push_str(&value.to_string());
            out.push('\n');
        }
    }
}

/// Tells whether a text of several lines can stand as it is in an indented block.
fn is_plain_block(text: &str) -> bool {
    let is_plain = |line: &str| {
        !line.is_empty() && !line.starts_with(' ') && !line.chars().any(char::is_control)
    };
    text.contains('\n') && !text.ends_with('\n') && text.split('\n').all(is_plain)
}

fn indent(depth: usize, out: &mut String) {
    for _ in 0..depth {
        out.push_str("  ");
    }
}
