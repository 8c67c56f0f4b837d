//! What the doctor calls ok works: agents are started in the sandbox, their providers greeted, and
//! the programs of verify commands looked for.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use kapi_testkit::model_server::ModelServer;
use kapi_testkit::model_server::scenario::ModelScenario;
use serde_json::{Value, json};

use crate::environment::{Environment, write};

/// Prints its version, from a file beside it.
const CLI: &str = "#!/usr/bin/env node-like\ncat \"$(dirname \"$1\")/version\"\n";

/// Makes a program.
fn program(env: &Environment, name: &str, text: &str) {
    let path = env.home().join(name);
    write(&path, text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Installs an agent as npm does in a prefix of the person's own that is not on PATH.
fn install(env: &mut Environment, agent: &str) {
    program(env, ".npm-global/lib/node_modules/@x/agent/cli.js", CLI);
    program(env, ".npm-global/bin/node-like", "#!/bin/sh\n. \"$1\"\n");
    let version = ".npm-global/lib/node_modules/@x/agent/version";
    write(&env.home().join(version), "9.8.7 (Agent)\n");
    let link = env.home().join(".npm-global/bin").join(agent);
    symlink("../lib/node_modules/@x/agent/cli.js", link).unwrap();
    env.set("PATH", "/usr/bin:/bin");
}

fn server(key: &str) -> ModelServer {
    let mut scenario = ModelScenario::new(Vec::new());
    scenario.require_key = Some(key.to_owned());
    ModelServer::start(scenario).unwrap()
}

/// Returns what the doctor says of something.
fn check(env: &Environment, name: &str) -> Value {
    let report = env.json(&["doctor"]);
    let checks = report["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["name"] == name);
    found
        .unwrap_or_else(|| panic!("{name} in {report:#}"))
        .clone()
}

fn assert_says(check: &Value, words: &[&str]) {
    let text = format!("{} {}", check["detail"], check["hint"]);
    for word in words {
        assert!(text.contains(word), "{word:?} in {check:#}");
    }
}

#[test]
fn an_agent_behind_npms_links_starts_and_its_provider_takes_the_key() {
    for (agent, variable) in [
        ("claude", "ANTHROPIC_API_KEY"),
        ("codex", "OPENAI_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
    ] {
        let mut env = Environment::new();
        install(&mut env, agent);
        let server = server("sk-right");
        env.configure(&format!(
            "[agents.{agent}]\nbase_url = {:?}\napi_key_env = {variable:?}\n",
            server.base_url()
        ));
        let name = format!("agent: {agent}");
        let without = check(&env, &name);
        assert_eq!(
            (&without["ok"], &without["installed"]),
            (&json!(false), &json!(true))
        );
        assert_says(&without, &["9.8.7", variable, "not set"]);
        env.set(variable, "sk-wrong");
        let refused = check(&env, &name);
        assert_eq!(refused["ok"], false, "{refused:#}");
        assert_says(&refused, &["9.8.7", "401", "check the key"]);
        env.set(variable, "sk-right");
        let taken = check(&env, &name);
        assert_eq!(taken["ok"], true, "{taken:#}");
        assert_says(&taken, &["9.8.7", "starts in the sandbox", "accepts"]);
        assert!(
            server
                .requests()
                .iter()
                .all(|request| !request.path.ends_with("messages"))
        );
    }
}

#[test]
fn an_agent_that_cannot_start_inside_is_not_called_ok() {
    let mut env = Environment::new();
    env.set("ANTHROPIC_API_KEY", "sk-1");
    env.set("PATH", "/usr/bin:/bin");
    // On the host it would work: what it needs beside it is not shown.
    let hidden = env.home().join("private/version");
    write(&hidden, "1.0\n");
    program(
        &env,
        ".local/bin/claude",
        &format!("#!/bin/sh\ncat {}\n", hidden.display()),
    );
    let claude = check(&env, "agent: claude");
    assert_eq!(
        (&claude["ok"], &claude["installed"]),
        (&json!(false), &json!(true))
    );
    assert_says(
        &claude,
        &[
            "start",
            "in the sandbox",
            "exit 1",
            "private/version",
            "read_only",
        ],
    );
    let words = env.kapi(&["doctor"]).stdout;
    assert!(words.contains("FAILED   agent: claude"), "{words}");
    assert!(words.contains("missing  agent: codex"), "{words}");
    // What its hint says mends it.
    let shown = env.home().join("private");
    env.configure(&format!(
        "[sandbox]\nread_only = [{:?}]\n[agents.claude]\nbase_url = \"http://127.0.0.1:1\"\n",
        shown.display()
    ));
    let claude = check(&env, "agent: claude");
    assert_says(&claude, &["1.0", "reach 127.0.0.1:1"]);
}

#[test]
fn a_login_that_runs_do_not_get_is_told() {
    let mut env = Environment::new();
    install(&mut env, "claude");
    write(&env.home().join(".claude/.credentials.json"), "{}");
    let claude = check(&env, "agent: claude");
    assert_eq!(claude["ok"], false);
    assert_says(
        &claude,
        &[
            ".credentials.json is not shared",
            "login = true",
            "[agents.claude]",
        ],
    );
    env.configure("[agents.claude]\nlogin = true\n");
    let claude = check(&env, "agent: claude");
    assert_eq!(claude["ok"], true);
    assert_says(&claude, &["--probe"]);
}

#[test]
fn the_program_of_each_verify_command_is_looked_for_inside() {
    let env = Environment::new();
    env.write(
        ".ilchul/config.toml",
        "[goal]\nverify = [\"sh test.sh\", \"no-such-runner --all\"]\n",
    );
    let found = check(&env, "verify: sh test.sh");
    assert_eq!(found["ok"], true, "{found:#}");
    let missing = check(&env, "verify: no-such-runner --all");
    assert_eq!(missing["ok"], false, "{missing:#}");
    assert_says(
        &missing,
        &["no-such-runner is not on PATH", "[goal] `verify`"],
    );
}
