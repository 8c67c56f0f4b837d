//! Answers of each dialect, cut at every byte, and what is known of their usage.
//!
//! The shapes are those that real clients were given; no connection is involved.

use kapi_core::usage::Usage;

use super::{AnswerExtent, CallMeter, UnknownUsage};
use crate::model::dialect::ModelDialect;

const EVENTS: &[u8] = b"text/event-stream; charset=utf-8";
const JSON: &[u8] = b"application/json";

const ANTHROPIC: &str = "event: message_start\n\
data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":9,\
\"cache_creation_input_tokens\":20,\"cache_read_input_tokens\":300,\"output_tokens\":1}}}\n\n\
event: ping\ndata: {\"type\": \"ping\"}\n\n\
event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":\
{\"type\":\"text_delta\",\"text\":\"{\\\"usage\\\":{\\\"output_tokens\\\":9999}}\"}}\n\n\
event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\
\"usage\":{\"output_tokens\":42}}\n\n\
event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

const RESPONSES: &str = "event: response.created\n\
data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"usage\":null}}\n\n\
event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"hi\"}\n\n\
event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"usage\":\
{\"input_tokens\":7}}],\"usage\":{\"input_tokens\":100,\"output_tokens\":30}}}\n\n";

const CHAT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\r\n\r\n\
data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":30}}\r\n\r\n\
data: [DONE]\r\n\r\n";

const GEMINI: &str = "data: {\"candidates\":[],\"usageMetadata\":{\"promptTokenCount\":100,\
\"totalTokenCount\":100}}\n\n\
data: {\"candidates\":[],\"usageMetadata\":{\"promptTokenCount\":100,\"candidatesTokenCount\":10,\
\"thoughtsTokenCount\":20,\"totalTokenCount\":130}}\n\n";

/// Feeds an answer in pieces; returns the sum of what was told, and the meter.
fn metered(dialect: ModelDialect, content_type: &[u8], pieces: &[&[u8]]) -> (Usage, CallMeter) {
    let mut meter = CallMeter::new(dialect, content_type);
    let mut sum = Usage::default();
    for piece in pieces {
        if let Some(more) = meter.feed(piece).more {
            sum.add(&more.usage(None));
        }
    }
    (sum, meter)
}

fn check(dialect: ModelDialect, content_type: &[u8], text: &str, expected: (u64, u64)) {
    for at in 0..=text.len() {
        let (one, two) = text.as_bytes().split_at(at);
        let (sum, meter) = metered(dialect, content_type, &[one, two]);
        let found = (sum.input_tokens, sum.output_tokens);
        assert_eq!(found, expected, "{dialect:?} split at {at}");
        assert_eq!(
            meter.doubt(AnswerExtent::Complete),
            None,
            "{dialect:?} split at {at}"
        );
    }
    let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
    let (sum, _) = metered(dialect, content_type, &single);
    assert_eq!(
        (sum.input_tokens, sum.output_tokens),
        expected,
        "{dialect:?} by bytes"
    );
}

#[test]
fn streams_are_counted_exactly_wherever_they_are_cut() {
    check(ModelDialect::Anthropic, EVENTS, ANTHROPIC, (329, 42));
    check(ModelDialect::Responses, EVENTS, RESPONSES, (100, 30));
    check(ModelDialect::Chat, EVENTS, CHAT, (100, 30));
    check(ModelDialect::Gemini, EVENTS, GEMINI, (100, 30));
}

#[test]
fn whole_answers_are_counted_exactly_wherever_they_are_cut() {
    let anthropic = r#"{"content":[{"text":"\"usage\":{"}],"usage":{"input_tokens":5,
        "cache_read_input_tokens":10,"output_tokens":2}}"#;
    check(ModelDialect::Anthropic, JSON, anthropic, (15, 2));
    let responses = r#"{"output":[],"usage":{"input_tokens":5,"output_tokens":2}}"#;
    check(ModelDialect::Responses, JSON, responses, (5, 2));
    let chat = r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#;
    check(ModelDialect::Chat, JSON, chat, (5, 2));
    let gemini = r#"{"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2}}"#;
    check(ModelDialect::Gemini, JSON, gemini, (5, 2));
    let array = r#"[{"usageMetadata":{"promptTokenCount":5}},
        {"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2}}]"#;
    check(ModelDialect::Gemini, JSON, array, (5, 2));
}

#[test]
fn what_is_not_known_is_said_and_never_zero_in_silence() {
    let check =
        |dialect: ModelDialect, text: &str, reach: AnswerExtent, expected: Option<UnknownUsage>| {
            let (_, meter) = metered(dialect, EVENTS, &[text.as_bytes()]);
            assert_eq!(meter.doubt(reach), expected, "{dialect:?} {reach:?} {text}");
        };
    let (complete, broken_off) = (AnswerExtent::Complete, AnswerExtent::BrokenOff);
    for dialect in [
        ModelDialect::Anthropic,
        ModelDialect::Responses,
        ModelDialect::Chat,
        ModelDialect::Gemini,
    ] {
        check(
            dialect,
            "data: {\"x\":1}\n\n",
            complete,
            Some(UnknownUsage::NotTold),
        );
        check(dialect, "", complete, Some(UnknownUsage::NotTold));
        check(
            dialect,
            "data: {\"x\":1}\n\n",
            broken_off,
            Some(UnknownUsage::BrokenOff),
        );
    }
    let started = ANTHROPIC
        .split("event: message_delta")
        .next()
        .expect("a start");
    check(
        ModelDialect::Anthropic,
        started,
        broken_off,
        Some(UnknownUsage::BrokenOff),
    );
    check(
        ModelDialect::Anthropic,
        started,
        complete,
        Some(UnknownUsage::BrokenOff),
    );
    let all_but_stop = ANTHROPIC
        .split("event: message_stop")
        .next()
        .expect("a start");
    check(ModelDialect::Anthropic, all_but_stop, broken_off, None);
    let all_but_done = CHAT.split("data: [DONE]").next().expect("a start");
    check(ModelDialect::Chat, all_but_done, broken_off, None);
    check(ModelDialect::Gemini, GEMINI, complete, None);
    check(
        ModelDialect::Gemini,
        GEMINI,
        broken_off,
        Some(UnknownUsage::BrokenOff),
    );
    let odd = "data: {\"usage\":{\"prompt_tokens\":\"many\"}}\n\n";
    check(
        ModelDialect::Chat,
        odd,
        complete,
        Some(UnknownUsage::Unreadable),
    );
    let long = format!(
        "data: {{\"usage\":{{\"x\":\"{}\"}}}}\n\n",
        "x".repeat(100_000)
    );
    let unreadable = Some(UnknownUsage::Unreadable);
    check(ModelDialect::Chat, &long, complete, unreadable);
}

#[test]
fn a_server_that_counts_in_every_chunk_is_final_only_at_its_end() {
    let chunk = |n: u64| {
        format!("data: {{\"usage\":{{\"prompt_tokens\":5,\"completion_tokens\":{n}}}}}\n\n")
    };
    let mut meter = CallMeter::new(ModelDialect::Chat, EVENTS);
    let first = meter.feed(chunk(1).as_bytes());
    assert_eq!(first.more.map(|more| more.total()), Some(6));
    assert!(!meter.is_final());
    let second = meter.feed(chunk(3).as_bytes());
    assert_eq!(second.more.map(|more| more.total()), Some(2));
    assert_eq!(meter.feed(chunk(3).as_bytes()).more, None);
    assert!(!meter.is_final());
    assert_eq!(meter.doubt(AnswerExtent::Complete), None);
}

#[test]
fn three_megabytes_in_one_event_are_counted_without_keeping_them() {
    let output = "x".repeat(3_000_000);
    let text = format!(
        "data: {{\"response\":{{\"output\":\"{output}\",\"usage\":{{\"input_tokens\":1,\
         \"output_tokens\":2}}}}}}\n\n"
    );
    let pieces: Vec<&[u8]> = text.as_bytes().chunks(4096).collect();
    let (sum, meter) = metered(ModelDialect::Responses, EVENTS, &pieces);
    assert_eq!((sum.input_tokens, sum.output_tokens), (1, 2));
    assert!(meter.is_final() && meter.is_between_events());
}
