//! The most that a model may write, written into a request.
//!
//! Pure. Changes the limit, and what no provider takes beside a smaller one; nothing else.

use crate::model::dialect::ModelDialect;
use crate::model::members::Members;

/// The least that Anthropic's models may be told to think.
const THINKING_TOKENS_MIN: u64 = 1024;

/// What a limit is called in a chat completion that names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChatLimitName {
    /// What nearly every server knows.
    MaxTokens,
    /// What the vendor's own newer models want.
    MaxCompletionTokens,
}

/// Thinking that takes nothing of an answer.
const NO_THINKING: &str = r#"{"type":"disabled"}"#;

/// Returns a request whose answer has at most `total` tokens, over all answers that it wants.
pub(crate) fn lowered(
    dialect: ModelDialect,
    body: &str,
    total: u64,
    chat: ChatLimitName,
) -> Result<String, serde_json::Error> {
    let mut members = Members::parse(body)?;
    match dialect {
        ModelDialect::Anthropic => {
            if let Some(thinking) = smaller_thinking(&members, total)? {
                members.set("thinking", thinking);
            }
            members.set("max_tokens", total.to_string());
        }
        ModelDialect::Responses => members.set("max_output_tokens", total.to_string()),
        ModelDialect::Chat => lower_chat(&mut members, total, chat),
        ModelDialect::Gemini => lower_gemini(&mut members, total)?,
    }
    Ok(members.text())
}

fn lower_chat(members: &mut Members<'_>, total: u64, name: ChatLimitName) {
    let each = (total / number(members, "n").unwrap_or(1).max(1)).max(1);
    let names = ["max_tokens", "max_completion_tokens"];
    let named: Vec<&str> = names
        .into_iter()
        .filter(|name| number(members, name).is_some())
        .collect();
    if named.is_empty() {
        let name = match name {
            ChatLimitName::MaxTokens => "max_tokens",
            ChatLimitName::MaxCompletionTokens => "max_completion_tokens",
        };
        members.set(name, each.to_string());
    }
    for name in named {
        members.set(name, each.to_string());
    }
}

fn lower_gemini(members: &mut Members<'_>, total: u64) -> Result<(), serde_json::Error> {
    let snake = members.get("generation_config").is_some();
    let (outer, inner, candidates) = if snake {
        ("generation_config", "max_output_tokens", "candidate_count")
    } else {
        ("generationConfig", "maxOutputTokens", "candidateCount")
    };
    let text = members.get(outer).filter(|text| *text != "null");
    let text = text.unwrap_or("{}").to_owned();
    let mut generation = Members::parse(&text)?;
    let wanted = number(&generation, candidates).or(number(&generation, "candidateCount"));
    let each = (total / wanted.unwrap_or(1).max(1)).max(1);
    // Both spellings are understood there; only one may stand.
    for name in ["maxOutputTokens", "max_output_tokens"] {
        generation.remove(name);
    }
    generation.set(inner, each.to_string());
    let generation = generation.text();
    members.set(outer, generation);
    Ok(())
}

/// Returns thinking that leaves room for words under the limit, where the request asks for more;
/// none where there is no room for both.
fn smaller_thinking(
    members: &Members<'_>,
    total: u64,
) -> Result<Option<String>, serde_json::Error> {
    let Some(thinking) = members.get("thinking").filter(|text| *text != "null") else {
        return Ok(None);
    };
    let mut thinking = Members::parse(thinking)?;
    match number(&thinking, "budget_tokens") {
        Some(budget) if budget >= total => {
            let smaller = total / 2;
            if smaller < THINKING_TOKENS_MIN {
                return Ok(Some(NO_THINKING.to_owned()));
            }
            thinking.set("budget_tokens", smaller.to_string());
            Ok(Some(thinking.text()))
        }
        Some(_) | None => Ok(None),
    }
}

fn number(members: &Members<'_>, name: &str) -> Option<u64> {
    members.get(name)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{ChatLimitName, lowered};
    use crate::model::dialect::ModelDialect;

    fn check(dialect: ModelDialect, total: u64, body: &str, expected: &str) {
        let found = lowered(dialect, body, total, ChatLimitName::MaxTokens);
        assert_eq!(found.unwrap(), expected, "{dialect:?} {body}");
    }

    #[test]
    fn each_dialect_has_its_own_name_for_the_limit() {
        let anthropic = ModelDialect::Anthropic;
        check(
            anthropic,
            9,
            r#"{"max_tokens":64,"model":"m"}"#,
            r#"{"max_tokens":9,"model":"m"}"#,
        );
        let responses = ModelDialect::Responses;
        check(responses, 9, "{}", r#"{"max_output_tokens":9}"#);
        let chat = ModelDialect::Chat;
        check(chat, 9, "{}", r#"{"max_tokens":9}"#);
        check(
            chat,
            9,
            r#"{"max_completion_tokens":64,"n":3}"#,
            r#"{"max_completion_tokens":3,"n":3}"#,
        );
        check(
            chat,
            9,
            r#"{"max_tokens":7,"max_completion_tokens":64}"#,
            r#"{"max_tokens":9,"max_completion_tokens":9}"#,
        );
        let gemini = ModelDialect::Gemini;
        check(
            gemini,
            9,
            "{}",
            r#"{"generationConfig":{"maxOutputTokens":9}}"#,
        );
        check(
            gemini,
            9,
            r#"{"generationConfig":{"max_output_tokens":64,"candidateCount":2,"x":1}}"#,
            r#"{"generationConfig":{"candidateCount":2,"x":1,"maxOutputTokens":4}}"#,
        );
        check(
            gemini,
            9,
            r#"{"generation_config":null}"#,
            r#"{"generation_config":{"max_output_tokens":9}}"#,
        );
    }

    #[test]
    fn the_vendor_s_own_name_is_used_where_it_is_asked_for() {
        let name = ChatLimitName::MaxCompletionTokens;
        let found = lowered(ModelDialect::Chat, "{}", 9, name);
        assert_eq!(found.unwrap(), r#"{"max_completion_tokens":9}"#);
    }

    #[test]
    fn thinking_leaves_room_for_words_or_is_left_out() {
        let body = r#"{"thinking":{"type":"enabled","budget_tokens":9000},"max_tokens":9999}"#;
        check(
            ModelDialect::Anthropic,
            4000,
            body,
            r#"{"thinking":{"type":"enabled","budget_tokens":2000},"max_tokens":4000}"#,
        );
        check(
            ModelDialect::Anthropic,
            2000,
            body,
            r#"{"thinking":{"type":"disabled"},"max_tokens":2000}"#,
        );
        let adaptive = r#"{"thinking":{"type":"adaptive"},"max_tokens":9999}"#;
        check(
            ModelDialect::Anthropic,
            20,
            adaptive,
            r#"{"thinking":{"type":"adaptive"},"max_tokens":20}"#,
        );
    }
}
