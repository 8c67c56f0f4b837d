//! Output that is malformed, cut, hostile or endless.

use kapi_agent::agent::AgentKind;
use kapi_agent::stream::{StreamEvent, StreamParser, is_session_lost};
use kapi_core::agent_end::{AgentEnd, ProviderFailureKind};
use kapi_sys::process::ProcessEnd;
use proptest::prelude::{any, proptest};

use crate::support::{check_invariants, replay};

fn kinds() -> Vec<AgentKind> {
    [
        "claude",
        "codex",
        "gemini",
        "pi",
        "command:true",
        "script:s.yaml",
    ]
    .map(|reference| AgentKind::parse(reference).unwrap())
    .to_vec()
}

#[test]
fn noise_between_lines_changes_nothing() {
    let output = [
        "npm warn something".to_owned(),
        r#"{"type":"thread.started","thread_id":"t"}"#.to_owned(),
        String::new(),
        "{".to_owned(),
        "{\"type\":".to_owned(),
        "[[[[".repeat(50_000),
        "{\"a\":".repeat(50_000),
        "\u{0}\u{1b}[2J".to_owned(),
        r#"{"type":"unheard.of","thread_id":7}"#.to_owned(),
        r#"{"type":"item.completed","item":{"type":"agent_message","text":"fine"}}"#.to_owned(),
        r#"{"type":"turn.completed","usage":"soon"}"#.to_owned(),
    ]
    .join("\n");
    let replayed = replay(
        &AgentKind::Codex,
        None,
        output.as_bytes(),
        ProcessEnd::Exited(0),
    );
    assert_eq!(replayed.run.end, AgentEnd::Finished);
    assert_eq!(replayed.run.message, "fine");
}

#[test]
fn a_huge_cut_answer_loses_its_end_and_not_its_outcome() {
    const CAP: usize = 200_000;
    let answer = "lorem ipsum ".repeat(CAP);
    let outputs = [
        (
            AgentKind::Claude,
            vec![format!(
                r#"{{"type":"result","subtype":"success","is_error":false,"result":"{answer}","stop_reason":"end_turn","modelUsage":{{}}}}"#
            )],
        ),
        (
            AgentKind::Codex,
            vec![
                format!(
                    r#"{{"type":"item.completed","item":{{"id":"1","type":"agent_message","text":"{answer}"}}}}"#
                ),
                r#"{"type":"turn.completed","usage":{"input_tokens":5,"output_tokens":1}}"#
                    .to_owned(),
            ],
        ),
        (
            AgentKind::Gemini,
            vec![
                format!(
                    r#"{{"type":"message","role":"assistant","content":"{answer}","delta":true}}"#
                ),
                r#"{"type":"result","status":"success","stats":{}}"#.to_owned(),
            ],
        ),
        (
            AgentKind::Pi,
            vec![
                format!(
                    r#"{{"type":"message_end","message":{{"role":"assistant","content":[{{"type":"text","text":"{answer}"}}],"stopReason":"stop"}}}}"#
                ),
                format!(
                    r#"{{"type":"agent_end","messages":[{{"role":"assistant","content":"{answer}"}}]}}"#
                ),
            ],
        ),
    ];
    for (kind, lines) in outputs {
        let mut parser = StreamParser::new(&kind, None);
        let mut events = Vec::new();
        for line in &lines {
            let cut = line.len().min(CAP);
            events.extend(parser.stdout_line(&line.as_bytes()[..cut]));
        }
        let run = parser.finish(ProcessEnd::Exited(0), "", "");
        check_invariants(&events, &run);
        assert_eq!(run.end, AgentEnd::Finished, "{kind}");
        assert!(run.message.starts_with("lorem ipsum"), "{kind}");
        assert!(run.message.len() > 16_000, "{kind}");
    }
}

#[test]
fn pi_repetitions_are_not_even_read() {
    // The type comes first, so a line of megabytes costs nothing; were it parsed, this one would
    // count as a message.
    let mut parser = StreamParser::new(&AgentKind::Pi, None);
    let line = r#"{"type":"message_update","type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"x"}]}}"#;
    assert!(parser.stdout_line(line.as_bytes()).is_empty());
    assert_eq!(parser.finish(ProcessEnd::Exited(0), "", "").message, "");
}

#[test]
fn what_a_tool_is_called_with_cannot_reach_a_terminal_raw() {
    let line = r#"{"type":"tool_execution_start","toolName":"ba\u001b[31msh","args":{"command":"echo \u001b]0;owned\u0007\nrm -rf /"}}"#;
    let mut parser = StreamParser::new(&AgentKind::Pi, None);
    let events = parser.stdout_line(line.as_bytes());
    let expected = StreamEvent::Tool {
        name: "bash".to_owned(),
        detail: "echo rm -rf /".to_owned(),
    };
    assert_eq!(events, [expected]);
}

#[test]
fn an_answer_of_nothing_is_the_providers_failure() {
    let outputs = [
        (
            AgentKind::Claude,
            r#"{"type":"result","subtype":"success","is_error":false,"result":""}"#,
        ),
        (
            AgentKind::Codex,
            r#"{"type":"turn.completed","usage":{"input_tokens":9,"output_tokens":0}}"#,
        ),
        (
            AgentKind::Gemini,
            r#"{"type":"result","status":"success","stats":{}}"#,
        ),
        (
            AgentKind::Pi,
            "{\"type\":\"message_end\",\"message\":{\"role\":\"assistant\",\"content\":[],\"stopReason\":\"stop\"}}\n{\"type\":\"agent_end\"}",
        ),
    ];
    for (kind, output) in outputs {
        let end = replay(&kind, None, output.as_bytes(), ProcessEnd::Exited(0))
            .run
            .end;
        let AgentEnd::Provider(failure) = end else {
            panic!("{kind}: {end:?}")
        };
        assert_eq!(failure.kind, ProviderFailureKind::EmptyAnswer, "{kind}");
    }
}

#[test]
fn gemini_tells_some_ends_only_by_a_warning() {
    let empty = r#"{"type":"error","severity":"error","message":"The model returned an empty response with no text or thoughts."}
{"type":"result","status":"error","stats":{"total_tokens":3150,"input_tokens":3000,"output_tokens":150}}"#;
    let end = replay(
        &AgentKind::Gemini,
        None,
        empty.as_bytes(),
        ProcessEnd::Exited(0),
    )
    .run
    .end;
    let AgentEnd::Provider(failure) = end else {
        panic!("{end:?}")
    };
    assert_eq!(failure.kind, ProviderFailureKind::EmptyAnswer);

    let stuck = r#"{"type":"tool_use","tool_name":"a","parameters":{}}
{"type":"error","severity":"warning","message":"Loop detected, stopping execution"}
{"type":"result","status":"success","stats":{}}"#;
    let end = replay(
        &AgentKind::Gemini,
        None,
        stuck.as_bytes(),
        ProcessEnd::Exited(0),
    )
    .run
    .end;
    assert_eq!(end, AgentEnd::LimitReached);
}

#[test]
fn refusals_are_told_from_failures() {
    let outputs = [
        (
            AgentKind::Claude,
            r#"{"type":"result","subtype":"success","is_error":false,"result":"I can't.","stop_reason":"refusal"}"#,
        ),
        (
            AgentKind::Claude,
            r#"{"type":"result","subtype":"success","is_error":true,"result":"API Error: Claude Code is unable to respond to this request, which appears to violate our Usage Policy"}"#,
        ),
        (
            AgentKind::Codex,
            r#"{"type":"turn.failed","error":{"message":"Invalid prompt: we've limited access to this content for safety reasons."}}"#,
        ),
        (
            AgentKind::Gemini,
            "{\"type\":\"error\",\"severity\":\"error\",\"message\":\"Response stopped due to safety reasons.\"}\n{\"type\":\"result\",\"status\":\"success\",\"stats\":{}}",
        ),
        (
            AgentKind::Gemini,
            r#"{"type":"result","status":"error","error":{"type":"unknown","message":"blockReason: PROHIBITED_CONTENT"}}"#,
        ),
        (
            AgentKind::Pi,
            "{\"type\":\"message_end\",\"message\":{\"role\":\"assistant\",\"content\":[],\"stopReason\":\"error\",\"errorMessage\":\"Provider finish_reason: content_filter\"}}\n{\"type\":\"agent_end\"}",
        ),
    ];
    for (kind, output) in outputs {
        let end = replay(&kind, None, output.as_bytes(), ProcessEnd::Exited(1))
            .run
            .end;
        assert_eq!(end, AgentEnd::Refused, "{kind}: {output}");
    }
}

#[test]
fn a_session_that_could_be_an_option_is_no_session() {
    for name in [
        "",
        "-c",
        "--config=x",
        "a b",
        "a\nb",
        "$(x)",
        &"a".repeat(200),
    ] {
        let name = serde_json::to_string(name).unwrap();
        let outputs = [
            (
                AgentKind::Claude,
                format!(r#"{{"type":"system","subtype":"init","session_id":{name}}}"#),
            ),
            (
                AgentKind::Codex,
                format!(
                    "{{\"type\":\"thread.started\",\"thread_id\":{name}}}\n{{\"type\":\"turn.completed\"}}"
                ),
            ),
            (
                AgentKind::Gemini,
                format!(r#"{{"type":"init","session_id":{name}}}"#),
            ),
            (
                AgentKind::Pi,
                format!(r#"{{"type":"session","id":{name}}}"#),
            ),
        ];
        for (kind, output) in outputs {
            let replayed = replay(&kind, None, output.as_bytes(), ProcessEnd::Exited(0));
            assert_eq!(replayed.run.session, None, "{kind} {name}");
            assert!(replayed.events.is_empty(), "{kind} {name}");
        }
    }
}

#[test]
fn a_lost_session_is_recognised() {
    let claude = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"aa8ff144","modelUsage":{},"errors":["No conversation found with session ID: aa8ff144"]}"#;
    let run = replay(
        &AgentKind::Claude,
        Some("aa8ff144"),
        claude.as_bytes(),
        ProcessEnd::Exited(1),
    )
    .run;
    assert!(is_session_lost(&run, ""), "{run:?}");
    let stderr = [
        (
            AgentKind::Codex,
            "Error: thread/resume failed: no rollout found for thread id 01a1 (code -32600)",
        ),
        (
            AgentKind::Codex,
            "Error: thread/resume: thread/resume failed: failed to read thread: thread-store internal error: failed to read session metadata /home/agent/.codex/sessions/2026/11/27/rollout-01a2.jsonl: rollout at /home/agent/.codex/sessions/2026/11/27/rollout-01a2.jsonl is empty (code -32603)\n\nStack backtrace:\n   0: <unknown>\n",
        ),
        (
            AgentKind::Gemini,
            "Error resuming session: Invalid session identifier \"5babd4dd\".",
        ),
        (
            AgentKind::Gemini,
            "Error resuming session: No previous sessions found for this project.",
        ),
        (AgentKind::Pi, "No session found matching '01a1ffc8'"),
    ];
    for (kind, stderr) in stderr {
        let run = StreamParser::new(&kind, Some("gone")).finish(ProcessEnd::Exited(1), stderr, "");
        assert!(is_session_lost(&run, stderr), "{run:?}");
        let run =
            StreamParser::new(&kind, Some("here")).finish(ProcessEnd::Exited(1), "segfault", "");
        assert!(!is_session_lost(&run, "segfault"), "{run:?}");
    }
}

#[test]
fn standard_error_tells_only_where_nothing_else_does() {
    let stderr = "at foo.js:1\nAPI Error: 529 overloaded_error\n";
    let run = StreamParser::new(&AgentKind::Claude, None).finish(ProcessEnd::Exited(1), stderr, "");
    let AgentEnd::Provider(failure) = run.end else {
        panic!("{run:?}")
    };
    assert_eq!(failure.kind, ProviderFailureKind::ServerError);

    let run = StreamParser::new(&AgentKind::Claude, None).finish(
        ProcessEnd::Exited(1),
        "no such flag -z",
        "",
    );
    assert_eq!(run.end, AgentEnd::Crashed { code: 1 });
    assert_eq!(run.message, "no such flag -z");
}

proptest! {
    #[test]
    fn no_output_makes_a_parser_crash(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        n_words in proptest::collection::vec(0..WORDS.len(), 0..40),
    ) {
        let mut output: Vec<u8> = n_words.into_iter().flat_map(|n| WORDS[n].bytes()).collect();
        output.extend(bytes);
        for kind in kinds() {
            drop(replay(&kind, None, &output, ProcessEnd::Exited(1)));
        }
    }
}

/// Pieces that make random output look like an agent's.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"type\":",
    "\"result\"",
    "\"message_end\"",
    "\"assistant\"",
    "\"message\":",
    "\"role\":",
    "\"content\":",
    "\"usage\":",
    "\"input\":",
    "1e999",
    "-1",
    "18446744073709551616",
    "\"",
    "\\",
    ",",
    ":",
    "\n",
    "null",
    "\"tool_use\"",
    "\"stats\":",
    "\"cost\":",
    "\"total\":",
    "\"item\":",
];
