//! How each CLI is handed the tools of its goal: in its own files, for this run, and for no judge.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use kapi_agent::agent::AgentKind;
use kapi_agent::launch::tools::Tools;
use kapi_agent::launch::upstream::GatewayAddress;
use kapi_agent::launch::{AgentLaunch, AgentTurn, HostEnvironment, LaunchPurpose, launch};
use kapi_agent::settings::AgentSettings;
use serde_json::{Value, json};

const AGENTS: &[&str] = &["claude", "codex", "gemini", "pi"];
const PROGRAM: &str = "/run/kapi/tools/bin/kapi";
const SOCKET: &str = "/run/kapi/tools/socket/tools.sock";

fn started(agent: &str, purpose: LaunchPurpose) -> AgentLaunch {
    let host: BTreeMap<OsString, OsString> =
        ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"]
            .map(|name| (name.into(), "sk-key".into()))
            .into();
    let env = [("KAPI_AGENT_TOOLS", SOCKET), ("KAPI_RUN_ID", "001-fix-t1")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
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
        tools: Some(Tools {
            program: Path::new(PROGRAM),
            env: &env,
        }),
        gate: None,
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

fn file(launch: &AgentLaunch, path: &str) -> String {
    let found = launch
        .files
        .iter()
        .find(|file| file.path == Path::new(path));
    let file = found.unwrap_or_else(|| panic!("no {path} in {:?}", launch.files));
    assert_eq!(file.mode, 0o600);
    String::from_utf8(file.content.clone()).unwrap()
}

fn after<'a>(launch: &'a AgentLaunch, option: &str) -> &'a str {
    let at = launch.args.iter().position(|arg| arg == option).unwrap();
    &launch.args[at + 1]
}

fn server() -> Value {
    json!({
        "command": PROGRAM,
        "args": ["mcp"],
        "env": {"KAPI_AGENT_TOOLS": SOCKET, "KAPI_RUN_ID": "001-fix-t1"},
    })
}

#[test]
fn claude_reads_a_file_of_ours_and_no_other() {
    let launch = started("claude", LaunchPurpose::Work);
    assert_eq!(
        after(&launch, "--mcp-config"),
        "/home/agent/.claude/kapi-tools.json"
    );
    assert_eq!(after(&launch, "--allowedTools"), "mcp__kapi");
    assert!(launch.args.contains(&"--strict-mcp-config".to_owned()));
    let config: Value = serde_json::from_str(&file(&launch, ".claude/kapi-tools.json")).unwrap();
    assert_eq!(config, json!({"mcpServers": {"kapi": server()}}));
}

#[test]
fn codex_finds_the_server_in_its_configuration() {
    let launch = started("codex", LaunchPurpose::Work);
    let config: toml::Table = file(&launch, ".codex/config.toml").parse().unwrap();
    let found = serde_json::to_value(&config["mcp_servers"]["kapi"]).unwrap();
    for (key, value) in server().as_object().unwrap() {
        assert_eq!(&found[key], value, "{key}");
    }
    assert_eq!(found["startup_timeout_sec"], 60);
}

#[test]
fn gemini_trusts_this_server_and_allows_no_other() {
    let launch = started("gemini", LaunchPurpose::Work);
    assert_eq!(after(&launch, "--allowed-mcp-server-names"), "kapi");
    let config: Value = serde_json::from_str(&file(&launch, ".gemini/settings.json")).unwrap();
    let found = &config["mcpServers"]["kapi"];
    for (key, value) in server().as_object().unwrap() {
        assert_eq!(&found[key], value, "{key}");
    }
    assert_eq!(found["trust"], true);
}

#[test]
fn pi_loads_our_extension_and_no_other() {
    let launch = started("pi", LaunchPurpose::Work);
    assert_eq!(after(&launch, "-e"), "/home/agent/.pi/agent/kapi/tools.js");
    assert!(launch.args.contains(&"--no-extensions".to_owned()));
    let extension = file(&launch, ".pi/agent/kapi/tools.js");
    let line = extension
        .lines()
        .find_map(|line| line.strip_prefix("const kapi = "))
        .unwrap();
    let wanted: Value = serde_json::from_str(line.trim_end_matches(';')).unwrap();
    assert_eq!(wanted["program"], PROGRAM);
    assert_eq!(wanted["env"], server()["env"]);
    assert!(!extension.contains("{{"), "{extension}");
}

#[test]
fn a_judge_is_handed_no_tools() {
    for agent in AGENTS {
        let launch = started(agent, LaunchPurpose::Judge);
        let files: Vec<String> = launch
            .files
            .iter()
            .map(|file| String::from_utf8_lossy(&file.content).into_owned())
            .collect();
        let all = format!("{:?} {files:?}", launch.args);
        assert!(
            !all.contains(PROGRAM) && !all.contains("KAPI_AGENT_TOOLS"),
            "{agent}: {all}"
        );
    }
}
