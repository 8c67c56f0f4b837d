//! Asking a model one question: no tools to use, no history, no agent in between.
//!
//! [`ask`] returns what it said, or by a channel of its own the object that was asked for, with
//! exact usage; [`probe::probe`] finds out beforehand whether it can. Tries nothing twice but what
//! a server did not understand. Knows no goals, no prices and what no answer means.

pub mod answer;
pub mod error;
pub mod form;
pub mod probe;
pub mod server;

mod anthropic;
mod chat;
mod gemini;
mod line;
mod refusal;
mod reset;
mod watch;

use std::time::Duration;

use kapi_spend::rules::tokens::TokenCounts;
use kapi_sys::cancel::Cancel;
use serde_json::Value;

use crate::ask::answer::{AnswerChannel, ModelAnswer, ParsedAnswer};
use crate::ask::error::AskError;
use crate::ask::form::AnswerForm;
use crate::ask::line::{AskConnection, RawAnswer};
use crate::ask::server::{ModelApi, ModelEndpoint};

/// Requests of one question: each channel once, and once more with the limit's other name.
const TRIES_MAX: u32 = 4;

/// One question.
#[derive(Debug, Clone, Copy)]
pub struct ModelQuestion<'a> {
    /// The model, as its server names it.
    pub model: &'a str,
    /// What the model is told to be; may be empty.
    pub system: &'a str,
    /// What it is asked.
    pub user: &'a str,
    /// The most tokens it may write, reasoning included.
    pub output_tokens_max: u32,
    /// What it is to answer with.
    pub form: AnswerForm,
}

/// What became of a question.
#[derive(Debug)]
pub struct QuestionOutcome {
    /// The answer, or why there is none.
    pub outcome: Result<ModelAnswer, AskError>,
    /// Everything that servers said was used, also by answers that are of no use.
    pub usage: TokenCounts,
    /// Requests that may have cost something and whose use nobody told.
    pub n_unmetered: u32,
}

/// What is known of the use of several requests.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UsageTally {
    pub(crate) usage: TokenCounts,
    pub(crate) n_unmetered: u32,
}

/// Asks a question and waits for the answer, for at most `deadline`.
///
/// Raising `cancel` ends it within a moment.
#[must_use]
pub fn ask(
    server: &ModelEndpoint,
    question: &ModelQuestion<'_>,
    deadline: Duration,
    cancel: &Cancel,
) -> QuestionOutcome {
    let (outcome, tally) = watch::within(server, deadline, cancel, |line, tally| {
        converse(line, question, tally)
    });
    QuestionOutcome {
        outcome,
        usage: tally.usage,
        n_unmetered: tally.n_unmetered,
    }
}

/// How one request is worded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wording {
    pub(crate) channel: AnswerChannel,
    pub(crate) limit: LimitName,
}

/// What the limit of tokens is called; servers for chat completions know one, the other, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitName {
    MaxTokens,
    MaxCompletionTokens,
}

/// Asks, and asks in other words where the server does not understand.
pub(crate) fn converse(
    line: &AskConnection<'_>,
    question: &ModelQuestion<'_>,
    tally: &mut UsageTally,
) -> Result<ModelAnswer, AskError> {
    let mut channels = channels(line.api, question.form).iter().copied();
    let mut wording = Wording {
        channel: channels.next().unwrap_or(AnswerChannel::Text),
        // A server that does not know this name says so; one that does not know the other
        // would write without end.
        limit: LimitName::MaxTokens,
    };
    for _ in 1..TRIES_MAX {
        match ask_once(line, question, wording, tally) {
            Err(AskError::Rejected {
                status: 400 | 422 | 501,
                message,
                ..
            }) if wording.limit == LimitName::MaxTokens
                && message.contains("max_completion_tokens") =>
            {
                wording.limit = LimitName::MaxCompletionTokens;
            }
            Err(
                error @ AskError::Rejected {
                    status: 400 | 422 | 501,
                    ..
                },
            ) => match channels.next() {
                Some(channel) => wording.channel = channel,
                None => return Err(error),
            },
            ended => return ended,
        }
    }
    ask_once(line, question, wording, tally)
}

/// Returns the channels to try for an answer, the surest first.
const fn channels(api: ModelApi, form: AnswerForm) -> &'static [AnswerChannel] {
    match (form, api) {
        (AnswerForm::Words, _) => &[AnswerChannel::Text],
        (AnswerForm::Object(_), ModelApi::Anthropic) => &[
            AnswerChannel::Tool,
            AnswerChannel::Format,
            AnswerChannel::Text,
        ],
        (AnswerForm::Object(_), ModelApi::Chat) => &[
            AnswerChannel::Format,
            AnswerChannel::Tool,
            AnswerChannel::Text,
        ],
        (AnswerForm::Object(_), ModelApi::Gemini) => &[AnswerChannel::Format, AnswerChannel::Text],
    }
}

fn ask_once(
    line: &AskConnection<'_>,
    question: &ModelQuestion<'_>,
    wording: Wording,
    tally: &mut UsageTally,
) -> Result<ModelAnswer, AskError> {
    let model = path_model(line, question.model)?;
    let (path, body) = match line.api {
        ModelApi::Anthropic => (
            "/v1/messages".to_owned(),
            anthropic::body(question, model, wording),
        ),
        ModelApi::Chat => (
            "/v1/chat/completions".to_owned(),
            chat::body(question, model, wording),
        ),
        ModelApi::Gemini => (
            format!("/v1beta/models/{model}:generateContent"),
            gemini::body(question, wording),
        ),
    };
    let raw = match line.post(&path, &body) {
        Ok(raw) => raw,
        Err(error) => {
            tally.n_unmetered += u32::from(error.may_have_cost());
            return Err(error);
        }
    };
    if raw.status != 200 {
        return Err(refusal::error_of(line, question.model, &raw));
    }
    let read = read(line, wording.channel, &raw);
    match &read.usage {
        Some(usage) => tally.usage.add(usage),
        None => tally.n_unmetered += 1,
    }
    let said = read.said?;
    Ok(ModelAnswer {
        text: said.text,
        channel: said.channel,
        model: read.model.unwrap_or_else(|| question.model.to_owned()),
        request_id: raw.request_id().or(read.request_id),
    })
}

fn read(line: &AskConnection<'_>, channel: AnswerChannel, raw: &RawAnswer) -> ParsedAnswer {
    match line.api {
        ModelApi::Anthropic => anthropic::read(&line.host, channel, &raw.body),
        ModelApi::Chat => chat::read(&line.host, channel, &raw.body),
        ModelApi::Gemini => gemini::read(&line.host, channel, &raw.body),
    }
}

/// Returns a model's name as it may stand in a path.
pub(crate) fn path_model<'m>(
    line: &AskConnection<'_>,
    model: &'m str,
) -> Result<&'m str, AskError> {
    let name = match line.api {
        ModelApi::Gemini => model.strip_prefix("models/").unwrap_or(model),
        ModelApi::Anthropic | ModelApi::Chat => model,
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:@/+".contains(&byte);
    let fits_path = line.api != ModelApi::Gemini || !name.contains(['/', ':', '@', '+']);
    if !name.is_empty() && name.len() <= 200 && name.bytes().all(is_plain) && fits_path {
        Ok(name)
    } else {
        Err(AskError::UnknownModel {
            host: line.host.clone(),
            model: model.chars().take(200).collect(),
        })
    }
}

/// Returns the system text, with what the channel needs said in words.
pub(crate) fn system_text(question: &ModelQuestion<'_>, channel: AnswerChannel) -> String {
    let more = match (question.form, channel) {
        (AnswerForm::Words, _) | (AnswerForm::Object(_), AnswerChannel::Format) => String::new(),
        (AnswerForm::Object(form), AnswerChannel::Tool) => {
            format!(
                "Give your answer by calling the tool `{}`, once.",
                form.name
            )
        }
        (AnswerForm::Object(form), AnswerChannel::Text) => form.instruction(),
    };
    let parts = [question.system.trim(), more.as_str()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

/// Returns an object's schema, where one is asked for.
pub(crate) fn schema_of(
    question: &ModelQuestion<'_>,
) -> Option<(&'static form::ObjectForm, Value)> {
    match question.form {
        AnswerForm::Words => None,
        AnswerForm::Object(form) => Some((form, form.schema())),
    }
}
