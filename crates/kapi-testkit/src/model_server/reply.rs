//! What the model says in one turn, before it takes the shape of an API.
//! It does not know why this is said, nor to which client.

use serde_json::Value;

use crate::model_server::scenario::ReplyUsage;

/// One answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelReply {
    pub(crate) text: String,
    pub(crate) calls: Vec<ReplyToolCall>,
    pub(crate) usage: ReplyUsage,
}

/// One tool call in an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReplyToolCall {
    /// Unique in the server, without the API's prefix.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) input: CallInput,
}

/// The input of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CallInput {
    /// Named arguments.
    Arguments(Value),
    /// One free text; only the responses API has such tools.
    Freeform(String),
}

/// An answer in the shape of an API, whole and as a stream of events.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RenderedReply {
    pub(crate) whole: Value,
    pub(crate) events: Vec<ServerSentEvent>,
}

/// One server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerSentEvent {
    pub(crate) name: Option<String>,
    pub(crate) text: String,
}

impl ModelReply {
    /// Returns an answer of words only.
    pub(crate) fn text(text: String, usage: ReplyUsage) -> Self {
        Self {
            text,
            calls: Vec::new(),
            usage,
        }
    }
}

impl CallInput {
    /// Returns the arguments as the JSON text that APIs carry in a string.
    pub(crate) fn arguments_text(&self) -> String {
        match self {
            Self::Arguments(arguments) => arguments.to_string(),
            Self::Freeform(text) => serde_json::json!({ "input": text }).to_string(),
        }
    }

    /// Returns the arguments as an object.
    pub(crate) fn arguments(&self) -> Value {
        match self {
            Self::Arguments(arguments) => arguments.clone(),
            Self::Freeform(text) => serde_json::json!({ "input": text }),
        }
    }
}

impl ServerSentEvent {
    /// Returns an event that carries its own name, as Anthropic and OpenAI responses do.
    pub(crate) fn named(name: &str, value: &Value) -> Self {
        Self {
            name: Some(name.to_owned()),
            text: value.to_string(),
        }
    }

    /// Returns an event without a name.
    pub(crate) fn unnamed(value: &Value) -> Self {
        Self {
            name: None,
            text: value.to_string(),
        }
    }
}

/// Cuts text into the pieces that a stream sends one by one.
///
/// Small enough that an ordinary answer takes several events, large enough that a
/// huge one does not drown in framing.
pub(crate) fn pieces(text: &str) -> Vec<&str> {
    const PIECE_BYTES: usize = 400;
    let mut pieces = Vec::new();
    let mut rest = text;
    while rest.len() > PIECE_BYTES {
        let (piece, tail) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        pieces.push(piece);
        rest = tail;
    }
    if !rest.is_empty() {
        pieces.push(rest);
    }
    pieces
}
