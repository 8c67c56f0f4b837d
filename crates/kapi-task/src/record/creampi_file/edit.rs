//! Setting one key of the file: that value changes, and every other byte stays as it was.
//!
//! Comments, spaces and line ends are the person's.

use std::path::{Path, PathBuf};

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::tokens::{Token, TokenAndRange};
use kapi_settings::jsonc;
use kapi_sys::disk::{Disk, create_dir_durably};

use crate::record::creampi_file::{CreampiError, load_text, parse, root_of};
use crate::record::guardrails::replace::{ReplaceOutcome, replace_unless_changed};

/// How long a change waits for another process to finish its own, in milliseconds.
const LOCK_WAIT_MS: u64 = 10_000;
/// How often a change is tried again because a person was saving the file.
const TRIES_MAX: usize = 16;
/// What a new file begins as.
const EMPTY: &str = "{\n}\n";

/// A value to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewValue<'a> {
    /// A text.
    Text(&'a str),
    /// A whole number.
    Number(u32),
    /// A backend's model; for a key such as `backends.pi`.
    Backend {
        /// Who serves it.
        provider: &'a str,
        /// Its name.
        model: &'a str,
    },
}

/// A file to change.
#[derive(Clone)]
pub struct Editing<'a> {
    /// The disk.
    pub disk: &'a dyn Disk,
    /// The file; its project's directory is there.
    pub file: PathBuf,
    /// The lock that other processes of ours take, too.
    pub lock: PathBuf,
    /// What they are told about who holds it ("kapi config").
    pub owner: String,
}

/// Sets a key in the file, which is made when it is missing. Durable when it returns.
///
/// # Errors
/// When the file would not say what it should (nothing is written then), it keeps being changed
/// by somebody else, or the disk refuses.
pub fn set_in_file(
    editing: &Editing<'_>,
    key: &str,
    value: &NewValue<'_>,
) -> Result<(), CreampiError> {
    let file = &editing.file;
    let _held = editing
        .disk
        .lock(&editing.lock, &editing.owner, LOCK_WAIT_MS)?;
    if file.is_symlink() {
        let file = file.clone();
        return Err(CreampiError::IsLink { file });
    }
    for _ in 0..TRIES_MAX {
        let before = load_text(editing.disk, file)?;
        let after = set(before.as_deref().unwrap_or(EMPTY), file, key, value)?;
        if before.as_deref() == Some(after.as_str()) {
            return Ok(());
        }
        if let (None, Some(directory)) = (&before, file.parent()) {
            create_dir_durably(editing.disk, &root_of(file), directory)?;
        }
        let before = before.as_ref().map(String::as_bytes);
        match replace_unless_changed(editing.disk, file, before, after.as_bytes())? {
            ReplaceOutcome::Yes => return Ok(()),
            ReplaceOutcome::NoItChanged => {}
        }
    }
    let file = file.clone();
    Err(CreampiError::KeepsChanging { file })
}

/// Returns the text with a key set: `maxConcurrency`, or `backends.pi` and below it
/// `backends.pi.model`.
///
/// # Errors
/// When the text, before or after, does not say what it should: an unknown key, a value out of
/// range, or no JSON.
pub fn set(
    text: &str,
    file: &Path,
    key: &str,
    value: &NewValue<'_>,
) -> Result<String, CreampiError> {
    // Only a text without problems is edited: its places are then what they seem.
    parse(text, file)?;
    let path: Vec<&str> = key.splitn(3, '.').collect();
    let after = match value {
        NewValue::Text(value) => put(text, &path, &quoted(value)),
        NewValue::Number(value) => put(text, &path, &value.to_string()),
        NewValue::Backend { provider, model } => {
            // An entry that is there keeps its comments: only the two values change.
            let is_there = parse(text, file)?
                .backends
                .contains_key(path.get(1).copied().unwrap_or_default());
            if path.len() == 2 && is_there {
                let below = |name| [path.as_slice(), &[name]].concat();
                let text = put(text, &below("provider"), &quoted(provider));
                put(&text, &below("model"), &quoted(model))
            } else {
                let [provider, model] = [quoted(provider), quoted(model)];
                let whole = format!("{{ \"provider\": {provider}, \"model\": {model} }}");
                put(text, &path, &whole)
            }
        }
    };
    parse(&after, file)?;
    Ok(after)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Puts a value at a path, in a text that is known to be valid.
fn put(text: &str, path: &[&str], value: &str) -> String {
    let bom = text.len() - text.trim_start_matches('\u{feff}').len();
    let (bom, body) = text.split_at(bom);
    let parsed = jsonc::layout(body).ok();
    let tokens = parsed.as_ref().and_then(|parsed| parsed.tokens.as_deref());
    let root = parsed.as_ref().and_then(|parsed| parsed.value.as_ref());
    let Some(Value::Object(root)) = root else {
        return text.to_owned();
    };
    let body = put_below(body, tokens.unwrap_or_default(), root, path, value);
    format!("{bom}{body}")
}

fn put_below(
    text: &str,
    tokens: &[TokenAndRange<'_>],
    object: &Object<'_>,
    path: &[&str],
    value: &str,
) -> String {
    let Some((name, below)) = path.split_first() else {
        return text.to_owned();
    };
    match object.get(name).map(|property| &property.value) {
        Some(Value::Object(inner)) if !below.is_empty() => {
            put_below(text, tokens, inner, below, value)
        }
        Some(old) => splice(text, &[(old.start()..old.end(), value)]),
        None => {
            let value = below.iter().rev().fold(value.to_owned(), |value, name| {
                format!("{{ {}: {value} }}", quoted(name))
            });
            add(text, tokens, object, &format!("{}: {value}", quoted(name)))
        }
    }
}

/// Adds a property at the end of an object, in the way the object is laid out.
fn add(text: &str, tokens: &[TokenAndRange<'_>], object: &Object<'_>, property: &str) -> String {
    let (start, close) = (object.start(), object.end().saturating_sub(1));
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let Some(last) = object.properties.last() else {
        return add_first(text, start, close, property, newline);
    };
    let after_last: Vec<&TokenAndRange<'_>> = tokens
        .iter()
        .filter(|token| token.range.start >= last.end() && token.range.start < close)
        .collect();
    let comma = after_last
        .iter()
        .find(|token| matches!(token.token, Token::Comma));
    let mut end = comma.map_or(last.end(), |comma| comma.range.end);
    let is_one_line = !text[start..close].contains('\n');
    // A remark behind the last value on its line belongs to that value.
    for remark in &after_last {
        let is_remark = matches!(remark.token, Token::CommentLine(_) | Token::CommentBlock(_));
        let between = text.get(end..remark.range.start);
        if is_remark && between.is_some_and(|between| !between.contains('\n')) {
            end = remark.range.end;
        }
    }
    let gap = if is_one_line {
        " ".to_owned()
    } else {
        format!("{newline}{}", indent_of(text, last.start()))
    };
    match comma {
        Some(_) => splice(text, &[(end..end, &format!("{gap}{property},"))]),
        None => splice(
            text,
            &[
                (last.end()..last.end(), ","),
                (end..end, &format!("{gap}{property}")),
            ],
        ),
    }
}

/// Adds the first property of an object that has none.
fn add_first(text: &str, start: usize, close: usize, property: &str, newline: &str) -> String {
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let outer = leading_space(&text[line_start..start]);
    let inside = &text[start + 1..close];
    match inside.rfind('\n') {
        // The brace stands alone on its line: ours goes before that line.
        Some(at) if inside[at + 1..].trim().is_empty() => {
            let location = start + 1 + at + 1;
            let line = format!("{outer}  {property}{newline}");
            splice(text, &[(location..location, &line)])
        }
        Some(_) | None => {
            let line = format!("{newline}{outer}  {property}{newline}{outer}");
            splice(text, &[(close..close, &line)])
        }
    }
}

/// Returns how the line of a property is indented.
fn indent_of(text: &str, property: usize) -> String {
    let line_start = text[..property].rfind('\n').map_or(0, |at| at + 1);
    let before = &text[line_start..property];
    let space = leading_space(before);
    if space.len() == before.len() {
        space.to_owned()
    } else {
        format!("{space}  ")
    }
}

fn leading_space(text: &str) -> &str {
    let rest = text.trim_start_matches([' ', '\t']);
    &text[..text.len() - rest.len()]
}

/// Replaces ranges, which are in order and apart.
fn splice(text: &str, changes: &[(std::ops::Range<usize>, &str)]) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let mut from = 0;
    for (range, new) in changes {
        out.push_str(&text[from..range.start]);
        out.push_str(new);
        from = range.end;
    }
    out.push_str(&text[from..]);
    out
}
