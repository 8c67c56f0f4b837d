//! One question in Gemini's `generateContent`: the body asked, the body answered.
//!
//! Knows shapes only.

use kapi_spend::rules::tokens::TokenCounts;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ask::answer::{AnswerChannel, AnswerText, ParsedAnswer, parse, said};
use crate::ask::error::AskError;
use crate::ask::form::AnswerForm;
use crate::ask::{ModelQuestion, Wording, system_text};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiResponse {
    candidates: Option<Vec<GeminiCandidate>>,
    prompt_feedback: Option<Feedback>,
    usage_metadata: Option<GeminiUsage>,
    model_version: Option<String>,
    response_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCandidate {
    content: Option<GeminiContent>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct GeminiContent {
    parts: Option<Vec<GeminiPart>>,
}

#[derive(Deserialize)]
struct GeminiPart {
    text: Option<String>,
    /// Marks what the model thought and did not say.
    #[serde(default)]
    thought: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiUsage {
    prompt_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    total_token_count: Option<u64>,
}

pub(super) fn body(question: &ModelQuestion<'_>, wording: Wording) -> Value {
    let mut config = json!({ "maxOutputTokens": question.output_tokens_max });
    if let (AnswerForm::Object(form), AnswerChannel::Format) = (question.form, wording.channel) {
        config["responseMimeType"] = json!("application/json");
        config["responseSchema"] = form.gemini_schema();
    }
    let mut body = json!({
        "contents": [{ "role": "user", "parts": [{ "text": question.user }] }],
        "generationConfig": config,
    });
    let system = system_text(question, wording.channel);
    if !system.is_empty() {
        body["systemInstruction"] = json!({ "parts": [{ "text": system }] });
    }
    body
}

pub(super) fn read(host: &str, channel: AnswerChannel, body: &[u8]) -> ParsedAnswer {
    let generated: GeminiResponse = match parse(host, body) {
        Ok(generated) => generated,
        Err(error) => return ParsedAnswer::nothing(error),
    };
    let usage = generated
        .usage_metadata
        .as_ref()
        .and_then(GeminiUsage::counts);
    let blocked = generated
        .prompt_feedback
        .and_then(|feedback| feedback.block_reason);
    let candidate = generated.candidates.and_then(|mut all| all.pop());
    let said = match (blocked, candidate) {
        (Some(reason), _) => Err(refused(host, &reason)),
        (None, candidate) => said_in(host, channel, candidate),
    };
    ParsedAnswer {
        said,
        usage,
        model: generated.model_version,
        request_id: generated.response_id,
    }
}

fn refused(host: &str, reason: &str) -> AskError {
    AskError::Refused {
        host: host.to_owned(),
        reason: reason.chars().take(100).collect(),
    }
}

fn said_in(
    host: &str,
    channel: AnswerChannel,
    candidate: Option<GeminiCandidate>,
) -> Result<AnswerText, AskError> {
    let malformed = || AskError::Malformed {
        host: host.to_owned(),
        source: None,
    };
    let candidate = candidate.ok_or_else(malformed)?;
    match candidate.finish_reason.as_deref() {
        Some("STOP") => {}
        Some("MAX_TOKENS") => {
            return Err(AskError::CutShort {
                host: host.to_owned(),
            });
        }
        Some(
            reason @ ("SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT"
            | "SPII"),
        ) => return Err(refused(host, reason)),
        Some(_) | None => return Err(malformed()),
    }
    let parts = candidate.content.and_then(|content| content.parts);
    let texts: Vec<String> = parts
        .unwrap_or_default()
        .into_iter()
        .filter(|part| !part.thought)
        .filter_map(|part| part.text)
        .collect();
    let channel = match channel {
        AnswerChannel::Tool | AnswerChannel::Text => AnswerChannel::Text,
        AnswerChannel::Format => AnswerChannel::Format,
    };
    said(host, texts.concat(), channel)
}

impl GeminiUsage {
    fn counts(&self) -> Option<TokenCounts> {
        let prompt = self.prompt_token_count?;
        let input = prompt.saturating_add(self.tool_use_prompt_token_count.unwrap_or(0));
        let cache_read = self.cached_content_token_count.unwrap_or(0).min(input);
        let written = [self.candidates_token_count, self.thoughts_token_count];
        let output = written.into_iter().flatten().fold(0, u64::saturating_add);
        let beyond = self.total_token_count.unwrap_or(0).saturating_sub(input);
        Some(TokenCounts {
            input: input.saturating_sub(cache_read),
            output: output.max(beyond),
            cache_read,
            cache_write: 0,
        })
    }
}
