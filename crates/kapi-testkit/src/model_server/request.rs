//! A request for an answer, stripped of its API: the model, the tools on offer,
//! and the history as a list of who spoke.
//! It does not know the scenario, nor what will be answered.

use serde_json::Value;

use crate::model_server::record::Api;

/// A request for an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelRequest {
    pub(crate) api: Api,
    pub(crate) model: String,
    pub(crate) delivery: Delivery,
    pub(crate) tools: Vec<OfferedTool>,
    /// Instructions, and reminders that the client adds to user messages.
    pub(crate) system: String,
    pub(crate) history: Vec<RequestMessage>,
    /// The JSON schema that the answer must fit, where one is demanded.
    pub(crate) schema: Option<Value>,
}

/// How the client wants its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    Whole,
    /// Server-sent events.
    Events,
    /// Server-sent events that end with one for the usage, as chat completions can.
    EventsWithUsage,
    /// One JSON array of all events, as Gemini streams unless asked for events.
    Array,
}

/// Who spoke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestMessage {
    User(String),
    ToolResult(String),
    Assistant,
}

/// A tool that the client offers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OfferedTool {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) form: ToolForm,
}

/// What a tool takes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ToolForm {
    /// Named arguments of this schema.
    Function(Value),
    /// One free text.
    Freeform,
    /// Words by which the client looks further tools up, and offers those it finds.
    Search,
}

impl ModelRequest {
    /// Returns everything that was not said by the assistant or by a tool.
    pub(crate) fn prompt_text(&self) -> String {
        let mut text = self.system.clone();
        for entry in &self.history {
            if let RequestMessage::User(said) = entry {
                text.push('\n');
                text.push_str(said);
            }
        }
        text
    }

    /// Returns the last user message and the history after it.
    pub(crate) fn last_user(&self) -> (&str, &[RequestMessage]) {
        for (index, entry) in self.history.iter().enumerate().rev() {
            if let RequestMessage::User(said) = entry {
                return (said, self.history.get(index + 1..).unwrap_or_default());
            }
        }
        ("", &self.history)
    }

    /// Returns the last tool result, or nothing.
    pub(crate) fn last_tool_result(&self) -> &str {
        self.history
            .iter()
            .rev()
            .find_map(|entry| match entry {
                RequestMessage::ToolResult(result) => Some(result.as_str()),
                RequestMessage::User(_) | RequestMessage::Assistant => None,
            })
            .unwrap_or_default()
    }

    /// Returns the working directory that the client names, if it names one.
    pub(crate) fn working_directory(&self) -> Option<String> {
        directory_in(&self.system).or_else(|| directory_in(&self.prompt_text()))
    }
}

impl OfferedTool {
    /// Returns a tool with named arguments.
    pub(crate) fn function(name: &str, schema: &Value) -> Self {
        Self {
            name: name.to_owned(),
            namespace: None,
            form: ToolForm::Function(schema.clone()),
        }
    }
}

/// Counts the assistant's turns; entries next to each other are one turn.
pub(crate) fn assistant_turns(history: &[RequestMessage]) -> usize {
    let mut turns = 0;
    let mut open = false;
    for entry in history {
        let speaks = *entry == RequestMessage::Assistant;
        if speaks && !open {
            turns += 1;
        }
        open = speaks;
    }
    turns
}

/// Flattens the content of a message, whatever its API, to text.
pub(crate) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<String> = parts.iter().map(text_of).collect();
            texts.join("\n")
        }
        Value::Object(part) => ["text", "output", "content"]
            .iter()
            .find_map(|key| part.get(*key))
            .map_or_else(|| content.to_string(), text_of),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) => content.to_string(),
    }
}

/// Returns a string field, or nothing.
pub(crate) fn string_at(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// Returns the items of an array field, or none.
pub(crate) fn items_at<'value>(value: &'value Value, key: &str) -> &'value [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Finds the absolute path after the words clients introduce their directory with.
fn directory_in(text: &str) -> Option<String> {
    const INTRODUCTIONS: [&str; 6] = [
        "<cwd>",
        "working directory",
        "working in the directory",
        "working in the following directories",
        "workspace directories",
        "workspace directory",
    ];
    let lower = text.to_ascii_lowercase();
    INTRODUCTIONS.iter().find_map(|introduction| {
        lower
            .match_indices(introduction)
            .find_map(|(index, found)| path_after(text.get(index + found.len()..)?))
    })
}

/// Reads an absolute path that follows at once, but for punctuation and "is".
fn path_after(text: &str) -> Option<String> {
    let text = text.trim_start_matches(|c: char| " \t\r\n:*`-".contains(c));
    let text = text.strip_prefix("is ").unwrap_or(text);
    let text = text.trim_start_matches(|c: char| " \t\r\n:*`-".contains(c));
    let end = text
        .find(|c: char| c.is_whitespace() || "<`\"".contains(c))
        .unwrap_or(text.len());
    let path = text.get(..end)?.trim_end_matches(['.', ',', ';', ')']);
    path.starts_with('/').then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{RequestMessage, assistant_turns, directory_in};

    #[test]
    fn directories_as_the_clients_name_them() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(directory_in(text).as_deref(), expected, "{text}");
        };
        check("<cwd>/srv/a b", Some("/srv/a"));
        check("<environment_context>\n  <cwd>/w</cwd>\n", Some("/w"));
        check(" - Primary working directory: /w/x\n", Some("/w/x"));
        check("Current working directory: /w", Some("/w"));
        check("I'm currently working in the directory: /w\n", Some("/w"));
        check("- **Workspace Directories:**\n  - /w\n", Some("/w"));
        check("The working directory is `/w`.", Some("/w"));
        check("your working directory persists", None);
        check("no directory at all: /w", None);
    }

    #[test]
    fn neighbouring_assistant_entries_are_one_turn() {
        let user = || RequestMessage::User("u".to_owned());
        let result = || RequestMessage::ToolResult("r".to_owned());
        assert_eq!(assistant_turns(&[]), 0);
        assert_eq!(
            assistant_turns(&[user(), RequestMessage::Assistant, RequestMessage::Assistant]),
            1
        );
        assert_eq!(
            assistant_turns(&[
                user(),
                RequestMessage::Assistant,
                result(),
                RequestMessage::Assistant,
                user()
            ]),
            2
        );
    }
}
