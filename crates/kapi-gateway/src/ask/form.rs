//! What a model is to answer with: words, or one small object.
//!
//! An object is asked for through a channel of the server's own where it has one, so that nothing
//! in the text that is judged can pass for the answer. Knows no server.

use serde_json::{Map, Value, json};

/// What a model is to answer with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerForm {
    /// Words, free.
    Words,
    /// One object.
    Object(&'static ObjectForm),
}

/// An object of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectForm {
    /// What it is called: letters, digits and underscores.
    pub name: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// Its fields, all of them needed, and no others.
    pub fields: &'static [FormField],
}

/// A field with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormField {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub purpose: &'static str,
    /// The only words it may hold; empty for any text.
    pub words: &'static [&'static str],
}

/// A judge's verdict, in the form in which verdicts are read.
pub const VERDICT: ObjectForm = ObjectForm {
    name: "verdict",
    purpose: "Hands in the verdict on the work.",
    fields: &[WHETHER, WHY],
};

/// The same with the token of its question: some servers hand an answer over as plain text, which
/// the text that is judged could be taken for.
pub const SEALED_VERDICT: ObjectForm = ObjectForm {
    fields: &[WHETHER, WHY, TOKEN],
    ..VERDICT
};

const WHETHER: FormField = FormField {
    name: "verdict",
    purpose: "Whether the criteria are met.",
    words: &["done", "continue", "blocked", "impossible"],
};
const WHY: FormField = FormField {
    name: "reason",
    purpose: "Why, in one or two sentences.",
    words: &[],
};
const TOKEN: FormField = FormField {
    name: "token",
    purpose: "The token of this question, as the instructions name it.",
    words: &[],
};

impl ObjectForm {
    /// Returns it as a JSON Schema.
    pub(crate) fn schema(&self) -> Value {
        let properties = self.properties("string");
        json!({
            "type": "object",
            "properties": properties,
            "required": self.names(),
            "additionalProperties": false,
        })
    }

    /// Returns it as the part of a schema that Gemini knows.
    pub(crate) fn gemini_schema(&self) -> Value {
        json!({
            "type": "OBJECT",
            "properties": self.properties("STRING"),
            "required": self.names(),
            "propertyOrdering": self.names(),
        })
    }

    /// Returns it in words, for a server without a channel for it.
    pub(crate) fn instruction(&self) -> String {
        let fields: Vec<String> = self.fields.iter().map(FormField::example).collect();
        format!(
            "Answer with one JSON object and nothing else, not even around it: {{{}}}",
            fields.join(", ")
        )
    }

    fn names(&self) -> Vec<&'static str> {
        self.fields.iter().map(|field| field.name).collect()
    }

    fn properties(&self, text_type: &str) -> Map<String, Value> {
        let property = |field: &FormField| {
            let mut property = json!({ "type": text_type, "description": field.purpose });
            if !field.words.is_empty() {
                property["enum"] = json!(field.words);
            }
            (field.name.to_owned(), property)
        };
        self.fields.iter().map(property).collect()
    }
}

impl FormField {
    fn example(&self) -> String {
        let quoted = |text: &str| format!("\"{text}\"");
        let value = if self.words.is_empty() {
            quoted(self.purpose)
        } else {
            let words: Vec<String> = self.words.iter().map(|word| quoted(word)).collect();
            words.join(" | ")
        };
        format!("\"{}\": {value}", self.name)
    }
}
