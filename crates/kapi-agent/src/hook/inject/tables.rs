//! Hooks in settings that are TOML: Codex CLI's.
//!
//! Text is only ever added, so comments and order stay as they are; then the result is parsed
//! and must hold everything the old file held plus our hooks, or nothing is returned.

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::{InjectError, MergedHooks, line_at, reason};

const EVENTS: &[&str] = &[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "Stop",
    "SessionEnd",
];

/// The events whose groups have a matcher for tools.
const TOOL_EVENTS: &[&str] = &["PreToolUse", "PostToolUse"];

/// The features that stand for hooks, under their present and their former name.
const FEATURES: &[(&str, &str)] = &[
    ("hooks", "features.hooks"),
    ("codex_hooks", "features.codex_hooks"),
];

pub(super) fn merged(
    file: &'static str,
    text: &str,
    command: &str,
) -> Result<MergedHooks, InjectError> {
    let old = parse(file, text)?;
    let mut current = text.to_owned();
    for event in EVENTS {
        let table = parse(file, &current)?;
        if runs(&table, event, command) {
            continue;
        }
        current =
            with_group(&current, &table, event, command).ok_or_else(|| shape(file, text, event))?;
    }
    let is_off = |name: &str| {
        let features = old.get("features");
        features.and_then(|features| features.get(name)) == Some(&Value::Boolean(false))
    };
    let muted_by = FEATURES.iter().find(|(name, _)| is_off(name));
    Ok(MergedHooks {
        content: (current != text).then_some(current),
        muted_by: muted_by.map(|(_, key)| *key),
    })
}

fn parse(file: &'static str, text: &str) -> Result<Table, InjectError> {
    toml::from_str(text).map_err(|error: toml::de::Error| InjectError::Syntax {
        file,
        line: error.span().map_or(1, |span| line_at(text, span.start)),
        reason: reason(&error.message()),
    })
}

/// Tells whether the hooks of an event run this command already.
fn runs(table: &Table, event: &str, command: &str) -> bool {
    let groups = table
        .get("hooks")
        .and_then(|hooks| hooks.get(event))
        .and_then(Value::as_array);
    let hooks = groups
        .into_iter()
        .flatten()
        .filter_map(|group| group.get("hooks").and_then(Value::as_array))
        .flatten();
    let mut commands = hooks.filter_map(|hook| hook.get("command").and_then(Value::as_str));
    commands.any(|theirs| theirs == command)
}

/// Returns the text with one more group, added in the first way that keeps everything else.
fn with_group(text: &str, table: &Table, event: &str, command: &str) -> Option<String> {
    let candidates = [
        Some(appended(text, event, command)),
        in_list(text, event, command),
        in_inline_table(text, event, command),
    ];
    candidates
        .into_iter()
        .flatten()
        .find(|text| is_exactly_more(text, table, event, command))
}

/// Tells whether a text holds the table plus one group and nothing else.
fn is_exactly_more(text: &str, table: &Table, event: &str, command: &str) -> bool {
    let Ok(mut found) = toml::from_str::<Table>(text) else {
        return false;
    };
    let is_there = runs(&found, event, command);
    let Some(hooks) = found.get_mut("hooks").and_then(Value::as_table_mut) else {
        return false;
    };
    let Some(groups) = hooks.get_mut(event).and_then(Value::as_array_mut) else {
        return false;
    };
    let n_groups = groups.len();
    let ours = group(event, command);
    groups.retain(|group| *group != ours);
    let has_one_less = groups.len() + 1 == n_groups;
    if groups.is_empty() && !has_event(table, event) {
        hooks.remove(event);
    }
    if hooks.is_empty() && !table.contains_key("hooks") {
        found.remove("hooks");
    }
    is_there && has_one_less && found == *table
}

fn has_event(table: &Table, event: &str) -> bool {
    table
        .get("hooks")
        .is_some_and(|hooks| hooks.get(event).is_some())
}

fn group(event: &str, command: &str) -> Value {
    let hook: Table = [("type", "command"), ("command", command)]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), Value::from(value)))
        .collect();
    let mut group = Table::new();
    if TOOL_EVENTS.contains(&event) {
        group.insert("matcher".to_owned(), Value::from(".*"));
    }
    group.insert("hooks".to_owned(), Value::Array(vec![Value::Table(hook)]));
    Value::Table(group)
}

fn appended(text: &str, event: &str, command: &str) -> String {
    let gap = match text {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let matcher = if TOOL_EVENTS.contains(&event) {
        "matcher = \".*\"\n"
    } else {
        ""
    };
    let command = Value::from(command);
    format!(
        "{text}{gap}[[hooks.{event}]]\n{matcher}[[hooks.{event}.hooks]]\ntype = \"command\"\n\
         command = {command}\n"
    )
}

/// Adds a group to `Event = [ … ]`.
fn in_list(text: &str, event: &str, command: &str) -> Option<String> {
    let root = DeTable::parse(text).ok()?;
    let list = root.get_ref().get("hooks")?.get_ref().get(event)?;
    matches!(list.get_ref(), DeValue::Array(_)).then_some(())?;
    inserted(text, list, '[', &format!("{}, ", group(event, command)))
}

/// Adds an event to `hooks = { … }`.
fn in_inline_table(text: &str, event: &str, command: &str) -> Option<String> {
    let root = DeTable::parse(text).ok()?;
    let hooks = root.get_ref().get("hooks")?;
    let table = hooks.get_ref().as_table()?;
    let comma = if table.is_empty() { " " } else { ", " };
    let group = group(event, command);
    inserted(text, hooks, '{', &format!(" {event} = [{group}]{comma}"))
}

/// Puts text right behind the bracket that a value begins with.
fn inserted(text: &str, value: &Spanned<DeValue<'_>>, begin: char, new: &str) -> Option<String> {
    let (before, from) = text.split_at_checked(value.span().start)?;
    let rest = from.strip_prefix(begin)?;
    Some(format!("{before}{begin}{new}{rest}"))
}

fn shape(file: &'static str, text: &str, event: &str) -> InjectError {
    let parsed = DeTable::parse(text).ok();
    let root = parsed.as_ref().map(Spanned::get_ref);
    let hooks = root.and_then(|root| root.get("hooks"));
    let list = hooks.and_then(|hooks| hooks.get_ref().get(event));
    let (value, key, expected) = match list {
        Some(list) => (Some(list), format!("hooks.{event}"), "a list of tables"),
        None => (hooks, "hooks".to_owned(), "a table"),
    };
    InjectError::Shape {
        file,
        line: value.map_or(1, |value| line_at(text, value.span().start)),
        key,
        expected,
    }
}
