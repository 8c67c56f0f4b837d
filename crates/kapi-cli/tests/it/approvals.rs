//! What this person's home holds no approval of is never gone on with: whoever brought it, whatever
//! its files say of themselves, and by whichever verb.

use std::path::{Path, PathBuf};

use kapi_core::actor::Actor;
use kapi_core::id::GoalId;
use kapi_goal::rules::budget::Raise;
use kapi_goal::rules::command::{GoalCommand, PersonCommand};
use kapi_goal::rules::wait::WaitFor;
use rustix::process::Signal;
use serde_json::Value;

use crate::environment::{Environment, FIRST, await_some, processes_with};
use crate::parking::{TWICE, in_project, park, working};
use crate::program::Output;

const HONEST: &str = "command:echo 42 > answer.txt";
/// Works until it is cut off, and leaves a trace of every beginning.
const ENDLESS: &str = "command:touch begun; sleep 2998";

/// Unpacks a copy of the repository, with everything in it, elsewhere.
fn copied(env: &Environment) -> PathBuf {
    let copy = env.root().join("copy");
    let mut command = env.command("cp", env.root());
    command.args(["-a", "app", "copy"]);
    assert_eq!(crate::program::finish(command).code, 0);
    copy
}

fn log_in(project: &Path) -> String {
    std::fs::read_to_string(
        project
            .join(".ilchul/goals")
            .join(FIRST)
            .join("events.jsonl"),
    )
    .unwrap()
}

/// Leaves a goal that is active and that nobody drives.
fn abandoned(env: &Environment, agent: &str) {
    let running = working(env, agent, &[]);
    running.signal(Signal::KILL);
    drop(running);
    env.await_no_process();
    assert_eq!(env.json(&["show", "1"])["status"], "active");
}

const VERBS: [&[&str]; 9] = [
    &["resume", "1"],
    &["resume", "1", "--no-run"],
    &["goal", "ask", "1", "what is it?"],
    &["say", "1", "go on"],
    &["goal", "park", "1", "--for", "1s"],
    &["budget", "1", "--set-turns", "9"],
    &["budget", "1", "--turns", "+1"],
    &["resume", "1", "--yes"],
    &["goal", "allow", "1", "git push"],
];

fn assert_refused(output: &Output) {
    output.assert_error_among_talk(3, &["not_approved_here", "hint: ", "kapi goal approve"]);
}

/// Checks that no verb goes on with the goal of a project, and that not one byte of it changes.
fn assert_nothing_goes_on(env: &Environment, project: &Path) {
    let before = log_in(project);
    for verb in VERBS {
        let output = env.kapi_in(project, verb);
        // `allow` of what was never listed is refused by the rules before that.
        if verb.contains(&"allow") {
            assert_eq!(output.code, 3, "{output:?}");
        } else {
            assert_refused(&output);
        }
        assert_eq!(log_in(project), before, "{verb:?}");
    }
    let up = env.kapi_in(project, &["up", "--once", "--json"]);
    assert_eq!(up.code, 0, "{up:?}");
    let result: Value = crate::program::parse(up.stdout.lines().last().unwrap());
    for key in ["woken", "driven", "parked", "undriven"] {
        assert_eq!(result[key], serde_json::json!([]), "{up:?}");
    }
    assert_eq!(log_in(project), before);
}

#[test]
fn a_copied_directory_with_an_active_goal_is_never_driven() {
    let env = Environment::new();
    abandoned(&env, ENDLESS);
    let copy = copied(&env);
    assert_nothing_goes_on(&env, &copy);
    env.await_no_process();
    // The one that was copied is the person's own, and goes on.
    let running = env.start(&["resume", "1", "--json"]);
    await_some("its agent at work again", || {
        let all = processes_with(&env.marker());
        all.iter()
            .any(|one| one.contains("sleep 2998"))
            .then_some(())
    });
    running.signal(Signal::INT);
    assert_eq!(running.finish().code, 130);
}

#[test]
fn another_person_s_home_holds_no_approval_until_they_give_it_by_hash() {
    let mut env = Environment::new();
    env.run("command:true", &["--turns", "1"])
        .assert_status("paused", 5);
    env.kapi(&["budget", "1", "--turns", "+2"]);
    let other = env.root().join("other");
    std::fs::create_dir(&other).unwrap();
    env.set("HOME", &other.display().to_string());
    assert_nothing_goes_on(&env, &env.repository());
    // Nobody's silence approves it, and it is shown whole.
    let asked = env.kapi(&["goal", "approve", "1"]);
    asked.assert_error_among_talk(2, &["there is no terminal", "--hash", "raised to 3 turns"]);
    assert_refused(&env.kapi(&["resume", "1"]));
    let wrong = env.kapi(&["goal", "approve", "1", "--hash", &"0".repeat(64)]);
    assert_eq!(wrong.code, 3, "{wrong:?}");
    assert_refused(&env.kapi(&["resume", "1"]));
    let hash = env.json(&["show", "1", "--all"])["contract_hash"].clone();
    let before = log_in(&env.repository());
    let given = env.kapi(&[
        "goal",
        "approve",
        "1",
        "--hash",
        &hash.as_str().unwrap()[..12],
    ]);
    assert_eq!(given.code, 0, "{given:?}");
    assert!(
        given.stderr.contains("approve it only if it is yours"),
        "{given:?}"
    );
    assert_eq!(log_in(&env.repository()), before, "the log stays as it is");
    let resumed = env.json(&["resume", "1", "--no-run"]);
    assert_eq!(resumed["status"], "active");
    // Once is enough, and what is approved already is not approved again.
    let again = env.kapi(&["goal", "approve", "1", "--yes"]);
    again.assert_error(3, &["is active"]);
}

/// Another hand than `kapi`'s: it keeps the chain of hashes, and knows nothing of the home.
fn by_another_hand(env: &Environment, command: &GoalCommand) {
    let id = GoalId::parse(FIRST).unwrap();
    let person = Actor::Human {
        user: "ada".to_owned(),
    };
    in_project(env, |project| {
        project.submit(&id, &person, command).unwrap()
    });
    assert_eq!(env.json(&["audit"])["ok"], true);
}

#[test]
fn a_log_that_gives_itself_more_turns_is_not_gone_on_with() {
    let env = Environment::new();
    env.run("command:true", &["--turns", "1"])
        .assert_status("paused", 5);
    let raise = Raise {
        turns: 5,
        ..Raise::default()
    };
    by_another_hand(&env, &GoalCommand::RaiseBudget(raise));
    let refused = env.kapi(&["resume", "1"]);
    assert_refused(&refused);
    assert!(
        refused.stderr.contains("turn budget is larger"),
        "{refused:?}"
    );
    // Shown and approved by its person, it is theirs.
    let shown = env.kapi(&["goal", "approve", "1", "--yes"]);
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(shown.stderr.contains("raised to 6 turns"), "{shown:?}");
    env.resume("1").assert_status("stalled", 5);
}

#[test]
fn a_log_that_gives_itself_consent_is_not_gone_on_with() {
    let env = Environment::new();
    let script = "turns:\n  - steps:\n      - bash: rm -rf nothing\n";
    let agent = env.script("agent.yaml", script);
    env.run(&agent, &["--ask-before", "rm -rf"])
        .assert_status("blocked", 5);
    let what = "rm -rf".to_owned();
    by_another_hand(&env, &GoalCommand::Person(PersonCommand::Allow { what }));
    let refused = env.kapi(&["resume", "1"]);
    assert_refused(&refused);
    assert!(
        refused.stderr.contains("\"rm -rf\" as allowed"),
        "{refused:?}"
    );
    let shown = env.kapi(&["goal", "approve", "1"]);
    assert!(shown.stderr.contains("  allowed   rm -rf"), "{shown:?}");
}

#[test]
fn what_a_parked_goal_of_a_stranger_waits_for_is_not_even_looked_at() {
    let env = Environment::new();
    abandoned(&env, TWICE);
    let command = WaitFor::Command {
        command: "true".to_owned(),
        every_ms: 10_000,
    };
    park(&env, FIRST, command, None);
    let copy = copied(&env);
    let runs = |project: &Path| {
        std::fs::read_dir(project.join(".ilchul/runs"))
            .unwrap()
            .count()
    };
    let before = (log_in(&copy), runs(&copy));
    let up = env.kapi_in(&copy, &["up", "--once"]);
    assert_eq!(up.code, 0, "{up:?}");
    assert_eq!((log_in(&copy), runs(&copy)), before);
    assert_refused(&env.kapi_in(&copy, &["resume", "1"]));
    // At home the same wait is over at once.
    let up = env.kapi(&["up", "--once", "--json"]);
    let result: Value = crate::program::parse(up.stdout.lines().last().unwrap());
    assert_eq!(result["woken"], serde_json::json!([FIRST]), "{up:?}");
}

#[test]
fn an_approval_stands_in_the_home_and_nowhere_in_the_project() {
    let env = Environment::new();
    env.run(HONEST, &["--turns", "2"]).assert_status("done", 0);
    let kept = env.home().join(".ilchul/approvals");
    let key = std::fs::read_dir(&kept)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let file = key.join(format!("{FIRST}.json"));
    let record: Value = crate::program::parse(&std::fs::read_to_string(&file).unwrap());
    let detail = env.json(&["show", "1", "--all"]);
    assert_eq!(record["contract_hash"], detail["contract_hash"]);
    assert_eq!(record["given"], "contract");
    assert_eq!(record["budget"]["turns"], 2);
    // Without it a done goal is not taken up again either.
    std::fs::remove_file(&file).unwrap();
    assert_refused(&env.kapi(&["goal", "reopen", "1", "not good"]));
    assert_eq!(env.json(&["show", "1"])["status"], "done");
}

#[test]
fn a_race_of_a_stranger_is_not_gone_on_with() {
    let env = Environment::new();
    let output = env.start(&[
        "run",
        "make the answer right",
        "--yes",
        "--json",
        "--verify",
        "sh test.sh",
        "--race",
        ENDLESS,
        "--attempts",
        "2",
    ]);
    await_some("both lanes at work", || {
        let is_there = |id: &str| {
            env.events(id)
                .iter()
                .any(|event| event["data"]["effect"] == "t001-agent-a1")
        };
        (is_there(FIRST) && is_there("002-make-answer-right")).then_some(())
    });
    output.kill();
    env.await_no_process();
    let copy = copied(&env);
    let before = log_in(&copy);
    for verb in [&["resume", "1"][..], &["resume", "2"]] {
        let output = env.kapi_in(&copy, verb);
        assert_eq!(output.code, 3, "{output:?}");
        assert!(output.stderr.contains("not_approved_here"), "{output:?}");
    }
    assert_eq!(log_in(&copy), before);
    env.await_no_process();
}
