//! The stop gate as a client's hooks meet it: payloads in, answers out, and a checkout that nobody
//! touched.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::environment::{Environment, FIRST, write};
use crate::program::finish;

const GOAL: &str = "/kapi:goal make the answer right\nverify: sh test.sh\nprotect: test.sh\n\
                    ask-before: git push\nholds: 2";

/// Has the hook of a client answer a payload.
fn hook(env: &Environment, agent: &str, event: &str, more: &Value) -> Value {
    let mut payload = json!({
        "hook_event_name": event, "session_id": "s", "cwd": env.repository(),
    });
    for (key, value) in more.as_object().unwrap() {
        payload[key] = value.clone();
    }
    let mut command = env.command(env!("CARGO_BIN_EXE_kapi"), env.root());
    command.args(["hook", "--agent", agent, "--session"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(payload.to_string().as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

fn typed(env: &Environment, prompt: &str) -> Value {
    hook(
        env,
        "claude",
        "UserPromptSubmit",
        &json!({"prompt": prompt}),
    )
}

fn stop(env: &Environment) -> Value {
    hook(env, "claude", "Stop", &json!({"stop_hook_active": false}))
}

fn tool(env: &Environment, agent: &str, command: &str) -> Value {
    let event = if agent == "gemini" {
        "BeforeTool"
    } else {
        "PreToolUse"
    };
    let call = json!({"tool_name": "Bash", "tool_input": {"command": command}});
    hook(env, agent, event, &call)
}

/// Everything of a checkout that is the person's.
fn theirs(env: &Environment) -> Vec<String> {
    let refs = env.git(&["for-each-ref", "refs/heads", "refs/tags", "refs/stash"]);
    vec![
        env.git(&["rev-parse", "HEAD"]),
        env.git(&["status", "--porcelain=v2", "--branch"]),
        env.git(&["diff", "--cached"]),
        env.git(&["diff"]),
        env.git(&["stash", "list"]),
        refs,
    ]
}

fn reason(answer: &Value) -> &str {
    answer["reason"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn a_turn_does_not_end_while_the_checks_fail_and_nothing_of_the_persons_changes() {
    let env = Environment::new();
    let begun = typed(&env, GOAL);
    let context = &begun["hookSpecificOutput"]["additionalContext"];
    assert!(context.as_str().unwrap().contains("sh test.sh"), "{begun}");
    env.write("notes.txt", "mine");
    env.write("staged.txt", "mine too");
    env.git(&["add", "staged.txt"]);
    let before = theirs(&env);
    let held = stop(&env);
    assert_eq!(held["decision"], "block", "{held}");
    assert!(reason(&held).contains("`sh test.sh` "), "{held}");
    assert_eq!(theirs(&env), before);
    let seen = env.git(&["for-each-ref", "--format=%(refname)", "refs/kapi"]);
    assert!(
        seen.contains("refs/kapi/001-make-answer-right/turn-1"),
        "{seen}"
    );
    env.write("answer.txt", "42\n");
    let before = theirs(&env);
    let done = stop(&env);
    assert!(done.get("decision").is_none(), "{done}");
    let text = done["systemMessage"].as_str().unwrap();
    assert!(text.starts_with("Kapi: proved"), "{text}");
    assert_eq!(theirs(&env), before);
    assert_eq!(stop(&env), json!({}), "what is proved holds nobody");
    let gate = env.json(&["gate"]);
    assert_eq!(gate["gate"]["status"], "done", "{gate}");
    // It is a goal as every other: one log, one account, one prover.
    let goal = env.json(&["show", "1"]);
    assert_eq!(goal["status"], "done", "{goal:#}");
    assert_eq!(goal["next"], json!(["kapi diff 001"]), "there is no branch");
    let ended = |event: &&Value| event["type"] == "turn_ended";
    let verdicts: Vec<Value> = env.events(FIRST).iter().filter(ended).cloned().collect();
    assert_eq!(verdicts.len(), 1, "{verdicts:?}");
    assert_eq!(env.kapi(&["audit"]).code, 0);
}

#[test]
fn it_is_steered_like_any_goal() {
    let env = Environment::new();
    typed(&env, GOAL);
    let listed = env.kapi(&["status"]);
    assert!(listed.stdout.contains(FIRST), "{listed:?}");
    assert_eq!(stop(&env)["decision"], "block");
    assert_eq!(env.kapi(&["pause", "1"]).code, 0);
    assert_eq!(stop(&env), json!({}), "a paused goal holds nobody");
    let resumed = env.kapi(&["resume", "1"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert!(resumed.stdout.contains("its claude session"), "{resumed:?}");
    assert_eq!(stop(&env)["decision"], "block");
    let log = env.kapi(&["log", "1"]);
    assert!(log.stdout.contains("turn 2"), "{log:?}");
    assert_eq!(env.kapi(&["cancel", "1"]).code, 0);
    assert_eq!(stop(&env), json!({}));
    let off = typed(&env, "/kapi:off");
    assert!(reason(&off).contains("NOT proved"), "{off}");
}

#[test]
fn checks_that_passed_before_let_go_and_prove_nothing() {
    let env = Environment::new();
    typed(&env, "/kapi:goal say hello\nverify: true");
    let done = stop(&env);
    assert!(done.get("decision").is_none(), "{done}");
    let text = done["systemMessage"].as_str().unwrap();
    assert!(text.contains("which proves nothing"), "{text}");
    assert_eq!(env.json(&["gate"])["gate"]["status"], "unverified");
    assert!(reason(&typed(&env, "/kapi:off")).contains("NOT proved"));
}

#[test]
fn a_check_that_was_changed_proves_nothing() {
    let env = Environment::new();
    typed(&env, GOAL);
    env.write("test.sh", "exit 0\n");
    let held = stop(&env);
    assert_eq!(held["decision"], "block", "{held}");
}

#[test]
fn the_gate_lets_go_at_its_limit_on_a_pause_and_on_the_persons_word() {
    let env = Environment::new();
    typed(&env, GOAL);
    for _ in 0..2 {
        assert_eq!(stop(&env)["decision"], "block");
    }
    // A person who speaks begins the count anew.
    assert_eq!(typed(&env, "go on"), json!({}));
    for _ in 0..2 {
        assert_eq!(stop(&env)["decision"], "block");
    }
    let released = stop(&env);
    let text = released["systemMessage"].as_str().unwrap();
    assert!(
        text.contains("lets go") && text.contains("NOT proved"),
        "{text}"
    );
    assert_eq!(stop(&env), json!({}));
    let resumed = typed(&env, "/kapi:resume");
    assert_eq!(resumed["decision"], "block", "no model is asked: {resumed}");
    assert_eq!(stop(&env)["decision"], "block");
    let paused = typed(&env, "/kapi:pause");
    assert!(reason(&paused).contains("paused"), "{paused}");
    assert_eq!(stop(&env), json!({}));
    let off = typed(&env, "kapi:off");
    assert!(reason(&off).contains("NOT proved"), "{off}");
    assert_eq!(stop(&env), json!({}));
    assert_eq!(env.json(&["gate"])["gate"], Value::Null);
}

#[test]
fn a_tool_on_the_list_is_asked_about_and_the_gate_is_the_persons() {
    let env = Environment::new();
    assert_eq!(
        tool(&env, "claude", "git push"),
        json!({}),
        "no gate, no question"
    );
    typed(&env, GOAL);
    let decision = |answer: &Value| answer["hookSpecificOutput"]["permissionDecision"].clone();
    assert_eq!(
        decision(&tool(&env, "claude", "cd x && git  push -f")),
        "ask"
    );
    assert_eq!(tool(&env, "gemini", "git push")["decision"], "deny");
    assert_eq!(tool(&env, "claude", "git status"), json!({}));
    for order in ["kapi gate off", "env -u X /usr/bin/kapi gate pause"] {
        assert_eq!(decision(&tool(&env, "codex", order)), "deny", "{order}");
    }
    let mut within = env.command(env!("CARGO_BIN_EXE_kapi"), &env.repository());
    within.env("KAPI_RUN_ID", "r").args(["gate", "off"]);
    let within = finish(within);
    assert_eq!(within.code, 3, "{within:?}");
    assert_eq!(stop(&env)["decision"], "block");
}

#[test]
fn where_no_gate_is_nothing_is_said_and_a_broken_one_holds() {
    let env = Environment::new();
    for event in ["SessionStart", "Stop", "SessionEnd", "Notification"] {
        assert_eq!(
            hook(&env, "claude", event, &json!({})),
            json!({}),
            "{event}"
        );
    }
    assert!(!env.home().join(".ilchul/gates").exists());
    let set = env.kapi(&["gate", "set", "make it right", "--verify", "sh test.sh"]);
    assert_eq!(set.code, 0, "{set:?}");
    let started = hook(&env, "claude", "SessionStart", &json!({}));
    let context = &started["hookSpecificOutput"]["additionalContext"];
    assert!(
        context.as_str().unwrap().contains("make it right"),
        "{started}"
    );
    let line = env.kapi(&["gate", "status", "--line"]);
    assert!(
        line.stdout.contains("active") && line.stdout.contains("make it right"),
        "{line:?}"
    );
    let checked = env.kapi(&["gate", "check"]);
    assert_eq!(checked.code, 5, "{checked:?}");
    let gates = fs::read_dir(env.home().join(".ilchul/gates")).unwrap();
    for gate in gates {
        write(&gate.unwrap().path().join("gate.json"), "{");
    }
    let held = stop(&env);
    assert_eq!(held["decision"], "block", "{held}");
    assert!(reason(&held).contains("kapi gate off"), "{held}");
    let off = env.kapi(&["gate", "off"]);
    assert_eq!(off.code, 0, "{off:?}");
    assert_eq!(stop(&env), json!({}));
}

#[test]
fn gemini_is_told_in_its_own_words() {
    let env = Environment::new();
    let prompt = json!({"prompt": GOAL});
    hook(&env, "gemini", "BeforeAgent", &prompt);
    let held = hook(&env, "gemini", "AfterAgent", &json!({}));
    assert_eq!(held["decision"], "deny", "{held}");
    env.write("answer.txt", "42\n");
    let done = hook(&env, "gemini", "AfterAgent", &json!({}));
    assert!(
        done["systemMessage"].as_str().unwrap().contains("proved"),
        "{done}"
    );
}
