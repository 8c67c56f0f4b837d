//! Ask-before, enforced: a listed command never runs until a person allows it, in whatever disguise,
//! at whatever level; and an agent that cannot be stopped is refused the contract.

use serde_json::Value;

use crate::environment::{Environment, FIRST, usual};
use crate::program::Run;

/// A listed command in several disguises. Each would leave a file that nothing else makes.
const TRIES: &str = "turns:
  - steps:
      - bash: rm -rf nothing && touch first.txt
      - bash: touch second.txt; /bin/rm  -r -f nothing
      - bash: sh -c 'touch third.txt; rm -fr nothing'
      - bash: |
          FOO=1 env rm \\
            -rf nothing; touch fourth.txt
      - bash: echo nothing | xargs \"rm\" '-rf'; touch fifth.txt
";
const NAMES: &[&str] = &["first", "second", "third", "fourth", "fifth"];

fn asked(env: &Environment) -> Vec<Value> {
    let mut events = env.events(FIRST);
    events.retain(|event| event["type"] == "consent_asked");
    events
}

fn run_listed(env: &Environment, script: &str, options: &[&str]) -> Run {
    let agent = env.script("agent.yaml", script);
    env.run(&agent, &[&["--ask-before", "rm -rf"], options].concat())
}

fn check_refused_and_then_allowed(options: &[&str]) {
    let env = Environment::new();
    let again = "
  - steps:
      - bash: rm -rf nothing && echo 42 > answer.txt
";
    let run = run_listed(&env, &format!("{TRIES}{again}"), options);
    run.assert_status("blocked", 5);
    let events = asked(&env);
    assert_eq!(events.len(), NAMES.len(), "{events:#?}");
    for event in &events {
        assert_eq!(event["data"]["asked"]["pattern"], "rm -rf");
        assert!(event["actor"].to_string().contains(FIRST), "{event}");
    }
    let log = env.events(FIRST);
    let stopped = log.iter().find(|event| event["type"] == "goal_stopped");
    let stop = stopped.unwrap()["data"].to_string();
    assert!(stop.contains("consent_needed"), "{stop}");
    let made = env.git(&["log", "--all", "--name-only", "--format="]);
    for name in NAMES {
        assert!(!made.contains(name), "{name} was made: {made}");
    }
    let allowed = env.kapi(&["goal", "allow", "1", "rm -rf"]);
    assert_eq!(allowed.code, 0, "{}", allowed.stderr);
    let run = env.resume("1");
    run.assert_status("done", 0);
    assert_eq!(asked(&env).len(), NAMES.len());
}

#[test]
fn ask_before_holds_a_command_back_until_a_person_allows_it() {
    check_refused_and_then_allowed(&[]);
}

#[test]
fn ask_before_holds_without_a_sandbox_too() {
    check_refused_and_then_allowed(&["--sandbox", "none"]);
}

#[test]
fn ask_before_is_recorded_once_a_command() {
    let env = Environment::new();
    let script = "turns:
  - steps:
      - bash: rm -rf nothing
      - bash: rm -rf nothing
      - bash: rm -rf nothing
      - bash: echo 42 > answer.txt
";
    let run = run_listed(&env, script, &[]);
    run.assert_status("done", 0);
    assert_eq!(asked(&env).len(), 1);
}

#[test]
fn ask_before_lets_what_is_not_listed_run() {
    let env = Environment::new();
    let script = "turns:
  - steps:
      - bash: rm -r -v nothing; echo 42 > answer.txt
";
    let run = run_listed(&env, script, &[]);
    run.assert_status("done", 0);
    assert!(asked(&env).is_empty());
}

#[test]
fn ask_before_is_refused_to_an_agent_that_cannot_be_stopped() {
    let env = Environment::new();
    let script = env.script("agent.yaml", TRIES);
    for (agent, judge) in [
        ("command:echo 42 > answer.txt", "none"),
        (script.as_str(), "command:true"),
    ] {
        let options = ["--judge", judge, "--ask-before", "git push"];
        let refused = env.kapi(&usual(agent, &options));
        assert_eq!(refused.code, 4, "{}", refused.stderr);
        for needle in ["ask before", "command agent", "claude, codex, gemini, pi"] {
            let said = &refused.stderr;
            assert!(said.contains(needle), "{needle:?} is not in {said}");
        }
    }
    assert!(!env.log(FIRST).exists());
}

#[test]
fn ask_before_holds_for_a_judge_too() {
    let env = Environment::new();
    let work = env.script(
        "work.yaml",
        "turns:\n  - steps:\n      - bash: echo 42 > answer.txt\n",
    );
    let verdict = r#"{"verdict": "done", "reason": "it is 42"}"#;
    let judge = env.script(
        "judge.yaml",
        &format!("turns:\n  - steps:\n      - bash: rm -rf nothing\n      - say: '{verdict}'\n"),
    );
    let run = env.run(&work, &["--judge", &judge, "--ask-before", "rm -rf"]);
    run.assert_status("done", 0);
    let events = asked(&env);
    assert_eq!(events.len(), 1, "{events:#?}");
    let actor = events.first().unwrap()["actor"].to_string();
    assert!(actor.contains("judge"), "{actor}");
}
