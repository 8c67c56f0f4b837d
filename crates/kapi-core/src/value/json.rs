//! Writing a value as JSON on one line.
//!
//! Reading is whoever has a parser; the form is the one `serde_json` writes.

use std::fmt::Write as _;

use crate::value::KernelValue;

/// Writes a value at the end of a text.
pub(super) fn write(value: &KernelValue, out: &mut String) {
    match value {
        KernelValue::Null => out.push_str("null"),
        KernelValue::Bool(true) => out.push_str("true"),
        KernelValue::Bool(false) => out.push_str("false"),
        KernelValue::Integer(number) => out.push_str(&number.to_string()),
        KernelValue::Decimal(number) => out.push_str(number.as_str()),
        KernelValue::Text(text) => write_text(text, out),
        KernelValue::List(items) => {
            out.push('[');
            for (location, item) in items.iter().enumerate() {
                separate(location, out);
                write(item, out);
            }
            out.push(']');
        }
        KernelValue::Map(entries) => {
            out.push('{');
            for (location, (key, entry)) in entries.iter().enumerate() {
                separate(location, out);
                write_text(key, out);
                out.push(':');
                write(entry, out);
            }
            out.push('}');
        }
    }
}

fn separate(location: usize, out: &mut String) {
    if location > 0 {
        out.push(',');
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if u32::from(c) < 0x20 => {
                // Writing to a text cannot fail.
                let _written: std::fmt::Result = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
