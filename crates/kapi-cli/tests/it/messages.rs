//! Messages to agents at work and pauses, for whatever has an agent: launches, tasks and workflows as
//! goals.
//!
//! Agents are scripts and commands; sandboxes, git and processes are real.

use std::fs;
use std::path::PathBuf;

use crate::environment::{Environment, await_some};
use crate::kernel_leavings::await_begun;
use crate::program::Running;
use crate::workflow_support::{AGENT, Machine, last};

/// Works only in a turn that it takes after the first, which never ends by itself.
const LISTENER: &str = "turns:\n\
    - steps: [{say: begun}, {bash: sleep 3000}]\n\
    - steps: [{write: {path: answer.txt, content: '42'}}, {say: I have heard you.}]\n";
/// Never ends by itself unless it is started again.
const DEAF: &str = "command:if [ -e began ]; then echo 42 > answer.txt; exit 0; fi; touch began; \
                    echo begun; sleep 3000";
/// What a person says.
const WORDS: &str = "use forty-two";

/// Starts a launch and waits until its agent has begun; returns the directory of its runs, too.
fn launched(env: &Environment, agent: &str) -> (Running, PathBuf) {
    let project = env.repository().display().to_string();
    let running = env.start(&[
        "launch",
        "1",
        &project,
        "--task",
        "make it right",
        "--agent",
        agent,
        "--branch",
        "b",
        "--json",
    ]);
    let run = await_some("the agent of the launch", || {
        let projects = fs::read_dir(env.home().join(".ilchul/sandboxes")).ok()?;
        let mut runs = projects
            .flatten()
            .map(|project| project.path().join("1/runs/1"));
        runs.find(|run| {
            let transcript = fs::read_to_string(run.join("transcript.jsonl"));
            transcript.is_ok_and(|text| text.contains("begun"))
        })
    });
    (running, run)
}

#[test]
fn a_message_cuts_into_the_turn_of_a_launch_and_the_next_one_has_it() {
    let env = Environment::new();
    let agent = env.script("listener.yaml", LISTENER);
    let (running, run) = launched(&env, &agent);
    let said = env.kapi(&["say", "launch/1", WORDS]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stdout.contains("in its next turn"), "{said:?}");
    let ended = running.finish();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(env.show("b", "answer.txt"), "42");
    let prompt = fs::read_to_string(run.join("prompt.md")).unwrap();
    assert!(
        prompt.contains(WORDS) && prompt.contains("make it right"),
        "{prompt}"
    );
    let log = env.kapi(&["log", "launch/1"]).stdout;
    for event in [
        "you said: use forty-two",
        "the agent was told 1 message",
        "exit code 0",
    ] {
        assert!(log.contains(event), "{event}: {log}");
    }
    env.kapi(&["say", "launch/1", "more"])
        .assert_error(3, &["no message reaches launch/1", "not at work"]);
    assert_eq!(env.kapi(&["audit"]).code, 0);
}

#[test]
fn a_command_is_said_to_take_no_messages_and_can_be_paused() {
    let env = Environment::new();
    let (running, _) = launched(&env, DEAF);
    env.kapi(&["say", "launch/1", WORDS])
        .assert_error(3, &["its agent is a command", "kapi cancel"]);
    assert!(!env.kapi(&["log", "launch/1"]).stdout.contains(WORDS));
    let paused = env.kapi(&["pause", "launch/1"]);
    assert_eq!(paused.code, 0, "{paused:?}");
    assert!(paused.stdout.contains("kapi resume launch/1"), "{paused:?}");
    assert_eq!(running.finish().code, 130);
    let resumed = env.kapi(&["resume", "launch/1", "--json"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_eq!(env.show("b", "answer.txt"), "42");
    env.kapi(&["pause", "launch/1"])
        .assert_error(3, &["launch/1 is not running"]);
}

#[test]
fn a_message_reaches_the_agent_of_a_task_while_it_works() {
    let env = Environment::new();
    let agent = env.script("listener.yaml", LISTENER);
    let pending = env.kapi(&["task", "run", "later", "--agent", &agent, "--detach"]);
    assert_eq!(pending.code, 0, "{pending:?}");
    env.kapi(&["say", "task_1", WORDS])
        .assert_error(3, &["no message reaches task_1", "has not started"]);
    env.kapi(&["pause", "task_1"])
        .assert_error(3, &["cannot be paused", "kapi cancel task_1"]);
    let worker = env.start(&["up", "--once"]);
    await_begun(&env, 1);
    let said = env.kapi(&["say", "task_1", WORDS]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(worker.finish().code, 0);
    let task = env.json(&["show", "task_1"]);
    assert_eq!(task["state"], "completed", "{task:#}");
    assert_eq!(env.show("kapi/task_1", "answer.txt"), "42");
    env.kapi(&["say", "task_1", WORDS])
        .assert_error(3, &["it has ended"]);
}

#[test]
fn a_workflow_passes_messages_to_its_goals_and_rests_until_it_is_resumed() {
    const FIRST: &str = "{write: {path: word.txt, content: \"helo\\n\"}}";
    assert!(AGENT.contains(FIRST));
    // It says so once it has left the sign by which it knows that it was here before.
    let waits = "{bash: 'cd; if [ -e began ]; then touch again; fi; touch began'}, {say: begun}, \
                 {bash: '[ -e \"$HOME/again\" ] || sleep 3000'}, ";
    let machine = Machine::with_agent(&AGENT.replacen(FIRST, &format!("{waits}{FIRST}"), 1));
    let env = &machine.env;
    let args = [
        "ralph",
        "greet people",
        "--agent",
        &machine.agent,
        "--reviewer",
        &machine.reviewer,
        "--judge",
        "none",
        "--unlinked",
        "--approve-plan",
        "auto",
    ];
    let driver = env.start(&args);
    let begun = || {
        await_some("the agent of the first task", || {
            let runs = fs::read_dir(env.repository().join(".ilchul/runs")).ok()?;
            let mut transcripts = runs
                .flatten()
                .map(|run| run.path().join("transcript.jsonl"));
            let has_begun = transcripts
                .any(|file| fs::read_to_string(file).is_ok_and(|text| text.contains("begun")));
            has_begun.then_some(())
        });
    };
    begun();
    let paused = env.kapi(&["pause", "1"]);
    assert_eq!(paused.code, 0, "{paused:?}");
    assert!(
        paused.stdout.contains("kapi ralph resume 001"),
        "{paused:?}"
    );
    assert_ne!(driver.finish().code, 0);
    env.await_no_process();
    let view = env.json(&["status", "1"]);
    assert_eq!(view["status"], "blocked", "{view:#}");
    assert_eq!(view["blocked"]["reason"], "paused by the user", "{view:#}");
    let again = env.kapi(&["pause", "1"]);
    assert!(again.stdout.contains("at rest already"), "{again:?}");

    let said = env.kapi(&["say", "1", "mind the spelling"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stdout.contains("001-greet-people"), "{said:?}");
    let done = env.kapi(&["ralph", "resume", "1", "--json"]);
    assert_eq!(last(&done)["status"], "completed", "{done:?}");
    let prompts = fs::read_dir(env.repository().join(".ilchul/runs")).unwrap();
    let mut prompts = prompts.flatten().map(|run| run.path().join("prompt.md"));
    let is_told = prompts
        .any(|file| fs::read_to_string(file).is_ok_and(|text| text.contains("mind the spelling")));
    assert!(is_told);
    env.kapi(&["say", "1", "more"])
        .assert_error(3, &["no message reaches workflow 001", "it has ended"]);
}
