//! `kapi setup`: what it puts where, what it leaves alone, and that undoing leaves every byte as it was.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use crate::environment::{Environment, write};

/// Each client with the file of its servers, below the home.
const CLIENTS: [(&str, &str); 6] = [
    ("claude", ".claude.json"),
    ("codex", ".codex/config.toml"),
    ("gemini", ".gemini/settings.json"),
    ("cursor", ".cursor/mcp.json"),
    ("vscode", ".config/Code/User/mcp.json"),
    ("zed", ".config/zed/settings.json"),
];
const KAPI: &str = env!("CARGO_BIN_EXE_kapi");

fn setup(env: &Environment, words: &[&str]) -> Value {
    env.json(&[&["setup"], words].concat())
}

#[test]
fn a_client_without_settings_gets_them_and_loses_them() {
    let env = Environment::new();
    for (client, file) in CLIENTS {
        let path = env.home().join(file);
        let done = setup(&env, &[client, "--yes"]);
        assert_eq!(done["applied"], true, "{done}");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(KAPI) && text.contains("mcp"), "{text}");
        let again = setup(&env, &[client, "--yes"]);
        assert_eq!(again["applied"], false, "{again}");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
        setup(&env, &[client, "--undo", "--yes"]);
        assert!(!path.exists(), "{file}");
        assert!(!path.parent().unwrap().join(format!("{file}.tmp")).exists());
    }
    for directory in [".claude", ".codex", ".gemini", ".cursor", ".config/zed"] {
        assert!(!env.home().join(directory).exists(), "{directory}");
    }
}

/// Settings as people write them, each with a comment where the format has any.
fn written(client: &str) -> &'static str {
    match client {
        "claude" => {
            "{\n  \"numStartups\": 7,\n  \"mcpServers\": {\n    \"mine\": {\"command\": \"x\"}\n  }\n}"
        }
        "codex" => "# mine\nmodel = \"m\" # keep\n\n[mcp_servers.mine]\ncommand = \"x\"\n",
        "zed" => {
            "// mine\n{\n  \"theme\": \"One\", // keep\n  \"context_servers\": {\n    \"mine\": {\"command\": \"x\"},\n  },\n}\n"
        }
        "vscode" => "{\n\t\"servers\": {},\n\t\"inputs\": [] // keep\n}\n",
        _ => {
            "{\n    // mine\n    \"mcpServers\": { \"mine\": { \"command\": \"x\" } },\n    \"z\": 1 // keep\n}\n"
        }
    }
}

#[test]
fn settings_that_are_there_keep_every_byte() {
    let env = Environment::new();
    for (client, file) in CLIENTS {
        let path = env.home().join(file);
        let before = written(client);
        write(&path, before);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let shown = setup(&env, &[client, "--dry-run"]);
        assert_eq!(shown["applied"], false);
        let diff = shown["files"][0]["diff"].as_str().unwrap();
        assert!(diff.contains("kapi"), "{diff}");
        assert_eq!(fs::read_to_string(&path).unwrap(), before, "{client}");
        setup(&env, &[client, "--yes"]);
        let after = fs::read_to_string(&path).unwrap();
        for line in before.lines().filter(|line| line.contains("keep")) {
            assert!(after.contains(line), "{client}: {after}");
        }
        assert!(
            after.contains("mine") || client == "vscode",
            "{client}: {after}"
        );
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644, "{client}");
        setup(&env, &[client, "--undo", "--yes"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), before, "{client}");
    }
}

#[test]
fn undoing_leaves_what_changed_meanwhile() {
    let env = Environment::new();
    let path = env.home().join(".claude.json");
    write(&path, written("claude"));
    setup(&env, &["claude", "--yes"]);
    // The client writes its whole file anew, in its own way.
    let mut settings: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    settings["numStartups"] = json!(8);
    write(&path, serde_json::to_string(&settings).unwrap());
    setup(&env, &["claude", "--undo", "--yes"]);
    let left: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let wanted = json!({"numStartups": 8, "mcpServers": {"mine": {"command": "x"}}});
    assert_eq!(left, wanted);
}

#[test]
fn what_kapi_did_not_write_is_never_replaced() {
    let env = Environment::new();
    for (client, file, text) in [
        (
            "claude",
            ".claude.json",
            "{\"mcpServers\": {\"kapi\": {\"command\": \"mine\"}}}",
        ),
        (
            "codex",
            ".codex/config.toml",
            "[mcp_servers.kapi]\ncommand = \"mine\"\n",
        ),
        ("gemini", ".gemini/settings.json", "{\"mcpServers\": 7}"),
        ("cursor", ".cursor/mcp.json", "{ broken"),
        ("zed", ".config/zed/settings.json", "[]"),
    ] {
        let path = env.home().join(file);
        write(&path, text);
        let refused = env.kapi(&["setup", client, "--yes"]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains(file), "{refused:?}");
        assert!(
            refused.stderr.contains("hint: Kapi changes nothing"),
            "{refused:?}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    // What was put in and changed by hand is the person's by now.
    setup(&env, &["vscode", "--yes"]);
    let path = env.home().join(".config/Code/User/mcp.json");
    let changed = fs::read_to_string(&path)
        .unwrap()
        .replace("\"mcp\"", "\"mcp\", \"--tools\", \"goal\"");
    write(&path, &changed);
    let refused = env.kapi(&["setup", "vscode", "--undo", "--yes"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), changed);
}

#[test]
fn nothing_is_written_without_consent() {
    let env = Environment::new();
    let refused = env.kapi(&["setup", "cursor"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused.stdout.contains("+++ "),
        "the change is shown: {refused:?}"
    );
    assert!(refused.stderr.contains("--yes"), "{refused:?}");
    assert!(!env.home().join(".cursor").exists());
    let undone = env.kapi(&["setup", "cursor", "--undo"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert!(undone.stderr.contains("nothing to take out"), "{undone:?}");
}

#[test]
fn a_link_stays_one_and_other_tools_replace_the_entry() {
    let env = Environment::new();
    let real = env.home().join("dotfiles/codex.toml");
    write(&real, "model = \"m\"\n");
    fs::create_dir_all(env.home().join(".codex")).unwrap();
    let link = env.home().join(".codex/config.toml");
    symlink(&real, &link).unwrap();
    setup(&env, &["codex", "--yes"]);
    setup(&env, &["codex", "--yes", "--tools", "kernel"]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let text = fs::read_to_string(&real).unwrap();
    assert_eq!(text.matches("[mcp_servers.kapi]").count(), 1, "{text}");
    assert!(text.contains("\"--tools\", \"kernel\""), "{text}");
    setup(&env, &["codex", "--undo", "--yes"]);
    assert_eq!(fs::read_to_string(&real).unwrap(), "model = \"m\"\n");
}

#[test]
fn the_plugin_leaves_a_persons_own_files_alone() {
    let env = Environment::new();
    let settings = env.home().join(".claude/settings.json");
    let mine =
        "{\n  // mine\n  \"statusLine\": {\"type\": \"command\", \"command\": \"date\"}\n}\n";
    write(&settings, mine);
    let hooks = env.home().join(".codex/hooks.json");
    write(&hooks, "{\"hooks\": {}}\n");
    for (client, file, text) in [
        ("claude", &settings, mine),
        ("codex", &hooks, "{\"hooks\": {}}\n"),
    ] {
        let set_up = env.kapi(&["setup", client, "--yes"]);
        assert_eq!(set_up.code, 0, "{set_up:?}");
        assert!(set_up.stderr.contains("note: "), "{set_up:?}");
        assert!(set_up.stderr.contains("your own"), "{set_up:?}");
        assert_eq!(fs::read_to_string(file).unwrap(), text);
        let undone = env.kapi(&["setup", client, "--undo", "--yes"]);
        assert_eq!(undone.code, 0, "{undone:?}");
        assert_eq!(fs::read_to_string(file).unwrap(), text);
    }
    let command = env.home().join(".claude/skills/kapi/commands/goal.md");
    write(&command, "mine");
    let refused = env.kapi(&["setup", "claude", "--yes"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("--only-server"), "{refused:?}");
    assert!(!env.home().join(".claude.json").exists(), "all or nothing");
    let only = env.kapi(&["setup", "claude", "--yes", "--only-server"]);
    assert_eq!(only.code, 0, "{only:?}");
    assert_eq!(fs::read_to_string(&command).unwrap(), "mine");
}
