//! Payloads of real hooks, and of forged ones.

use std::fs;
use std::path::Path;

use kapi_agent::agent::AgentKind;
use kapi_agent::hook::{
    HookAgent, HookEvent, HookToolCall, MESSAGE_BYTES_MAX, command_line, lasting_command_line,
    parse, parse_message,
};
use proptest::prelude::{any, prop};
use proptest::{prop_assert, proptest};
use serde_json::{Value, json};

/// Returns what a real hook was given.
fn payload(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/hooks")
        .join(name);
    let recorded: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let given = recorded.get("stdin").or(recorded.get("argv_last")).unwrap();
    serde_json::to_vec(given).unwrap()
}

fn started(name: &str, detail: &str) -> HookEvent {
    HookEvent::ToolStarted(call(name, detail))
}

fn finished(name: &str, detail: &str) -> HookEvent {
    HookEvent::ToolFinished {
        call: call(name, detail),
        is_failed: false,
    }
}

fn failed(name: &str, detail: &str) -> HookEvent {
    HookEvent::ToolFinished {
        call: call(name, detail),
        is_failed: true,
    }
}

fn call(name: &str, detail: &str) -> HookToolCall {
    HookToolCall {
        name: name.to_owned(),
        detail: detail.to_owned(),
    }
}

const FILE: &str = "/workspace/hello.txt";
const CLAUDE_COMMAND: &str =
    "echo hello-from-bash > bash.txt; echo err >&2; env | grep -i claude | cut -d= -f1";
const CODEX_COMMAND: &str =
    "echo hello-from-bash > bash.txt; env | grep -iE 'codex|fake' | cut -d= -f1";
const GEMINI_COMMAND: &str =
    "echo hello-from-bash > bash.txt; env | grep -iE 'gemini|fake' | cut -d= -f1";

/// Checks payloads of one agent: the name between its own and the ending, and what it means.
fn check(agent: HookAgent, cases: &[(&str, HookEvent)]) {
    let prefix = format!("{}.", agent.name());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hooks");
    let names = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let n_recorded = names
        .filter(|name| name.to_string_lossy().starts_with(&prefix))
        .count();
    assert_eq!(
        cases.len(),
        n_recorded,
        "a recorded payload is not looked at"
    );
    for (name, event) in cases {
        let payload = payload(&format!("{prefix}{name}.json"));
        assert_eq!(parse(agent, &payload).as_ref(), Some(event), "{name}");
        let message = [
            format!("{{\"agent\":\"{}\",\"payload\":", agent.name()).into_bytes(),
            payload,
            b"}".to_vec(),
        ]
        .concat();
        assert_eq!(
            parse_message(&message),
            Some((agent, event.clone())),
            "{name}"
        );
    }
}

#[test]
fn every_payload_of_claude_is_understood() {
    let cases = [
        ("hook.PostToolBatch", HookEvent::Other),
        ("hook.PostToolUse.Agent", finished("Agent", "sub")),
        ("hook.PostToolUse.Bash", finished("Bash", CLAUDE_COMMAND)),
        ("hook.PostToolUse.Edit", finished("Edit", FILE)),
        ("hook.PostToolUse.Read", finished("Read", FILE)),
        ("hook.PostToolUse.Write", finished("Write", FILE)),
        (
            "hook.PostToolUse.mcp__echo__echo",
            finished("mcp__echo__echo", ""),
        ),
        (
            "hook.PostToolUseFailure.Bash",
            failed("Bash", "echo failing; exit 3"),
        ),
        (
            "hook.PostToolUseFailure.mcp__echo__fail",
            failed("mcp__echo__fail", ""),
        ),
        ("hook.PreToolUse.Bash", started("Bash", CLAUDE_COMMAND)),
        ("hook.PreToolUse.Write", started("Write", FILE)),
        (
            "hook.PreToolUse.mcp__echo__echo",
            started("mcp__echo__echo", ""),
        ),
        ("hook.SessionEnd", HookEvent::SessionEnded),
        ("hook.SessionStart", HookEvent::SessionStarted),
        ("hook.Stop", HookEvent::Stopped),
        ("hook.SubagentStart", HookEvent::Other),
        ("hook.SubagentStop", HookEvent::Other),
        ("hook.UserPromptSubmit", HookEvent::Prompted),
    ];
    check(HookAgent::Claude, &cases);
}

#[test]
fn every_payload_of_codex_is_understood() {
    let cases = [
        ("hook.PostToolUse.Bash", finished("Bash", CODEX_COMMAND)),
        (
            "hook.PostToolUse.apply_patch",
            finished("apply_patch", "hello.txt"),
        ),
        (
            "hook.PostToolUse.mcp__echo__echo",
            finished("mcp__echo__echo", ""),
        ),
        ("hook.PreToolUse.Bash", started("Bash", CODEX_COMMAND)),
        (
            "hook.PreToolUse.apply_patch",
            started("apply_patch", "hello.txt"),
        ),
        (
            "hook.PreToolUse.mcp__echo__echo",
            started("mcp__echo__echo", ""),
        ),
        ("hook.SessionEnd", HookEvent::SessionEnded),
        ("hook.SessionStart", HookEvent::SessionStarted),
        ("hook.Stop", HookEvent::Stopped),
        ("hook.UserPromptSubmit", HookEvent::Prompted),
        ("notify.agent-turn-complete", HookEvent::Stopped),
    ];
    check(HookAgent::Codex, &cases);
}

#[test]
fn every_payload_of_gemini_is_understood() {
    let shell = "run_shell_command";
    let cases = [
        ("hook.AfterAgent", HookEvent::Stopped),
        (
            "hook.AfterTool.mcp_echo_echo",
            finished("mcp_echo_echo", ""),
        ),
        ("hook.AfterTool.mcp_echo_fail", failed("mcp_echo_fail", "")),
        ("hook.AfterTool.replace", finished("replace", FILE)),
        (
            "hook.AfterTool.run_shell_command.1",
            finished(shell, "echo failing; exit 3"),
        ),
        (
            "hook.AfterTool.run_shell_command",
            finished(shell, GEMINI_COMMAND),
        ),
        ("hook.AfterTool.write_file", finished("write_file", FILE)),
        ("hook.BeforeAgent", HookEvent::Prompted),
        (
            "hook.BeforeTool.mcp_echo_echo",
            started("mcp_echo_echo", ""),
        ),
        (
            "hook.BeforeTool.run_shell_command",
            started(shell, GEMINI_COMMAND),
        ),
        ("hook.BeforeTool.write_file", started("write_file", FILE)),
        ("hook.SessionEnd", HookEvent::SessionEnded),
        ("hook.SessionStart", HookEvent::SessionStarted),
    ];
    check(HookAgent::Gemini, &cases);
}

#[test]
fn a_payload_without_its_end_is_understood_by_its_beginning() {
    let long = json!({
        "hook_event_name": "PostToolUse",
        "tool_name": "Write",
        "tool_input": {"file_path": "a.rs", "content": "x".repeat(2 * MESSAGE_BYTES_MAX)},
        "tool_response": {"isError": true},
    });
    let bytes = serde_json::to_vec(&long).unwrap();
    // A map sorts its keys; real agents write the name first, as here.
    let text = String::from_utf8(bytes).unwrap();
    let input = text.find("\"tool_input\"").unwrap();
    assert!(text.len() > MESSAGE_BYTES_MAX && input < 100);
    let real = format!(
        "{{\"agent\":\"claude\",\"payload\":{{\"hook_event_name\":\"PostToolUse\",\
         \"tool_name\":\"Write\",\"tool_input\":{{\"file_path\":\"a.rs\",\"content\":\"{}",
        "y".repeat(100)
    );
    let expected = Some((HookAgent::Claude, finished("Write", "a.rs")));
    assert_eq!(parse_message(real.as_bytes()), expected);
}

#[test]
fn commands_in_words_read_as_one_command() {
    let payload = json!({
        "hook_event_name": "PreToolUse",
        "tool_name": "shell",
        "tool_input": {"command": ["bash", "-lc", "cd x && it's"]},
    });
    let bytes = serde_json::to_vec(&payload).unwrap();
    let event = parse(HookAgent::Codex, &bytes);
    assert_eq!(event, Some(started("shell", r"bash -lc 'cd x && it'\''s'")));
}

#[test]
fn forged_payloads_are_cleaned_or_refused() {
    let not_objects: &[&[u8]] = &[
        b"",
        b" ",
        b"null",
        b"[1]",
        b"\"x\"",
        b"}",
        b"\xff\xfe",
        b"{]",
    ];
    for bytes in not_objects {
        assert_eq!(parse(HookAgent::Claude, bytes), None, "{bytes:?}");
        assert_eq!(parse_message(bytes), None, "{bytes:?}");
    }
    let deep = format!("{{\"a\":{}", "[".repeat(MESSAGE_BYTES_MAX));
    assert_eq!(parse(HookAgent::Claude, deep.as_bytes()), None);
    let other_agents: &[&str] = &[
        r#"{"agent":"pi","payload":{}}"#,
        r#"{"agent":1,"payload":{}}"#,
        r#"{"payload":{"hook_event_name":"Stop"}}"#,
        r#"{"agent":"claude","payload":"Stop"}"#,
        r#"{"agent":"claude"}"#,
    ];
    for message in other_agents {
        assert_eq!(parse_message(message.as_bytes()), None, "{message}");
    }
    let hostile = json!({
        "hook_event_name": "PreToolUse",
        "tool_name": "Ba\u{1b}]0;x\u{7}sh\n\u{202e}",
        "tool_input": {"command": format!("a\u{1b}[2J\nb\u{0}{}", "c".repeat(20_000))},
    });
    let event = parse(HookAgent::Claude, &serde_json::to_vec(&hostile).unwrap());
    let Some(HookEvent::ToolStarted(call)) = event else {
        panic!("{event:?}");
    };
    assert_eq!(call.name, "Bash");
    assert!(
        call.detail.starts_with("a\nbccc"),
        "{:?}",
        call.detail.get(..20)
    );
    assert!(call.detail.len() <= 4 * 1024);
    let wrong_types = json!({
        "hook_event_name": "PreToolUse", "tool_name": {"a": 1}, "tool_input": ["x"],
    });
    let event = parse(
        HookAgent::Claude,
        &serde_json::to_vec(&wrong_types).unwrap(),
    );
    assert_eq!(event, Some(started("", "")));
}

proptest! {
    #[test]
    fn no_bytes_make_trouble(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        for agent in HookAgent::ALL {
            let _event = parse(agent, &bytes);
        }
        let mut message = br#"{"agent":"gemini","payload":{"hook_event_name":"BeforeTool","#.to_vec();
        message.extend(bytes);
        if let Some((agent, event)) = parse_message(&message) {
            prop_assert!(agent == HookAgent::Gemini || HookAgent::ALL.contains(&agent));
            if let HookEvent::ToolStarted(call) = event {
                prop_assert!(!call.name.contains(char::is_control));
            }
        }
    }
}

#[test]
fn the_command_line_survives_a_shell() {
    assert_eq!(
        command_line(HookAgent::Codex, "/opt/kapi/kapi", "/run/kapi/hook.sock"),
        "/opt/kapi/kapi hook --agent codex --socket /run/kapi/hook.sock"
    );
    assert_eq!(
        command_line(HookAgent::Claude, "/a b/it's", "/run/$(x)/hook.sock"),
        r"'/a b/it'\''s' hook --agent claude --socket '/run/$(x)/hook.sock'"
    );
}

#[test]
fn a_line_that_outlives_its_run_fails_for_no_agent() {
    assert_eq!(
        lasting_command_line(HookAgent::Gemini, "/a b/kapi", "/run/hook.sock"),
        "[ ! -x '/a b/kapi' ] || '/a b/kapi' hook --agent gemini --socket /run/hook.sock"
    );
}

#[test]
fn only_agents_with_hooks_have_them() {
    assert_eq!(
        HookAgent::from_kind(&AgentKind::Gemini),
        Some(HookAgent::Gemini)
    );
    assert_eq!(HookAgent::from_kind(&AgentKind::Pi), None);
    assert_eq!(
        HookAgent::from_kind(&AgentKind::Command("x".to_owned())),
        None
    );
}
