//! The small part of YAML that a list of tasks needs, written so that people like to read it.
//!
//! Every text that could be read as anything but itself is quoted, and characters that do not
//! show are written as escapes. Knows no task.

use crate::rules::plan::visible::shows;

/// Where a value without quotes may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScalarPosition {
    /// Behind a key or a dash.
    Block,
    /// Between brackets.
    Flow,
}

/// Returns a text as one scalar, without quotes where that is safe.
pub(crate) fn scalar(text: &str) -> String {
    if is_plain(text, ScalarPosition::Block) {
        text.to_owned()
    } else {
        quoted(text)
    }
}

/// Returns what follows a key: one scalar, or an indented block for a text of several lines.
pub(crate) fn text(text: &str, indent: usize) -> String {
    if !is_plain_block(text) {
        return scalar(text);
    }
    let margin = " ".repeat(indent);
    let lines: Vec<String> = text
        .lines()
        .map(|line| format!("\n{margin}{line}"))
        .collect();
    format!("|-{}", lines.concat())
}

/// Returns names or commands in brackets.
pub(crate) fn flow<'a>(items: impl Iterator<Item = &'a str>) -> String {
    let items: Vec<String> = items
        .map(|item| {
            if is_plain(item, ScalarPosition::Flow) {
                item.to_owned()
            } else {
                quoted(item)
            }
        })
        .collect();
    format!("[{}]", items.join(", "))
}

/// Returns sentences in brackets, each in quotes.
pub(crate) fn flow_of_prose(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
    format!("[{}]", items.join(", "))
}

/// Returns a text in double quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if shows(char) => out.push(char),
            _ => out.push_str(&escape(char)),
        }
    }
    out.push('"');
    out
}

fn escape(char: char) -> String {
    let code = u32::from(char);
    if code <= 0xffff {
        format!("\\u{code:04x}")
    } else {
        format!("\\U{code:08x}")
    }
}

fn is_plain(text: &str, location: ScalarPosition) -> bool {
    const WORDS: &[&str] = &["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let starts_well = match text.chars().next() {
        None => false,
        Some(first) if first.is_ascii_digit() => is_name_after_digits(text),
        Some(first) => first.is_ascii_alphabetic(),
    };
    let is_flow_sign =
        |char| location == ScalarPosition::Flow && matches!(char, ',' | '[' | ']' | '{' | '}');
    starts_well
        && !WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && text
            .chars()
            .all(|char| shows(char) && !is_flow_sign(char) && is_space_or_none(char))
}

/// Tells whether a text that starts with a digit is a name such as `007-fix`, and no number, date
/// or time.
fn is_name_after_digits(text: &str) -> bool {
    let rest = text.trim_start_matches(|char: char| char.is_ascii_digit());
    let after_dash = rest.strip_prefix('-').and_then(|rest| rest.chars().next());
    after_dash.is_some_and(|char| char.is_ascii_lowercase())
}

/// Only the ordinary space may stand in a text without quotes.
fn is_space_or_none(char: char) -> bool {
    char == ' ' || !char.is_whitespace()
}

/// Tells whether a text of several lines can stand as it is in an indented block.
fn is_plain_block(text: &str) -> bool {
    let is_plain = |line: &str| {
        !line.is_empty()
            && !line.starts_with(' ')
            && line
                .chars()
                .all(|char| shows(char) && is_space_or_none(char))
    };
    text.contains('\n') && !text.ends_with('\n') && text.split('\n').all(is_plain)
}
