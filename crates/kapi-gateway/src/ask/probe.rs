//! Whether a model is there and answers, found out before anything depends on it.
//!
//! Asks the server for the model by name where that proves key and model, and otherwise for a few
//! tokens. Changes nothing.

use std::time::Duration;

use kapi_spend::rules::tokens::TokenCounts;
use kapi_sys::cancel::Cancel;
use serde_json::Value;

use crate::ask::error::AskError;
use crate::ask::form::AnswerForm;
use crate::ask::line::AskConnection;
use crate::ask::server::{ModelApi, ModelEndpoint};
use crate::ask::{ModelQuestion, UsageTally, converse, path_model, refusal, watch};

/// Tokens of a call that only asks whether anybody is there; fewer are refused by some servers.
const OUTPUT_TOKENS: u32 = 16;

/// What became of a probe.
#[derive(Debug)]
pub struct ProbeOutcome {
    /// The model that is there, or why it is of no use.
    pub outcome: Result<AvailableModel, AskError>,
    /// What it used.
    pub usage: TokenCounts,
    /// Requests whose use nobody told.
    pub n_unmetered: u32,
}

/// A model that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AvailableModel {
    /// The model, as the server names it: some serve another than was asked for.
    pub model: String,
    /// How it was seen.
    pub seen: AvailabilitySource,
}

/// How a model was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AvailabilitySource {
    /// The server lists it, and accepted the key for that.
    Listed,
    /// It answered.
    Answered,
}

/// Finds out whether a model can be asked, within `deadline`.
#[must_use]
pub fn probe(
    server: &ModelEndpoint,
    model: &str,
    deadline: Duration,
    cancel: &Cancel,
) -> ProbeOutcome {
    let (outcome, tally) = watch::within(server, deadline, cancel, |line, tally| {
        look(line, model, tally)
    });
    ProbeOutcome {
        outcome,
        usage: tally.usage,
        n_unmetered: tally.n_unmetered,
    }
}

/// What a server says to being asked for its list of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerGreeting {
    /// It accepts the key, or wants none.
    Accepted,
    /// It is there and has no such list.
    NoList,
}

/// Asks a server for its list of models, which uses no tokens, within `deadline`.
pub fn greet(
    server: &ModelEndpoint,
    deadline: Duration,
    cancel: &Cancel,
) -> Result<ServerGreeting, AskError> {
    let (outcome, _) = watch::within(server, deadline, cancel, |line, _| {
        let path = match line.api {
            ModelApi::Anthropic | ModelApi::Chat => "/v1/models",
            ModelApi::Gemini => "/v1beta/models",
        };
        let raw = line.get(path)?;
        match raw.status {
            200 => Ok(ServerGreeting::Accepted),
            404 | 405 | 501 => Ok(ServerGreeting::NoList),
            _ => Err(refusal::error_of(line, "", &raw)),
        }
    });
    outcome
}

fn look(
    line: &AskConnection<'_>,
    model: &str,
    tally: &mut UsageTally,
) -> Result<AvailableModel, AskError> {
    let name = path_model(line, model)?;
    let path = match line.api {
        ModelApi::Anthropic => format!("/v1/models/{name}"),
        ModelApi::Gemini => format!("/v1beta/models/{name}"),
        // Many of these list models to everybody, or not at all: only an answer proves anything.
        ModelApi::Chat => return call(line, model, tally),
    };
    let raw = line.get(&path)?;
    match raw.status {
        200 => {
            let body: Value = crate::ask::answer::parse(&line.host, &raw.body)?;
            let named = ["id", "name"].iter().find_map(|key| body[*key].as_str());
            Ok(AvailableModel {
                model: named
                    .unwrap_or(model)
                    .trim_start_matches("models/")
                    .to_owned(),
                seen: AvailabilitySource::Listed,
            })
        }
        // A server that only speaks alike may have no list; the model itself then tells.
        404 | 405 | 501 => call(line, model, tally),
        _ => Err(refusal::error_of(line, model, &raw)),
    }
}

fn call(
    line: &AskConnection<'_>,
    model: &str,
    tally: &mut UsageTally,
) -> Result<AvailableModel, AskError> {
    let question = ModelQuestion {
        model,
        system: "",
        user: "Say: ok",
        output_tokens_max: OUTPUT_TOKENS,
        form: AnswerForm::Words,
    };
    let answered = |model: String| AvailableModel {
        model,
        seen: AvailabilitySource::Answered,
    };
    match converse(line, &question, tally) {
        Ok(answer) => Ok(answered(answer.model)),
        // It is there and works, whatever it had to say.
        Err(AskError::CutShort { .. } | AskError::Empty { .. } | AskError::Refused { .. }) => {
            Ok(answered(model.to_owned()))
        }
        Err(error) => Err(error),
    }
}
