//! The body of a model call: which model it asks for, and that its answer will tell usage.
//!
//! Everything else in it passes byte for byte. Knows no connection and no key.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::model::dialect::ModelDialect;
use crate::model::provider_tools::TakeOutError;

/// The longest model name that is passed on to those who watch.
const MODEL_CHARS_MAX: usize = 128;

/// A model call that is not sent on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The body is no JSON object, or has one of our fields twice or in another type.
    #[error("read the request as JSON")]
    Malformed(#[source] serde_json::Error),
    /// The body is JSON of another kind.
    #[error("read the request, which is not a JSON object")]
    NotAnObject,
    /// It asks to be answered out of sight.
    #[error("allow a background response: its usage could not be counted")]
    Background,
    /// It cannot be looked through.
    #[error(transparent)]
    Unclear(#[from] TakeOutError),
    /// It asks for a stream in a form that cannot be asked for usage.
    #[error("read `stream_options`, which is not an object")]
    StreamOptions,
}

/// Who asked that a stream tells its usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskedBy {
    /// The agent, or the dialect always tells it.
    Agent,
    /// The gateway added the question to the request.
    Gateway,
}

/// A model call as it will be sent on.
#[derive(Debug)]
pub(crate) struct ModelCall<'a> {
    /// The model's name, safe to show.
    pub(crate) model: String,
    pub(crate) body: Cow<'a, [u8]>,
    pub(crate) usage_asked_by: AskedBy,
    /// The most tokens that the answer may have, if the request says.
    pub(crate) output_tokens_max: Option<u64>,
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(default, borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    background: Option<bool>,
    #[serde(default, borrow, deserialize_with = "raw")]
    stream_options: Option<&'a RawValue>,
    #[serde(default, borrow)]
    max_tokens: Option<&'a RawValue>,
    #[serde(default, borrow)]
    max_completion_tokens: Option<&'a RawValue>,
    #[serde(default, borrow)]
    max_output_tokens: Option<&'a RawValue>,
    /// How many answers are wanted.
    #[serde(default, borrow)]
    n: Option<&'a RawValue>,
}

/// What a Gemini request says of the length of its answers. Both spellings are understood there.
#[derive(Deserialize)]
struct GeminiFields {
    #[serde(alias = "generation_config", rename = "generationConfig")]
    generation: GeminiGeneration,
}

#[derive(Deserialize)]
struct GeminiGeneration {
    #[serde(alias = "max_output_tokens", rename = "maxOutputTokens")]
    output_tokens_max: u64,
    #[serde(default, alias = "candidate_count", rename = "candidateCount")]
    n_candidates: Option<u64>,
}

impl Fields<'_> {
    fn output_tokens_max(&self, dialect: ModelDialect) -> Option<u64> {
        match dialect {
            ModelDialect::Anthropic => number(self.max_tokens),
            ModelDialect::Responses => number(self.max_output_tokens),
            ModelDialect::Chat => {
                let named = number(self.max_tokens).max(number(self.max_completion_tokens));
                named.map(|tokens| tokens.saturating_mul(number(self.n).unwrap_or(1).max(1)))
            }
            ModelDialect::Gemini => None,
        }
    }
}

/// Reads a number; what else stands there is the provider's to refuse.
fn number(value: Option<&RawValue>) -> Option<u64> {
    value.and_then(|value| value.get().parse().ok())
}

fn gemini_output_tokens_max(body: &[u8]) -> Option<u64> {
    let fields: GeminiFields = serde_json::from_slice(body).ok()?;
    let n_candidates = fields.generation.n_candidates.unwrap_or(1).max(1);
    let tokens = fields.generation.output_tokens_max;
    Some(tokens.saturating_mul(n_candidates))
}

/// Keeps a `null` apart from a field that is not there.
fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads a model call's body.
pub(crate) fn read<'a>(
    dialect: ModelDialect,
    tail: &str,
    body: &'a [u8],
) -> Result<ModelCall<'a>, CallError> {
    let passed = |model: &str, output_tokens_max| ModelCall {
        model: shown(model),
        body: Cow::Borrowed(body),
        usage_asked_by: AskedBy::Agent,
        output_tokens_max,
    };
    if dialect == ModelDialect::Gemini {
        let model = tail.strip_prefix("/models/").unwrap_or(tail);
        let model = model.split(':').next().unwrap_or_default();
        return Ok(passed(model, gemini_output_tokens_max(body)));
    }
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(CallError::NotAnObject);
    }
    let fields: Fields<'_> = serde_json::from_slice(body).map_err(CallError::Malformed)?;
    let model = fields.model.as_deref().unwrap_or_default();
    let output_tokens_max = fields.output_tokens_max(dialect);
    if dialect == ModelDialect::Responses && fields.background == Some(true) {
        return Err(CallError::Background);
    }
    if dialect != ModelDialect::Chat || fields.stream != Some(true) {
        return Ok(passed(model, output_tokens_max));
    }
    let Some(asking) = asking_for_usage(body, fields.stream_options)? else {
        return Ok(passed(model, output_tokens_max));
    };
    Ok(ModelCall {
        body: Cow::Owned(asking),
        usage_asked_by: AskedBy::Gateway,
        ..passed(model, output_tokens_max)
    })
}

/// Returns the body with the question for usage in it, or nothing if it asks already.
fn asking_for_usage(body: &[u8], options: Option<&RawValue>) -> Result<Option<Vec<u8>>, CallError> {
    const FIELD: &[u8] = br#""stream_options":{"include_usage":true},"#;
    let Some(options) = options else {
        let brace = body.iter().position(|&byte| byte == b'{').unwrap_or(0);
        let (before, after) = body.split_at(brace + 1);
        return Ok(Some([before, FIELD, after].concat()));
    };
    let value: Value = serde_json::from_str(options.get()).map_err(CallError::Malformed)?;
    let mut map = match value {
        Value::Object(map) => map,
        Value::Null => Map::new(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err(CallError::StreamOptions);
        }
    };
    if map.get("include_usage") == Some(&Value::Bool(true)) {
        return Ok(None);
    }
    map.insert("include_usage".to_owned(), Value::Bool(true));
    // The raw value is a slice of the body, so the distance of the two is its place in it.
    let begin = options.get().as_ptr().addr() - body.as_ptr().addr();
    let before = body.get(..begin).unwrap_or_default();
    let after = body.get(begin + options.get().len()..).unwrap_or_default();
    let value = Value::Object(map).to_string();
    Ok(Some([before, value.as_bytes(), after].concat()))
}

/// Cuts a model's name to what may be shown to a person.
fn shown(model: &str) -> String {
    model
        .chars()
        .filter(|letter| !letter.is_control())
        .take(MODEL_CHARS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{AskedBy, CallError, read};
    use crate::model::dialect::ModelDialect;

    fn rewritten(dialect: ModelDialect, body: &str) -> (String, String, AskedBy) {
        let call = read(dialect, "/chat/completions", body.as_bytes()).expect("a call");
        let text = String::from_utf8(call.body.into_owned()).expect("text");
        (call.model, text, call.usage_asked_by)
    }

    #[test]
    fn a_chat_stream_is_asked_for_usage_and_nothing_else_changes() {
        let check = |body: &str, expected: &str, asked_by: AskedBy| {
            let expected = ("m".to_owned(), expected.to_owned(), asked_by);
            assert_eq!(rewritten(ModelDialect::Chat, body), expected);
        };
        check(
            r#" {"model":"m","stream":true, "x":1.50}"#,
            r#" {"stream_options":{"include_usage":true},"model":"m","stream":true, "x":1.50}"#,
            AskedBy::Gateway,
        );
        check(
            r#"{"model":"m","stream_options" : {"a":1,"include_usage":false} ,"stream":true}"#,
            r#"{"model":"m","stream_options" : {"a":1,"include_usage":true} ,"stream":true}"#,
            AskedBy::Gateway,
        );
        check(
            r#"{"model":"m","stream":true,"stream_options":null}"#,
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
            AskedBy::Gateway,
        );
        for as_it_is in [
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
            r#"{"model":"m","stream":false}"#,
            r#"{"model":"m"}"#,
        ] {
            check(as_it_is, as_it_is, AskedBy::Agent);
        }
    }

    #[test]
    fn other_dialects_pass_as_they_are() {
        let body = r#"{"stream":true,"model":"m"}"#;
        for dialect in [ModelDialect::Anthropic, ModelDialect::Responses] {
            let expected = ("m".to_owned(), body.to_owned(), AskedBy::Agent);
            assert_eq!(rewritten(dialect, body), expected);
        }
        let tail = "/models/gemini-2.5-pro:streamGenerateContent";
        let call = read(ModelDialect::Gemini, tail, b"not json").expect("a call");
        assert_eq!(
            (call.model.as_str(), &*call.body),
            ("gemini-2.5-pro", b"not json".as_slice())
        );
    }

    #[test]
    fn the_longest_answer_that_a_request_lets_a_model_write() {
        let check = |dialect: ModelDialect, body: &str, expected: Option<u64>| {
            let call = read(dialect, "/models/g:generateContent", body.as_bytes());
            let found = call.expect("a call").output_tokens_max;
            assert_eq!(found, expected, "{dialect:?} {body}");
        };
        check(ModelDialect::Anthropic, r#"{"max_tokens":7}"#, Some(7));
        check(
            ModelDialect::Responses,
            r#"{"max_output_tokens":7}"#,
            Some(7),
        );
        // A limit that only another provider knows is none.
        check(ModelDialect::Responses, r#"{"max_tokens":7}"#, None);
        let both = r#"{"stream":true,"max_tokens":7,"max_completion_tokens":9,"n":3}"#;
        check(ModelDialect::Chat, both, Some(27));
        for odd in ["null", "-1", "1.5", "\"7\"", "{}"] {
            let body = format!(r#"{{"max_tokens":{odd}}}"#);
            check(ModelDialect::Anthropic, &body, None);
        }
        for body in [
            r#"{"generationConfig":{"maxOutputTokens":7,"candidateCount":2}}"#,
            r#"{"generation_config":{"max_output_tokens":7,"candidate_count":2}}"#,
        ] {
            check(ModelDialect::Gemini, body, Some(14));
        }
        let twice = r#"{"generationConfig":{"maxOutputTokens":7,"max_output_tokens":9000}}"#;
        check(ModelDialect::Gemini, twice, None);
    }

    #[test]
    fn calls_that_two_readers_could_read_differently_are_refused() {
        for body in [
            "{",
            r#"{"model":1}"#,
            r#"{"stream":true,"stream":false}"#,
            r#"{"stream":true,"stream_options":{},"stream_options":{}}"#,
        ] {
            let refused = read(ModelDialect::Chat, "/chat/completions", body.as_bytes());
            assert!(matches!(refused, Err(CallError::Malformed(_))), "{body}");
        }
        for body in ["", "[]", r#"["m",true]"#, "7", " "] {
            let refused = read(ModelDialect::Chat, "/chat/completions", body.as_bytes());
            assert!(matches!(refused, Err(CallError::NotAnObject)), "{body}");
        }
        let odd = br#"{"stream":true,"stream_options":7}"#;
        let refused = read(ModelDialect::Chat, "/chat/completions", odd);
        assert!(matches!(refused, Err(CallError::StreamOptions)));
        let hidden = br#"{"model":"m","background":true}"#;
        let refused = read(ModelDialect::Responses, "/responses", hidden);
        assert!(matches!(refused, Err(CallError::Background)));
    }

    #[test]
    fn a_model_name_is_made_safe_to_show() {
        let body = format!(r#"{{"model":"\u001b[2J{}"}}"#, "m".repeat(500));
        let (model, _, _) = rewritten(ModelDialect::Chat, &body);
        assert!(model.len() <= 128 && !model.contains('\u{1b}'), "{model}");
    }
}
