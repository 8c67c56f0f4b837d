//! A loop's body with places for values.
//!
//! A placeholder is `{`, a name, `}`, without blanks: `{market}`, `{payload.files.0}`. A name is
//! letters, digits, `_` and `-`, parts of it joined by dots, and begins with a letter or `_`. A name
//! in double braces, `{{market}}`, stands for itself in single ones. Every other brace is text, so
//! JSON and code stay as they are. What is inserted is never read again.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kapi_core::value::KernelValue;

use crate::rules::request::PROMPT_BYTES_MAX;

/// The longest name of an input in bytes.
const NAME_BYTES_MAX: usize = 64;
/// The words that a name may begin with besides inputs.
const RESERVED: [&str; 3] = ["payload", "trigger", "last"];
/// What can be said of the trigger.
const TRIGGER: [&str; 2] = ["trigger.type", "trigger.source"];
/// What can be said of the run before.
const LAST: [&str; 3] = ["last.summary", "last.next_action", "last.status"];

/// A body that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<TemplatePart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Placeholder { name: String, line: usize },
}

/// A placeholder that nothing is known for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPlaceholder {
    /// The line of the body, from 1.
    pub line: usize,
    /// The name.
    pub name: String,
    /// The names that can be used; `payload.*` stands for whatever comes with the trigger.
    pub known: Vec<String>,
}

/// What a run can say.
#[derive(Debug, Clone, Copy)]
pub struct TemplateScope<'a> {
    /// The inputs, with what was given for this run.
    pub inputs: &'a BTreeMap<String, KernelValue>,
    /// What came with the trigger.
    pub payload: &'a KernelValue,
    /// The trigger's type: manual, cron, event, retrigger.
    pub trigger_type: &'a str,
    /// Where the trigger came from; empty when it says nothing.
    pub trigger_source: &'a str,
    /// What the run before left.
    pub last: PreviousRun<'a>,
}

/// What the run before left; empty texts when there was none.
#[derive(Debug, Clone, Copy)]
pub struct PreviousRun<'a> {
    /// What it did.
    pub summary: &'a str,
    /// What it says should be done next.
    pub next_action: &'a str,
    /// How it ended; `none` when there was none.
    pub status: &'a str,
}

impl PreviousRun<'static> {
    /// There was no run before.
    pub const NONE: Self = Self {
        summary: "",
        next_action: "",
        status: "none",
    };
}

/// Why a body cannot be filled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// Nothing is known under a name.
    #[error("fill line {line} of the body: unknown placeholder {{{name}}}; available: \
        {}", .known.join(", "))]
    Unknown {
        /// The line of the body, from 1.
        line: usize,
        /// The name.
        name: String,
        /// The names that can be used.
        known: Vec<String>,
    },
    /// An input has no value.
    #[error("fill line {line} of the body: {{{name}}} has no value")]
    NoValue {
        /// The line of the body, from 1.
        line: usize,
        /// The name.
        name: String,
    },
    /// The filled body is longer than a prompt may be.
    #[error("fill the body: with its values it is longer than {PROMPT_BYTES_MAX} bytes")]
    TooLong,
}

impl Template {
    /// Reads a body; every text is one.
    #[must_use]
    pub fn parse(body: &str) -> Self {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut line = 1;
        let mut rest = body;
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            line += before.matches('\n').count();
            text.push_str(before);
            if let Some((name, after)) = escaped(from) {
                text.push('{');
                text.push_str(name);
                text.push('}');
                rest = after;
            } else if let Some((name, after)) = placeholder(from) {
                parts.push(TemplatePart::Text(std::mem::take(&mut text)));
                let name = name.to_owned();
                parts.push(TemplatePart::Placeholder { name, line });
                rest = after;
            } else {
                text.push('{');
                rest = from.strip_prefix('{').unwrap_or_default();
            }
        }
        text.push_str(rest);
        parts.push(TemplatePart::Text(text));
        Self { parts }
    }

    /// Returns the placeholders that a run with these inputs could not fill, one for each name.
    ///
    /// What comes with a trigger is known only when a run begins.
    #[must_use]
    pub fn unknown(&self, inputs: &BTreeMap<String, KernelValue>) -> Vec<UnknownPlaceholder> {
        let mut found: Vec<UnknownPlaceholder> = Vec::new();
        for part in &self.parts {
            let TemplatePart::Placeholder { name, line } = part else {
                continue;
            };
            let is_new = found.iter().all(|unknown| unknown.name != *name);
            if is_new && !is_declared(name, inputs) {
                found.push(UnknownPlaceholder {
                    line: *line,
                    name: name.clone(),
                    known: known(inputs, &KernelValue::Null),
                });
            }
        }
        found
    }

    /// Fills the body.
    ///
    /// # Errors
    /// When nothing is known under a name, an input has no value, or the result is too long.
    pub fn render(&self, scope: &TemplateScope<'_>) -> Result<String, TemplateError> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Placeholder { name, line } => {
                    scope.insert(name, *line, &mut out)?;
                }
            }
            if out.len() > PROMPT_BYTES_MAX {
                return Err(TemplateError::TooLong);
            }
        }
        Ok(out)
    }
}

impl TemplateScope<'_> {
    fn insert(&self, name: &str, line: usize, out: &mut String) -> Result<(), TemplateError> {
        let text = match name {
            "trigger.type" => self.trigger_type,
            "trigger.source" => self.trigger_source,
            "last.summary" => self.last.summary,
            "last.next_action" => self.last.next_action,
            "last.status" => self.last.status,
            name => {
                let unknown = || TemplateError::Unknown {
                    line,
                    name: name.to_owned(),
                    known: known(self.inputs, self.payload),
                };
                let value = self.value(name).ok_or_else(unknown)?;
                if *value == KernelValue::Null {
                    let name = name.to_owned();
                    return Err(TemplateError::NoValue { line, name });
                }
                // Writing to a string cannot fail.
                return write!(out, "{value}").map_err(|_| TemplateError::TooLong);
            }
        };
        out.push_str(text);
        Ok(())
    }

    fn value(&self, name: &str) -> Option<&KernelValue> {
        match name.split_once('.') {
            Some(("payload", path)) => self.payload.get(path),
            None if name == "payload" => Some(self.payload),
            split => {
                let (input, path) = split.map_or((name, None), |(input, path)| (input, Some(path)));
                let value = self.inputs.get(input)?;
                path.map_or(Some(value), |path| value.get(path))
            }
        }
    }
}

/// Checks the name of an input.
///
/// # Errors
/// With the rule that it breaks.
pub fn check_input_name(name: &str) -> Result<(), &'static str> {
    if RESERVED.contains(&name) {
        return Err("payload, trigger and last are reserved names");
    }
    let is_whole = name_of(name).is_some_and(|(_, rest)| rest.is_empty());
    if !is_whole || name.contains('.') || name.len() > NAME_BYTES_MAX {
        return Err(
            "an input name has 1 to 64 letters, digits, _ and -, and starts with a letter or _",
        );
    }
    Ok(())
}

fn escaped(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = name_of(text.strip_prefix("{{")?)?;
    Some((name, rest.strip_prefix("}}")?))
}

fn placeholder(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = name_of(text.strip_prefix('{')?)?;
    Some((name, rest.strip_prefix('}')?))
}

/// Splits a name from what follows it.
fn name_of(text: &str) -> Option<(&str, &str)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let end = text.find(|c: char| !is_name(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(end)?;
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_whole = name.split('.').all(|part| !part.is_empty());
    (begins_well && is_whole).then_some((name, rest))
}

/// Tells whether a run with these inputs has something under a name, as far as can be said before.
fn is_declared(name: &str, inputs: &BTreeMap<String, KernelValue>) -> bool {
    if TRIGGER.contains(&name) || LAST.contains(&name) {
        return true;
    }
    let (first, path) = match name.split_once('.') {
        Some((first, path)) => (first, Some(path)),
        None => (name, None),
    };
    if first == "payload" {
        return true;
    }
    match (inputs.get(first), path) {
        // What is given for the run may have any shape.
        (Some(KernelValue::Null), _) | (Some(_), None) => true,
        (Some(value), Some(path)) => value.get(path).is_some(),
        (None, _) => false,
    }
}

fn known(inputs: &BTreeMap<String, KernelValue>, payload: &KernelValue) -> Vec<String> {
    let mut names: Vec<String> = inputs.keys().cloned().collect();
    match payload {
        KernelValue::Map(entries) => {
            names.extend(entries.keys().map(|key| format!("payload.{key}")));
        }
        _ => names.push("payload.*".to_owned()),
    }
    let fixed = TRIGGER.iter().chain(LAST.iter());
    names.extend(fixed.map(|name| (*name).to_owned()));
    names
}

#[cfg(test)]
mod tests;
