//! Hooks in settings that are JSON: Claude Code's and Gemini CLI's.
//!
//! What is not touched keeps its very text, numbers and all; only the order of keys is sorted
//! on the levels that are rebuilt. Comments, which Gemini allows, are read over.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{InjectError, MergedHooks, line_at, reason};

/// How one agent wants its hooks.
pub(super) struct HookDialect {
    /// Events that have a matcher for tools.
    tool_events: &'static [&'static str],
    /// Events without one.
    events: &'static [&'static str],
    /// Seconds or milliseconds, as the agent counts.
    timeout: u32,
    /// The name of our hooks, where hooks have names.
    name: Option<&'static str>,
    allows_comments: bool,
    /// Settings that turn all hooks off: pointer, value, and how people know it.
    mutes: &'static [(&'static str, bool, &'static str)],
}

pub(super) const CLAUDE: HookDialect = HookDialect {
    tool_events: &["PreToolUse", "PostToolUse", "PostToolUseFailure"],
    events: &["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"],
    timeout: 5,
    name: None,
    allows_comments: false,
    mutes: &[("/disableAllHooks", true, "disableAllHooks")],
};

/// Its events around model calls come with every piece of an answer and carry the whole history:
/// they stay unhooked.
pub(super) const GEMINI: HookDialect = HookDialect {
    tool_events: &["BeforeTool", "AfterTool"],
    events: &["SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd"],
    timeout: 5_000,
    name: Some("kapi-status"),
    allows_comments: true,
    mutes: &[("/hooksConfig/enabled", false, "hooksConfig.enabled")],
};

type Fields<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

pub(super) fn merged(
    file: &'static str,
    text: &str,
    dialect: &HookDialect,
    command: &str,
) -> Result<MergedHooks, InjectError> {
    let stripped = if dialect.allows_comments {
        Cow::Owned(without_comments(text))
    } else {
        Cow::Borrowed(text)
    };
    let source = JsonSource {
        file,
        text: if stripped.trim().is_empty() {
            "{}"
        } else {
            &stripped
        },
    };
    let whole: &RawValue = source.read(source.text)?;
    let root: Fields<'_> = source.object(whole, "the whole file")?;
    let hooks: Fields<'_> = match root.get("hooks") {
        Some(raw) => source.object(raw, "hooks")?,
        None => Fields::new(),
    };
    let mut new_lists: BTreeMap<&str, String> = BTreeMap::new();
    for event in dialect.tool_events.iter().chain(dialect.events) {
        let list: Vec<&RawValue> = match hooks.get(*event) {
            Some(raw) => source.array(raw, &format!("hooks.{event}"))?,
            None => Vec::new(),
        };
        if !list.iter().any(|group| runs(group, command)) {
            let mut texts: Vec<String> = list.iter().map(|raw| raw.get().to_owned()).collect();
            texts.push(dialect.group(event, command).to_string());
            new_lists.insert(event, format!("[{}]", texts.join(", ")));
        }
    }
    let muted_by = dialect.muted_by(source.text);
    let content = if new_lists.is_empty() {
        None
    } else {
        Some(rebuilt(&root, &hooks, &new_lists))
    };
    Ok(MergedHooks { content, muted_by })
}

/// The text that is read, for telling where something is wrong.
#[derive(Clone, Copy)]
struct JsonSource<'a> {
    file: &'static str,
    text: &'a str,
}

impl<'a> JsonSource<'a> {
    fn read<T: serde::Deserialize<'a>>(self, text: &'a str) -> Result<T, InjectError> {
        serde_json::from_str(text).map_err(|error| InjectError::Syntax {
            file: self.file,
            line: error.line(),
            reason: reason(&error),
        })
    }

    fn object(self, raw: &'a RawValue, key: &str) -> Result<Fields<'a>, InjectError> {
        serde_json::from_str(raw.get()).map_err(|_| self.shape(raw, key, "an object"))
    }

    fn array(self, raw: &'a RawValue, key: &str) -> Result<Vec<&'a RawValue>, InjectError> {
        serde_json::from_str(raw.get()).map_err(|_| self.shape(raw, key, "a list"))
    }

    fn shape(self, raw: &RawValue, key: &str, expected: &'static str) -> InjectError {
        let (begin, at) = (self.text.as_ptr().addr(), raw.get().as_ptr().addr());
        InjectError::Shape {
            file: self.file,
            line: line_at(self.text, at.saturating_sub(begin)),
            key: key.to_owned(),
            expected,
        }
    }
}

impl HookDialect {
    fn group(&self, event: &str, command: &str) -> Value {
        let mut hook = json!({"type": "command", "command": command, "timeout": self.timeout});
        if let (Some(name), Some(fields)) = (self.name, hook.as_object_mut()) {
            fields.insert("name".to_owned(), Value::from(name));
        }
        let mut group = json!({ "hooks": [hook] });
        if let (true, Some(fields)) = (self.tool_events.contains(&event), group.as_object_mut()) {
            fields.insert("matcher".to_owned(), Value::from("*"));
        }
        group
    }

    fn muted_by(&self, text: &str) -> Option<&'static str> {
        let settings: Value = serde_json::from_str(text).ok()?;
        let is_set = |pointer: &str, value: bool| settings.pointer(pointer) == Some(&json!(value));
        let mut mutes = self.mutes.iter();
        mutes
            .find(|(pointer, value, _)| is_set(pointer, *value))
            .map(|(_, _, name)| *name)
    }
}

/// Tells whether a group of hooks runs this command already.
fn runs(group: &RawValue, command: &str) -> bool {
    let Ok(group) = serde_json::from_str::<Value>(group.get()) else {
        return false;
    };
    let hooks = group.get("hooks").and_then(Value::as_array);
    hooks.is_some_and(|hooks| {
        hooks
            .iter()
            .any(|hook| hook.get("command").and_then(Value::as_str) == Some(command))
    })
}

fn rebuilt(root: &Fields<'_>, hooks: &Fields<'_>, new_lists: &BTreeMap<&str, String>) -> String {
    let mut lists: BTreeMap<&str, &str> = hooks
        .iter()
        .map(|(event, raw)| (event.as_ref(), raw.get()))
        .collect();
    lists.extend(
        new_lists
            .iter()
            .map(|(event, list)| (*event, list.as_str())),
    );
    let hooks = object_text(&lists, "    ", "  }");
    let mut fields: BTreeMap<&str, &str> = root
        .iter()
        .map(|(key, raw)| (key.as_ref(), raw.get()))
        .collect();
    fields.insert("hooks", &hooks);
    let mut text = object_text(&fields, "  ", "}");
    text.push('\n');
    text
}

fn object_text(fields: &BTreeMap<&str, &str>, indent: &str, end: &str) -> String {
    let fields: Vec<String> = fields
        .iter()
        .map(|(key, text)| format!("{indent}{}: {text}", Value::from(*key)))
        .collect();
    format!("{{\n{}\n{end}", fields.join(",\n"))
}

/// Returns the text with comments as blanks, so that every line keeps its number.
fn without_comments(text: &str) -> String {
    // A text without them must not be changed by looking for them.
    if serde_json::from_str::<IgnoredAny>(text).is_ok() {
        return text.to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut is_string = false;
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some(_)) if is_string => {
                plain.push(c);
                plain.extend(chars.next());
            }
            ('"', _) => {
                is_string = !is_string;
                plain.push(c);
            }
            ('/', Some('/')) if !is_string => while chars.next_if(|c| *c != '\n').is_some() {},
            ('/', Some('*')) if !is_string => {
                chars.next();
                plain.push_str(&line_ends_of_comment(&mut chars));
            }
            _ => plain.push(c),
        }
    }
    plain
}

/// Passes over the rest of a block comment and returns the line ends in it.
fn line_ends_of_comment(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut line_ends = String::new();
    let mut last = ' ';
    for c in chars.by_ref() {
        if (last, c) == ('*', '/') {
            break;
        }
        if c == '\n' {
            line_ends.push(c);
        }
        last = c;
    }
    line_ends
}
