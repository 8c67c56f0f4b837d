//! The answer to a call of a kernel's tool: a text, the same as data, and whether it is an error.
//!
//! The shape of a tool's result in the specification. Over a socket and from `kapi agent` it is
//! one JSON object: `ok`, `text`, `details`.

use serde_json::{Value, json};

/// What an agent is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAnswer {
    /// For the model to read.
    pub text: String,
    /// The same as data.
    pub details: Value,
    /// Whether it was refused.
    pub is_error: bool,
}

impl ToolAnswer {
    /// Returns an answer that is no error.
    #[must_use]
    pub const fn new(text: String, details: Value) -> Self {
        Self {
            text,
            details,
            is_error: false,
        }
    }

    /// Returns a refusal in its own words.
    #[must_use]
    pub fn error(text: &str) -> Self {
        Self::refusal(text.to_owned(), json!({"error": text}))
    }

    /// Returns a refusal with data of its own.
    #[must_use]
    pub const fn refusal(text: String, details: Value) -> Self {
        Self {
            text,
            details,
            is_error: true,
        }
    }

    /// Returns the refusal of a task, as the specification words it.
    #[must_use]
    pub fn not_launched(reason: &str) -> Self {
        Self::refusal(format!("[ERROR] {reason}"), json!({"error": reason}))
    }

    /// Returns the one JSON object that it is elsewhere.
    #[must_use]
    pub fn to_value(&self) -> Value {
        json!({"ok": !self.is_error, "text": self.text, "details": self.details})
    }

    /// Returns the answer that such an object is; one in the shape of the goal's tools is read too,
    /// for that is how a call that did not arrive is answered.
    #[must_use]
    pub fn from_value(given: &Value) -> Self {
        let said = given["text"].as_str().or_else(|| given["message"].as_str());
        let details = match given.get("details") {
            Some(details) => details.clone(),
            None => json!({"error": given["reason"]}),
        };
        Self {
            text: said.unwrap_or_default().to_owned(),
            details,
            is_error: given["ok"] != json!(true),
        }
    }

    /// Returns the result of a call as MCP has it.
    #[must_use]
    pub fn to_result(&self) -> Value {
        json!({
            "content": [{"type": "text", "text": self.text}],
            "structuredContent": self.details,
            "isError": self.is_error,
        })
    }
}
