//! How each CLI is made to ask before its tools, and what its recorded payloads say then.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use kapi_agent::agent::AgentKind;
use kapi_agent::hook::gate::{asks, question};
use kapi_agent::launch::gate::{GateSocket, sealed_file};
use kapi_agent::launch::upstream::GatewayAddress;
use kapi_agent::launch::{AgentLaunch, AgentTurn, HostEnvironment, LaunchPurpose, launch};
use kapi_agent::settings::AgentSettings;
use kapi_core::consent_rule::matches;
use serde_json::{Value, json};

const AGENTS: &[&str] = &["claude", "codex", "gemini", "pi"];
const WORDS: &str =
    "/run/kapi/gate/bin/kapi hook --agent NAME --gate /run/kapi/gate/socket/gate.sock";

fn started(agent: &str, purpose: LaunchPurpose, gate: Option<GateSocket<'_>>) -> AgentLaunch {
    let host: BTreeMap<OsString, OsString> =
        ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"]
            .map(|name| (name.into(), "sk-key".into()))
            .into();
    let turn = AgentTurn {
        prompt: "p",
        prompt_file: Path::new("/p"),
        session: None,
        turn: 1,
        run_id: "001-fix-t1",
        purpose,
        home: Path::new("/home/agent"),
        workspace: Path::new("/workspace"),
        gateway: GatewayAddress {
            url: "http://127.0.0.1:8377",
            placeholder: "kapi-placeholder",
        },
        tools: None,
        gate,
    };
    let kind = AgentKind::parse(agent).unwrap();
    launch(
        &kind,
        &AgentSettings::default(),
        &HostEnvironment { env: &host },
        &turn,
    )
    .unwrap()
}

fn gated(agent: &str, purpose: LaunchPurpose) -> AgentLaunch {
    let gate = GateSocket {
        program: Path::new("/run/kapi/gate/bin/kapi"),
        socket: Path::new("/run/kapi/gate/socket/gate.sock"),
    };
    started(agent, purpose, Some(gate))
}

/// Returns the file that holds an agent's hooks.
fn sealed(agent: &str, launch: &AgentLaunch) -> String {
    let path = sealed_file(&AgentKind::parse(agent).unwrap()).unwrap();
    let found = launch.files.iter().find(|it| it.path == Path::new(path));
    let file = found.unwrap_or_else(|| panic!("no {path}"));
    String::from_utf8(file.content.clone()).unwrap()
}

fn hook_of(agent: &str) -> String {
    // Whatever becomes of the hook itself, only its yes lets a tool run.
    format!("{} || exit 2", WORDS.replace("NAME", agent))
}

#[test]
fn ask_before_hooks_every_tool_of_every_run() {
    for purpose in [LaunchPurpose::Work, LaunchPurpose::Judge] {
        let launch = gated("claude", purpose);
        let settings: Value = serde_json::from_str(&sealed("claude", &launch)).unwrap();
        assert_eq!(settings["disableAllHooks"], false);
        let group = &settings["hooks"]["PreToolUse"][0];
        assert_eq!(group["matcher"], "*");
        assert_eq!(group["hooks"][0]["command"], hook_of("claude"));
        let at = launch.args.iter().position(|arg| arg == "--settings");
        let named = launch.args.get(at.unwrap() + 1).unwrap();
        assert_eq!(named, "/home/agent/.claude/kapi-gate.json");

        let launch = gated("codex", purpose);
        let config: toml::Table = sealed("codex", &launch).parse().unwrap();
        let group = &config["hooks"]["PreToolUse"][0];
        assert_eq!(group["matcher"].as_str(), Some(".*"));
        let command = group["hooks"][0]["command"].as_str();
        assert_eq!(command, Some(hook_of("codex").as_str()));
        let trust = "--dangerously-bypass-hook-trust".to_owned();
        assert!(launch.args.contains(&trust), "else it is skipped");

        let launch = gated("gemini", purpose);
        let settings: Value = serde_json::from_str(&sealed("gemini", &launch)).unwrap();
        assert_eq!(settings["hooksConfig"]["enabled"], true);
        let group = &settings["hooks"]["BeforeTool"][0];
        assert_eq!(group["matcher"], "*");
        assert_eq!(group["hooks"][0]["command"], hook_of("gemini"));

        let launch = gated("pi", purpose);
        let extension = sealed("pi", &launch);
        let words: Vec<&str> = WORDS.split(' ').collect();
        let words = json!(words).to_string().replace("NAME", "pi");
        assert!(extension.contains(&words), "{extension}");
        let named = "/home/agent/.pi/agent/kapi/gate.js".to_owned();
        assert!(launch.args.contains(&named));
        assert!(launch.args.contains(&"--no-extensions".to_owned()));
    }
}

#[test]
fn ask_before_is_nowhere_without_a_list() {
    for agent in AGENTS {
        let launch = started(agent, LaunchPurpose::Work, None);
        for file in &launch.files {
            let text = String::from_utf8_lossy(&file.content);
            assert!(!text.contains("--gate"), "{agent}: {}", file.path.display());
        }
        assert!(
            !launch.args.iter().any(|arg| arg.contains("gate")),
            "{agent}"
        );
    }
}

#[test]
fn ask_before_is_not_for_a_command_agent() {
    assert!(!asks(&AgentKind::Command("true".to_owned())));
    for agent in AGENTS {
        assert!(asks(&AgentKind::parse(agent).unwrap()));
    }
}

/// Returns the entry that a recorded payload falls under.
fn found(file: &str, entry: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/hooks")
        .join(file);
    let recorded: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let payload = recorded["stdin"].to_string();
    let question =
        question(payload.as_bytes()).unwrap_or_else(|| panic!("{file} is not understood"));
    let list = [entry.to_owned()];
    matches(&list, &question.tool, &question.fields).map(ToOwned::to_owned)
}

#[test]
fn ask_before_reads_the_payload_of_each_cli() {
    for file in [
        "claude.hook.PreToolUse.Bash.json",
        "codex.hook.PreToolUse.Bash.json",
        "gemini.hook.BeforeTool.run_shell_command.json",
    ] {
        assert!(found(file, "echo hello").is_some(), "{file}");
        assert!(found(file, "cut -f1").is_some(), "{file}");
        assert_eq!(found(file, "git push"), None, "{file}");
    }
    for file in [
        "claude.hook.PreToolUse.mcp__echo__echo.json",
        "codex.hook.PreToolUse.mcp__echo__echo.json",
        "gemini.hook.BeforeTool.mcp_echo_echo.json",
    ] {
        assert!(found(file, "over mcp").is_some(), "{file}");
    }
    for file in [
        "claude.hook.PreToolUse.Write.json",
        "codex.hook.PreToolUse.apply_patch.json",
        "gemini.hook.BeforeTool.write_file.json",
    ] {
        assert_eq!(found(file, "hello"), None, "{file} writes and runs nothing");
    }
}

#[test]
fn ask_before_reads_a_payload_whole_or_not_at_all() {
    for payload in [
        "",
        "{",
        "[]",
        "{}",
        r#"{"tool_name":"Bash"}"#,
        r#"{"tool_input":{"command":"x"}}"#,
        r#"{"tool_name":"Bash","tool_input":{"command":"git pu"#,
    ] {
        assert_eq!(question(payload.as_bytes()), None, "{payload}");
    }
    let deep = format!(
        r#"{{"tool_name":"x","tool_input":{}1{}}}"#,
        "[".repeat(100),
        "]".repeat(100)
    );
    assert_eq!(question(deep.as_bytes()), None);
    let words =
        r#"{"tool_name":"shell","tool_input":{"command":["bash","-lc","git -C 'a b' push"]}}"#;
    let question = question(words.as_bytes()).unwrap();
    let list = ["git push".to_owned()];
    assert!(matches(&list, &question.tool, &question.fields).is_some());
    assert_eq!(question.shown.lines().count(), 1);
}
