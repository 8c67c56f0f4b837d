//! What a model answered, and by which way it came.
//!
//! Text is as the model wrote it: foreign, and only capped in length.

use kapi_spend::rules::tokens::TokenCounts;
use serde::Deserialize;

use crate::ask::error::AskError;

/// The way by which an answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerChannel {
    /// As the arguments of the one tool that the model had to call.
    Tool,
    /// As text that the server held to the asked form.
    Format,
    /// As text that nobody held to any form.
    Text,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAnswer {
    /// What it said. Where an object was asked for and the channel is not plain text, this is the
    /// object's JSON as the server sent it.
    pub text: String,
    /// By which way it came.
    pub channel: AnswerChannel,
    /// The model that answered, as the server names it.
    pub model: String,
    /// The server's own name for the request.
    pub request_id: Option<String>,
}

/// What could be read of an answer's body.
#[derive(Debug)]
pub(crate) struct ParsedAnswer {
    pub(crate) said: Result<AnswerText, AskError>,
    /// None where the body does not tell.
    pub(crate) usage: Option<TokenCounts>,
    pub(crate) model: Option<String>,
    pub(crate) request_id: Option<String>,
}

/// What a model said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnswerText {
    pub(crate) text: String,
    pub(crate) channel: AnswerChannel,
}

impl ParsedAnswer {
    /// Returns what is left of a body that is no answer.
    pub(crate) const fn nothing(error: AskError) -> Self {
        Self {
            said: Err(error),
            usage: None,
            model: None,
            request_id: None,
        }
    }
}

/// Reads a body as an answer of the given shape.
pub(crate) fn parse<'b, T: Deserialize<'b>>(host: &str, body: &'b [u8]) -> Result<T, AskError> {
    serde_json::from_slice(body).map_err(|source| AskError::Malformed {
        host: host.to_owned(),
        source: Some(source),
    })
}

/// Returns text as an answer, unless there is none.
pub(crate) fn said(
    host: &str,
    text: String,
    channel: AnswerChannel,
) -> Result<AnswerText, AskError> {
    if text.trim().is_empty() {
        return Err(AskError::Empty {
            host: host.to_owned(),
        });
    }
    Ok(AnswerText { text, channel })
}
