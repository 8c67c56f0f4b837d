//! What an agent's permission hook asks before a tool runs: which tool, with which texts.
//!
//! The payload is the agent's word, taken whole or not at all: one that cannot be read asks for
//! nothing that could be allowed. What falls under a contract's list is the core's business.

use kapi_core::consent_rule::ToolField;
use kapi_core::quote::head;
use serde_json::Value;

use super::words_of;
use crate::agent::AgentKind;
use crate::json_line;
use crate::text::one_line;

/// Bytes of one question.
pub const QUESTION_BYTES_MAX: usize = 8 << 20;
/// Nested values of a tool's input that are looked into.
const DEPTH_MAX: usize = 64;
/// Bytes of a command as it is shown to a person.
const SHOWN_BYTES_MAX: usize = 1024;

/// A tool that is about to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolQuestion {
    /// Its name, as the agent calls it.
    pub tool: String,
    /// Everything it was called with.
    pub fields: Vec<ToolField>,
    /// The command, or all of what it was called with, in one clean line.
    pub shown: String,
}

/// Tells whether an agent asks before each tool it runs, wherever it runs.
#[must_use]
pub const fn asks(kind: &AgentKind) -> bool {
    match kind {
        AgentKind::Claude
        | AgentKind::Codex
        | AgentKind::Gemini
        | AgentKind::Pi
        // What it asks permission for.
        | AgentKind::Acp(_)
        | AgentKind::Script(_) => true,
        AgentKind::Command(_) => false,
    }
}

/// Reads what a hook was given; `None` when it names no tool, or is not whole.
#[must_use]
pub fn question(payload: &[u8]) -> Option<ToolQuestion> {
    if payload.len() > QUESTION_BYTES_MAX {
        return None;
    }
    let payload: Value = serde_json::from_slice(payload).ok()?;
    let tool = one_line(json_line::text(&payload, "/tool_name"));
    let input = payload.get("tool_input").filter(|_| !tool.is_empty())?;
    let mut fields = Vec::new();
    collect("", input, DEPTH_MAX, &mut fields)?;
    let shown = shown(&tool, &fields);
    Some(ToolQuestion {
        tool,
        fields,
        shown,
    })
}

/// Collects the texts of an input under the names of their fields; `None` where it is too deep.
fn collect(key: &str, value: &Value, depth: usize, fields: &mut Vec<ToolField>) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => fields.push(field(key, text.clone())),
        Value::Array(items) => {
            fields.extend(words_of(items).map(|text| field(key, text)));
            for item in items {
                collect(key, item, depth, fields)?;
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                collect(name, member, depth, fields)?;
            }
        }
    }
    Some(())
}

fn field(key: &str, text: String) -> ToolField {
    ToolField {
        key: key.to_owned(),
        text,
    }
}

fn shown(tool: &str, fields: &[ToolField]) -> String {
    let is_command = |field: &&ToolField| matches!(field.key.as_str(), "command" | "cmd");
    let command = fields.iter().find(is_command).map(|it| it.text.clone());
    let text = command.unwrap_or_else(|| {
        let all: Vec<&str> = fields.iter().map(|field| field.text.as_str()).collect();
        format!("{tool} {}", all.join(" "))
    });
    one_line(head(&text, SHOWN_BYTES_MAX))
}
