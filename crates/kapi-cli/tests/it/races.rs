//! Races: several agents on one contract, a real git, one winner, and nothing lost of the others.

use std::path::PathBuf;

use kapi_goal::record::race::{Winner, winner};
use kapi_goal::rules::state::GoalStatus;
use serde_json::{Value, json};

use crate::environment::{BRANCH, Environment, FIRST, TASK, write};
use crate::parking::{await_working, in_project, load};
use crate::program::{Output, parse};

pub(crate) const SECOND: &str = "002-make-answer-right";
pub(crate) const THIRD: &str = "003-make-answer-right";
/// Does the work at once.
const FAST: &str = "command:echo 42 > answer.txt";
/// Never ends, and leaves a trace in its workspace.
pub(crate) const NEVER: &str = "command:touch begun; sleep 3000";
/// Does something that no check accepts.
const WRONG: &str = "command:echo 41 > answer.txt; date +%s%N > turn.txt";

/// How a race came out.
pub(crate) struct Race {
    pub(crate) result: Value,
    pub(crate) lines: Vec<Value>,
    pub(crate) output: Output,
}

/// Returns the arguments of a race of these agents.
pub(crate) fn racing<'a>(agents: &[&'a str], options: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["run", TASK, "--yes", "--json"];
    args.extend(agents.iter().flat_map(|agent| ["--race", agent]));
    if !options.contains(&"--unverified") {
        args.extend(["--verify", "sh test.sh"]);
    }
    args.extend(options);
    args
}

pub(crate) fn ended(output: Output) -> Race {
    let lines: Vec<Value> = output.stdout.lines().map(parse).collect();
    let result = lines.last().cloned().unwrap_or_default();
    assert_eq!(result["type"], "race", "{output:?}");
    Race {
        result,
        lines,
        output,
    }
}

pub(crate) fn race(env: &Environment, agents: &[&str], options: &[&str]) -> Race {
    ended(env.kapi(&racing(agents, options)))
}

/// What an agent waits at until the test lets it do the work.
struct Gate(PathBuf);

impl Gate {
    fn new(env: &Environment) -> Self {
        let dir = env.root().join("gate");
        write(&dir.join("shut"), "");
        env.configure(&format!("[sandbox]\nread_only = [{dir:?}]\n"));
        Self(dir.join("open"))
    }

    fn agent(&self) -> String {
        let open = self.0.display();
        format!("command:until [ -e {open} ]; do sleep 0.01; done; echo 42 > answer.txt")
    }

    fn open(&self) {
        write(&self.0, "");
    }
}

impl Race {
    /// Returns a lane by its number.
    pub(crate) fn lane(&self, number: u64) -> &Value {
        let lanes = self.result["lanes"].as_array().unwrap();
        let lane = lanes.iter().find(|lane| lane["lane"] == number);
        lane.unwrap_or_else(|| panic!("lane {number} in {:#}", self.result))
    }

    /// Returns the numbers of the lanes, best first.
    pub(crate) fn order(&self) -> Vec<u64> {
        let lanes = self.result["lanes"].as_array().unwrap();
        lanes
            .iter()
            .map(|lane| lane["lane"].as_u64().unwrap())
            .collect()
    }
}

pub(crate) fn recorded(env: &Environment) -> Option<Winner> {
    in_project(env, |project| winner(project, 1).unwrap())
}

pub(crate) fn statuses(env: &Environment) -> Vec<GoalStatus> {
    [FIRST, SECOND].map(|id| load(env, id).status).to_vec()
}

#[test]
fn the_first_that_is_proved_wins_and_the_others_stop_with_the_reason() {
    let env = Environment::new();
    let main = env.commit_of("main");
    let gate = Gate::new(&env);
    let running = env.start(&racing(&[NEVER, &gate.agent(), NEVER], &[]));
    for id in [FIRST, THIRD] {
        await_working(&env, id);
    }
    gate.open();
    let race = ended(running.finish());
    assert_eq!(race.output.code, 0, "{:?}", race.output);
    assert_eq!(race.result["race"], 1);
    assert_eq!(race.result["winner"]["lane"], 2);
    assert_eq!(race.result["winner"]["goal"], SECOND);
    assert_eq!(race.order()[0], 2);
    assert_eq!(race.lane(2)["proof"], "proved");
    assert_eq!(
        race.lane(2)["diff"],
        json!({"files": 1, "added": 1, "removed": 1})
    );
    for number in [1, 3] {
        let lane = race.lane(number);
        assert_eq!(lane["status"], "cancelled");
        assert!(
            lane["reason"]
                .as_str()
                .unwrap()
                .contains("lost the race to lane 2"),
            "{lane}"
        );
        assert_eq!(lane["commit"], Value::Null);
        // Its branch is there, and nothing landed on it.
        assert_eq!(env.commit_of(lane["branch"].as_str().unwrap()), main);
    }
    let branch = race.lane(2)["branch"].as_str().unwrap();
    assert_eq!(branch, format!("{BRANCH}-lane-2"));
    assert_eq!(env.show(branch, "answer.txt"), "42");
    assert_eq!(race.result["winner"]["commit"], env.commit_of(branch));
    assert_eq!(env.commit_of("main"), main);
    assert_eq!(recorded(&env).unwrap().lane, 2);
    let of: Vec<&Value> = race
        .lines
        .iter()
        .filter(|line| line["type"] == "goal_created")
        .collect();
    assert_eq!(of.len(), 3);
    env.await_no_process();
    assert_eq!(env.json(&["audit"])["ok"], true);
}

#[test]
fn the_work_of_a_loser_is_kept_under_its_ref_and_listed() {
    let env = Environment::new();
    let file = |name: &str| env.root().join(name).display().to_string();
    // It works for one turn in vain, and then hangs.
    let (once, go) = (file("once"), file("go"));
    let loser = format!(
        "command:[ -e {once} ] && {{ touch begun; sleep 3000; }}; touch {once}; echo 41 > answer.txt"
    );
    let winner = format!("command:until [ -e {go} ]; do sleep 0.01; done; echo 42 > answer.txt");
    let running = env.start(&racing(&[&loser, &winner], &["--sandbox", "none"]));
    await_working(&env, FIRST);
    write(&env.root().join("go"), "");
    let race = ended(running.finish());
    assert_eq!(race.result["winner"]["lane"], 2, "{:#}", race.result);
    let lane = race.lane(1);
    assert_eq!(lane["proof"], "unproved");
    let candidate = lane["candidate"].as_str().unwrap();
    assert_eq!(env.show(candidate, "answer.txt"), "41");
    let refs = env.git(&[
        "for-each-ref",
        "--format=%(objectname) %(refname)",
        "refs/kapi",
    ]);
    assert!(
        refs.lines()
            .any(|line| line.starts_with(candidate) && line.contains(FIRST)),
        "{refs}"
    );
    assert_ne!(env.commit_of(lane["branch"].as_str().unwrap()), candidate);
}

#[test]
fn a_comparison_lets_all_end_and_ranks_them() {
    let env = Environment::new();
    let large = "command:echo 42 > answer.txt; seq 100 > more.txt";
    let gate = Gate::new(&env);
    // Times are compared in seconds.
    let slow = gate.agent().replacen("done; ", "done; sleep 1; ", 1);
    let agents = [WRONG, &slow, large, FAST];
    let running = env.start(&racing(&agents, &["--compare", "--turns", "2"]));
    for id in [THIRD, "004-make-answer-right"] {
        env.await_event(id, &|event| event["type"] == "goal_done");
    }
    gate.open();
    let race = ended(running.finish());
    assert_eq!(race.output.code, 0, "{:?}", race.output);
    assert_eq!(race.result["ends"], "compare");
    // By proof, then time: the slow one worked until the fast ones were done, and longer.
    let order = race.order();
    assert_eq!((order[2], order[3]), (2, 1), "{:#}", race.result);
    for number in [2, 3, 4] {
        assert_eq!(race.lane(number)["status"], "done");
        let branch = race.lane(number)["branch"].as_str().unwrap();
        assert_eq!(env.show(branch, "answer.txt"), "42");
    }
    assert_eq!(race.lane(1)["status"], "paused");
    assert_eq!(race.lane(2)["ahead_by"], "proof");
    assert_eq!(race.lane(order[1])["ahead_by"], "time");
    assert_eq!(race.lane(3)["diff"]["added"], 101);
    assert_eq!(race.result["winner"]["lane"], order[0]);
    assert_eq!(recorded(&env), None);
    assert_eq!(race.result["next"][2], "kapi resume 001");
}

#[test]
fn attempts_are_lanes_of_the_same_agent_and_jobs_hold_them_back() {
    let env = Environment::new();
    let args = [
        "--agent",
        WRONG,
        "--attempts",
        "3",
        "--jobs",
        "1",
        "--turns",
        "1",
    ];
    let race = race(&env, &[], &args);
    assert_eq!(race.output.code, 5, "{:?}", race.output);
    assert_eq!(race.result["winner"], Value::Null);
    let mut agents = Vec::new();
    let mut spans = Vec::new();
    for (number, id) in [(1, FIRST), (2, SECOND), (3, THIRD)] {
        let lane = race.lane(number);
        assert_eq!(
            (&lane["status"], &lane["goal"]),
            (&json!("paused"), &json!(id))
        );
        assert!(!lane["reason"].as_str().unwrap().is_empty());
        agents.push(lane["agent"].clone());
        let events = env.events(id);
        let at = |kind: &str| {
            let of = |event: &&Value| event["type"] == kind;
            events.iter().find(of).unwrap()["at"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        spans.push((at("effect_intended"), at("goal_stopped")));
    }
    assert_eq!(agents, [WRONG; 3]);
    for pair in spans.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "one after the other: {spans:?}");
    }
}

#[test]
fn a_lane_that_cannot_start_does_not_sink_the_others() {
    let mut env = Environment::new();
    let agents = ["claude", FAST];
    // No agent program is found on this path, and git and the shell are.
    let path = std::env::var("PATH").unwrap();
    env.set("PATH", &without_agents(&path));
    let race = race(&env, &agents, &["--judge", "none"]);
    assert_eq!(race.output.code, 0, "{:?}", race.output);
    assert!(
        race.output.stderr.contains("claude is left out"),
        "{}",
        race.output.stderr
    );
    assert_eq!(race.result["lanes"].as_array().unwrap().len(), 1);
    assert_eq!(race.result["winner"]["goal"], FIRST);
    // All of them: an error that says why for each, and no goal.
    let env = {
        let mut env = Environment::new();
        env.set("PATH", &without_agents(&path));
        env
    };
    let args = racing(&["claude,codex"], &["--judge", "none"]);
    env.kapi(&args)
        .assert_error(4, &["claude is left out", "codex is left out"]);
    assert!(!env.repository().join(".ilchul").exists());
}

/// Returns a search path with the directories that hold a real agent left out.
fn without_agents(path: &str) -> String {
    let holds = |dir: &&str| {
        let dir = std::path::Path::new(dir);
        !["claude", "codex", "gemini", "pi"]
            .iter()
            .any(|name| dir.join(name).exists())
    };
    path.split(':').filter(holds).collect::<Vec<_>>().join(":")
}

#[test]
fn flags_that_make_no_race_are_refused_before_anything_is_made() {
    let env = Environment::new();
    let base = ["run", TASK, "--yes", "--verify", "sh test.sh"];
    for (options, words) in [
        (
            &["--race", FAST][..],
            "2 to 16 lanes, but this one would have 1",
        ),
        (&["--agent", FAST, "--attempts", "1"], "2 to 16 lanes"),
        (&["--race", "claude,,codex"], "empty agent name"),
        (&["--agent", FAST, "--compare"], "belong to a race"),
        (&["--agent", FAST, "--jobs", "2"], "belong to a race"),
        (
            &["--race", FAST, "--attempts", "16", "--race", FAST],
            "would have 32",
        ),
        (&["--race", "nobody,claude"], "nobody"),
    ] {
        let output = env.kapi(&[&base, options].concat());
        output.assert_error(2, &[words]);
    }
    let output = env.kapi(&racing(&[FAST, FAST], &["--unverified"]));
    assert_eq!(output.code, 2, "{output:?}");
    assert!(
        output.stderr.contains("the race needs a verify command"),
        "{output:?}"
    );
    assert!(!env.repository().join(".ilchul").exists());
}

#[test]
fn the_contract_shows_all_lanes_and_what_they_may_use_together() {
    let env = Environment::new();
    let args = [
        "run",
        TASK,
        "--race",
        FAST,
        "--race",
        WRONG,
        "--attempts",
        "2",
    ];
    let limits = ["--verify", "sh test.sh", "--turns", "7", "--wall", "10m"];
    // Nobody is at a terminal, so nothing is approved and nothing is made.
    let output = env.kapi(&[&args[..], &limits].concat());
    assert_eq!(output.code, 2, "{output:?}");
    for words in [
        "Race of 4 lanes: the first proved lane wins",
        "lane 4",
        "feat/goal-make-answer-right-lane-4",
        "at most 28 turns, tokens without a limit, 40m",
    ] {
        assert!(
            output.stderr.contains(words),
            "{words:?} in {}",
            output.stderr
        );
    }
    assert!(!env.repository().join(".ilchul").exists());
}

#[test]
fn a_lane_that_fails_the_hidden_checks_loses_to_one_that_passes_them() {
    let env = Environment::new();
    let test = "[ \"$(cat answer.txt)\" = 42 ] && [ -e why.txt ]\n";
    write(&env.root().join("hidden/test.sh"), test);
    let hidden = env.root().join("hidden").display().to_string();
    const EXPLAINED: &str = "command:echo 42 > answer.txt; echo because > why.txt";
    // The first is proved as far as it can see, in every turn; the second honestly.
    let visible = "command:echo 42 > answer.txt; echo $KAPI_TURN > turn.txt";
    for options in [&["--jobs", "1"][..], &["--compare"]] {
        let options = [&["--turns", "1", "--hidden", &hidden], options].concat();
        let env_of = Environment::new();
        let race = race(&env_of, &[visible, EXPLAINED], &options);
        assert_eq!(race.output.code, 0, "{:?}", race.output);
        assert_eq!(race.result["winner"]["lane"], 2, "{options:?}");
        assert_eq!(race.order(), [2, 1]);
        let lanes = [1, 2].map(|number| race.lane(number)["hidden"].clone());
        assert_eq!(lanes, [json!("failed"), json!("passed")]);
        assert_eq!(race.lane(1)["commit"], Value::Null);
        assert_ne!(race.lane(1)["proof"], "proved");
        let branch = race.lane(2)["branch"].as_str().unwrap();
        assert_eq!(env_of.show(branch, "why.txt"), "because");
        // What is hidden landed nowhere.
        assert_eq!(
            env_of.show(branch, "test.sh"),
            crate::environment::TEST_SH.trim_end()
        );
    }
}
