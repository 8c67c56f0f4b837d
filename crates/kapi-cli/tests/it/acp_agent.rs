//! `--agent acp:<command>`: an agent that speaks the Agent Client Protocol does the work.
//!
//! The agent is a shell script that plays its side line by line, so that it can also play it badly.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;
use serde_json::Value;

use crate::environment::{BRANCH, Environment, FIRST, write};

/// What every agent of these tests does until it is asked something.
const BEGIN: &str = r#"#!/bin/sh
say() { printf '%s\n' "$1"; }
chunk() {
    say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}}}'
}
tool() {
    say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"tool_call","toolCallId":"'"$1"'","title":"'"$2"'","kind":"'"$3"'","status":"pending"}}}'
}
end() {
    say '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"'"$1"'","usage":{"inputTokens":100,"outputTokens":7,"totalTokens":107}}}'
}
ask() {
    say '{"jsonrpc":"2.0","id":"ask","method":"session/request_permission","params":{"sessionId":"s-1","toolCall":{"toolCallId":"p-1","title":"'"$1"'","kind":"execute"},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}}'
    IFS= read -r answer
}
session=new
while IFS= read -r line; do
    case $line in
    *'"method":"initialize"'*)
        say '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}' ;;
    *'"method":"session/new"'*)
        say '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s-1"}}' ;;
    *'"method":"session/load"'*)
        session=loaded
        chunk 'said long ago'
        say '{"jsonrpc":"2.0","id":2,"result":null}' ;;
    *'"method":"session/prompt"'*)
"#;
const END: &str = " ;;\n    esac\ndone\n";

/// Returns the reference of an agent that does this when it is asked.
fn agent(env: &Environment, on_prompt: &str) -> String {
    let file = env.root().join("acp-agent.sh");
    write(&file, format!("{BEGIN}{on_prompt}{END}"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    format!("acp:{} --talk", file.display())
}

fn ends(env: &Environment) -> Vec<Value> {
    let events = env.events(FIRST).into_iter();
    let ended = events.filter(|event| event["type"] == "agent_ended");
    ended.map(|event| event["data"]["run"].clone()).collect()
}

#[test]
fn it_works_over_two_turns_of_one_session_and_is_accounted_for() {
    let env = Environment::new();
    let agent = agent(
        &env,
        r#"
        tool t-1 "Write answer.txt" edit
        if [ $session = new ]; then echo 41 > answer.txt; else echo 42 > answer.txt; fi
        chunk "It is "
        chunk "$session."
        end end_turn"#,
    );
    let run = env.run(&agent, &["--judge", "none"]);
    run.assert_status("done", 0);
    assert_eq!(run.result["turns"], 2);
    assert_eq!(env.show(BRANCH, "answer.txt"), "42");
    assert_eq!(run.result["usage"]["input_tokens"], 200);
    assert_eq!(run.result["usage"]["output_tokens"], 14);
    let ends = ends(&env);
    let told: Vec<(&Value, &Value, &Value)> = ends
        .iter()
        .map(|run| (&run["session"], &run["message"], &run["tools"]))
        .collect();
    let one = Value::from(1);
    let (session, new, loaded) = ("s-1".into(), "It is new.".into(), "It is loaded.".into());
    assert_eq!(told, [(&session, &new, &one), (&session, &loaded, &one)]);
    assert!(
        run.said().contains("edit Write answer.txt"),
        "{}",
        run.said()
    );
    env.await_no_process();
}

#[test]
fn what_it_asks_permission_for_is_asked_of_the_person_when_the_contract_says_so() {
    let env = Environment::new();
    let agent = agent(
        &env,
        r#"
        ask "git tag one"
        case $answer in *'"optionId":"yes"'*) touch tagged.txt; echo 42 > answer.txt ;; esac
        chunk "asked"
        end end_turn"#,
    );
    let run = env.run(&agent, &["--judge", "none", "--ask-before", "git tag"]);
    run.assert_status("blocked", 5);
    let asked = env.events(FIRST).into_iter();
    let asked: Vec<Value> = asked
        .filter(|event| event["type"] == "consent_asked")
        .collect();
    assert_eq!(asked.len(), 1, "{asked:#?}");
    assert!(
        asked[0]["data"].to_string().contains("git tag one"),
        "{asked:#?}"
    );
    let allowed = env.kapi(&["goal", "allow", "1", "git tag"]);
    assert_eq!(allowed.code, 0, "{allowed:?}");
    env.resume("1").assert_status("done", 0);
    assert!(!env.show(BRANCH, "tagged.txt").contains("fatal"));
}

#[test]
fn an_agent_that_breaks_off_talks_nonsense_or_stops_early_is_told_as_it_is() {
    // What it does, what its turn comes to, and what its words are.
    let cases = [
        (
            "chunk begun\necho 'out of memory' >&2\nexit 3",
            "crashed",
            "begun",
        ),
        ("kill -9 $$", "crashed", "ended by signal 9"),
        ("end max_tokens", "limit_reached", ""),
        ("chunk no\nend refusal", "refused", "no"),
        (
            "say '{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":401,\"message\":\"the key is wrong\"}}'",
            "provider",
            "",
        ),
        (
            "say 'not JSON'; say '{\"jsonrpc\":'; say '[]'; say '{\"id\":77,\"result\":{}}'\n\
             printf '\\377\\376\\n'; chunk fine; end end_turn",
            "finished",
            "fine",
        ),
    ];
    for (does, end, words) in cases {
        let env = Environment::new();
        let agent = agent(&env, does);
        env.kapi(&[
            "run",
            "make the answer right",
            "--verify",
            "sh test.sh",
            "--judge",
            "none",
            "--agent",
            &agent,
            "--yes",
            "--turns",
            "1",
            "--park",
        ]);
        let events = env.events(FIRST);
        let told = if end == "provider" {
            let failed = events
                .iter()
                .find(|event| event["type"] == "provider_failed");
            failed.map(|event| event["data"].to_string())
        } else {
            ends(&env).first().map(|run| {
                assert!(
                    run["message"].as_str().unwrap().contains(words),
                    "{does}: {run:#}"
                );
                run["end"].to_string()
            })
        };
        let told = told.unwrap_or_else(|| panic!("{does}: {events:#?}"));
        let wanted = if end == "provider" {
            "the key is wrong"
        } else {
            end
        };
        assert!(told.contains(wanted), "{does}: {told}");
        env.await_no_process();
    }
}

#[test]
fn an_agent_that_speaks_another_version_is_left_with_a_reason() {
    let env = Environment::new();
    let file = env.root().join("acp-agent.sh");
    let script = "#!/bin/sh\nread -r line\n\
        echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":2}}'\nread -r line\n";
    write(&file, script);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let agent = format!("acp:{}", file.display());
    env.run(&agent, &["--judge", "none", "--turns", "1"]);
    let message = ends(&env)[0]["message"].to_string();
    assert!(
        message.contains("version 2 of the Agent Client Protocol"),
        "{message}"
    );
    let missing = env.kapi(&[
        "run",
        "x",
        "--agent",
        "acp:no-such-agent --acp",
        "--verify",
        "true",
        "--judge",
        "none",
        "--yes",
    ]);
    missing.assert_error_among_talk(4, &["no-such-agent"]);
}

#[test]
fn an_interrupted_turn_ends_with_its_agent_and_the_goal_goes_on_later() {
    let env = Environment::new();
    let agent = agent(
        &env,
        r#"
        if [ ! -e started.txt ]; then
            touch started.txt; tool t-1 "wait for it" execute; sleep 3600
        fi
        echo 42 > answer.txt; rm started.txt
        chunk "It is right."
        end end_turn"#,
    );
    let mut running = env.start_run(&agent, &["--judge", "none", "--turns", "2"]);
    running.await_line(&|line| line.contains("wait for it"));
    running.signal(Signal::INT);
    assert_eq!(running.finish().code, 130);
    env.await_no_process();
    env.resume("1").assert_status("done", 0);
}

/// Is asked to stop in the middle of its turn, tells what it used, and can go on with its session.
const ASKED_TO_STOP: &str = r#"
        if [ $session = new ]; then
            echo 41 > answer.txt; tool t-1 "wait for it" execute
            IFS= read -r line
            case $line in
            *'"method":"session/cancel"'*'"sessionId":"s-1"'*) echo asked > stopped.txt ;;
            esac
            end cancelled; continue
        fi
        echo 42 > answer.txt
        chunk "It is right."
        end end_turn"#;

#[test]
fn a_pause_cancels_its_turn_by_the_protocol_and_its_session_goes_on() {
    for level in ["native", "none"] {
        let env = Environment::new();
        let agent = agent(&env, ASKED_TO_STOP);
        let options = ["--judge", "none", "--sandbox", level];
        let mut running = env.start_run(&agent, &options);
        running.await_line(&|line| line.contains("wait for it"));
        let paused = env.kapi(&["pause", "1"]);
        assert_eq!(paused.code, 0, "{paused:?}");
        running.finish();
        env.await_no_process();
        let goal = env.json(&["show", "1"]);
        assert_eq!(goal["status"], "paused", "{level}: {goal:#}");
        // What it told when it was asked is kept: its session, and what it used.
        let events = env.events(FIRST);
        let cancelled = events
            .iter()
            .find(|event| event["type"] == "effect_cancelled");
        let told = cancelled.map(|event| event["data"].to_string());
        let told = told.unwrap_or_else(|| panic!("{level}: {events:#?}"));
        assert!(
            told.contains("\"s-1\"") && told.contains("100"),
            "{level}: {told}"
        );
        let run = env.resume("1");
        run.assert_status("done", 0);
        assert_eq!(env.show(BRANCH, "stopped.txt"), "asked", "{level}");
        assert_eq!(ends(&env)[0]["message"], "It is right.", "{level}");
    }
}
