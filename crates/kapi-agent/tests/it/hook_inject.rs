//! Hooks beside what people have in their settings.

use std::fs;
use std::path::Path;

use kapi_agent::hook::HookAgent::{self, Claude, Codex, Gemini};
use kapi_agent::hook::inject::{Injection, inject};
use serde_json::Value;

const COMMAND: &str = "/opt/kapi/kapi hook --agent x --socket '/run/it s/hook.sock' \"q\"";

fn settings(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/settings");
    fs::read(folder.join(name)).unwrap()
}

fn text(injection: &Injection) -> &str {
    std::str::from_utf8(&injection.content).unwrap()
}

fn json(injection: &Injection) -> Value {
    serde_json::from_str(text(injection)).unwrap()
}

/// Returns the commands of an event, with their matchers.
fn commands(settings: &Value, event: &str) -> Vec<(String, String)> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or("-").to_owned();
    let groups = settings.pointer(&format!("/hooks/{event}"));
    let groups = groups.and_then(Value::as_array).into_iter().flatten();
    let mut found = Vec::new();
    for group in groups {
        let hooks = group.get("hooks").and_then(Value::as_array);
        for hook in hooks.into_iter().flatten() {
            found.push((text(group.get("matcher")), text(hook.get("command"))));
        }
    }
    found
}

fn ours(matcher: &str) -> (String, String) {
    (matcher.to_owned(), COMMAND.to_owned())
}

fn theirs(matcher: &str, command: &str) -> (String, String) {
    (matcher.to_owned(), command.to_owned())
}

/// Checks what must hold whatever the settings were, and returns the first result.
fn check(agent: HookAgent, existing: Option<&[u8]>) -> Injection {
    let once = inject(agent, existing, COMMAND).unwrap();
    assert!(once.is_changed);
    let twice = inject(agent, Some(&once.content), COMMAND).unwrap();
    assert_eq!(twice.content, once.content);
    assert!(!twice.is_changed, "twice is once");
    let other = inject(agent, Some(&once.content), "another hook").unwrap();
    assert!(other.is_changed && text(&other).contains("another hook"));
    once
}

#[test]
fn nothing_becomes_settings_with_hooks() {
    for existing in [None, Some(&b""[..]), Some(b" \n")] {
        let claude = check(Claude, existing);
        assert_eq!(claude.file, ".claude/settings.json");
        assert!(claude.args.is_empty() && claude.muted_by.is_none());
        for event in ["PreToolUse", "PostToolUse", "PostToolUseFailure"] {
            assert_eq!(commands(&json(&claude), event), [ours("*")], "{event}");
        }
        for event in ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"] {
            assert_eq!(commands(&json(&claude), event), [ours("-")], "{event}");
        }
        let timeout = json(&claude)
            .pointer("/hooks/Stop/0/hooks/0/timeout")
            .cloned();
        assert_eq!(timeout, Some(Value::from(5)), "seconds");

        let gemini = check(Gemini, existing);
        assert_eq!(gemini.file, ".gemini/settings.json");
        for event in ["BeforeTool", "AfterTool"] {
            assert_eq!(commands(&json(&gemini), event), [ours("*")], "{event}");
        }
        for event in ["SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd"] {
            assert_eq!(commands(&json(&gemini), event), [ours("-")], "{event}");
        }
        let timeout = json(&gemini)
            .pointer("/hooks/AfterTool/0/hooks/0/timeout")
            .cloned();
        assert_eq!(timeout, Some(Value::from(5_000)), "milliseconds");
        for event in ["BeforeModel", "AfterModel", "BeforeToolSelection"] {
            assert!(
                !text(&gemini).contains(event),
                "{event} comes with every piece"
            );
        }

        let codex = check(Codex, existing);
        assert_eq!(codex.file, ".codex/config.toml");
        assert_eq!(codex.args, ["--dangerously-bypass-hook-trust"]);
        let table = toml_as_json(text(&codex));
        for event in ["PreToolUse", "PostToolUse"] {
            assert_eq!(commands(&table, event), [ours(".*")], "{event}");
        }
        for event in ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"] {
            assert_eq!(commands(&table, event), [ours("-")], "{event}");
        }
    }
}

fn toml_as_json(text: &str) -> Value {
    let table: toml::Table = toml::from_str(text).unwrap();
    serde_json::to_value(table).unwrap()
}

#[test]
fn a_persons_claude_settings_stay() {
    let old = settings("claude.json");
    let injection = check(Claude, Some(&old));
    let new = json(&injection);
    assert_eq!(
        commands(&new, "PostToolUse"),
        [
            theirs("Edit|Write", "prettier --write \"$FILE\""),
            ours("*")
        ]
    );
    assert_eq!(
        commands(&new, "Notification"),
        [theirs("-", "notify-send Claude")]
    );
    assert!(
        text(&injection).contains("12345678901234567890123"),
        "to the last digit"
    );
    let mut new = new;
    let mut before: Value = serde_json::from_slice(&old).unwrap();
    for settings in [&mut new, &mut before] {
        settings.as_object_mut().unwrap().remove("hooks");
    }
    assert_eq!(new, before);
}

#[test]
fn a_persons_gemini_settings_stay_and_may_have_comments() {
    let injection = check(Gemini, Some(&settings("gemini.json")));
    let new = json(&injection);
    assert_eq!(
        commands(&new, "AfterTool"),
        [theirs("write_file|replace", "fmt // all"), ours("*")]
    );
    assert_eq!(commands(&new, "BeforeModel"), [theirs("-", "log-model")]);
    assert_eq!(new.pointer("/theme"), Some(&Value::from("GitHub")));
    assert!(new.pointer("/mcpServers/docs/httpUrl").is_some());
}

#[test]
fn a_persons_codex_settings_stay_to_the_byte() {
    let old = settings("codex.toml");
    let injection = check(Codex, Some(&old));
    assert!(injection.content.starts_with(&old));
    let new = toml_as_json(text(&injection));
    assert_eq!(
        commands(&new, "PostToolUse"),
        [theirs("apply_patch", "cargo fmt"), ours(".*")]
    );
    assert_eq!(
        new.pointer("/mcp_servers/docs/command"),
        Some(&Value::from("docs-server"))
    );
}

#[test]
fn codex_hooks_are_added_to_every_spelling_of_a_table() {
    let spellings = [
        "hooks = {}",
        "hooks = { }  # none",
        "model = \"x\"\nhooks = { Stop = [] }",
        "hooks = { Stop = [{ hooks = [{ type = \"command\", command = \"mine\" }] }] }\na = 1",
        "[hooks]\n",
        "[hooks]\nStop = []\n[other]\na = 1",
        "[hooks]\nStop = [\n  # mine\n  { hooks = [{ type = \"command\", command = \"mine\" }] },\n]",
        "hooks.Stop = [{ hooks = [] }]\nmodel = \"x\"",
        "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ncommand = \"mine\"\n[z]\n[[hooks.Stop]]\nmatcher = \"a\"",
        "a = 1\r\n[hooks]\r\nStop = []\r\n",
    ];
    for old in spellings {
        let injection = check(Codex, Some(old.as_bytes()));
        let new = toml_as_json(text(&injection));
        let stops = commands(&new, "Stop");
        assert!(stops.contains(&ours("-")), "{old}\n{}", text(&injection));
        assert_eq!(stops.len(), 1 + old.matches("mine\"").count(), "{old}");
        let comments = |text: &str| text.matches('#').count();
        assert_eq!(comments(text(&injection)), comments(old), "{old}");
    }
}

#[test]
fn settings_that_mute_all_hooks_are_named() {
    let cases = [
        (
            Claude,
            "{\"disableAllHooks\": true}",
            Some("disableAllHooks"),
        ),
        (Claude, "{\"disableAllHooks\": false}", None),
        (
            Gemini,
            "{\"hooksConfig\": {\"enabled\": false}}",
            Some("hooksConfig.enabled"),
        ),
        (Codex, "[features]\nhooks = false", Some("features.hooks")),
        (
            Codex,
            "[features]\ncodex_hooks = false",
            Some("features.codex_hooks"),
        ),
        (Codex, "[features]\nhooks = true", None),
    ];
    for (agent, old, muted_by) in cases {
        let injection = check(agent, Some(old.as_bytes()));
        assert_eq!(injection.muted_by, muted_by, "{old}");
    }
}

#[test]
fn what_cannot_be_merged_is_told_with_file_and_line() {
    let cases: &[(HookAgent, &[u8], &str)] = &[
        (
            Claude,
            b"{\n  \"a\": 1,\n  oops\n}",
            "read ~/.claude/settings.json, line 3: key must be",
        ),
        (
            Claude,
            b"{} x",
            "read ~/.claude/settings.json, line 1: trailing",
        ),
        (
            Claude,
            b"{\n// no\n}",
            "read ~/.claude/settings.json, line 2: key must be",
        ),
        (
            Claude,
            b"[]",
            "add hooks to ~/.claude/settings.json, line 1: the whole file is not an object",
        ),
        (
            Claude,
            b"\n{\n\n\"hooks\": []}",
            "add hooks to ~/.claude/settings.json, line 4: hooks is not an object",
        ),
        (
            Claude,
            b"{\"hooks\": {\n\"Stop\": {}}}",
            "add hooks to ~/.claude/settings.json, line 2: hooks.Stop is not a list",
        ),
        (
            Claude,
            b"{\n\n\"a\": \"\xff\"}",
            "read ~/.claude/settings.json: it is not UTF-8 from line 3 on",
        ),
        (
            Gemini,
            b"{\n/* \n */ \"a\" 1}",
            "read ~/.gemini/settings.json, line 3: expected `:`",
        ),
        (
            Gemini,
            b"{ /* for ever",
            "read ~/.gemini/settings.json, line 1: EOF",
        ),
        (
            Codex,
            b"a = 1\nb = = 2\n",
            "read ~/.codex/config.toml, line 2: ",
        ),
        (
            Codex,
            b"a = 1\n\na = 2\n",
            "read ~/.codex/config.toml, line 3: duplicate key",
        ),
        (
            Codex,
            b"x = 1\nhooks = 5",
            "add hooks to ~/.codex/config.toml, line 2: hooks is not a table",
        ),
        (
            Codex,
            b"[hooks]\nStop = \"x\"",
            "add hooks to ~/.codex/config.toml, line 2: hooks.Stop is not a list of tables",
        ),
    ];
    for (agent, old, message) in cases {
        let error = inject(*agent, Some(old), COMMAND).unwrap_err();
        assert!(error.to_string().starts_with(message), "{error}\n{message}");
        assert!(error.hint().ends_with('.'));
    }
    let large = vec![b' '; (4 << 20) + 1];
    let error = inject(Claude, Some(&large), COMMAND).unwrap_err();
    assert!(error.to_string().contains("larger"), "{error}");
}
