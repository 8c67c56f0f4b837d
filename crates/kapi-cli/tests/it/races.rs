//! Races: several agents on one contract, a real git, one winner, and nothing lost of the others.

use std::path::PathBuf;

use kapi_core::actor::Actor;
use kapi_goal::record::race::{Winner, winner};
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::state::GoalStatus;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::environment::{BRANCH, Environment, FIRST, TASK, await_some, write};
use crate::parking::{TWICE, await_working, for_file, in_project, load, park};
use crate::program::{Output, Running, parse};

const SECOND: &str = "002-make-answer-right";
const THIRD: &str = "003-make-answer-right";
/// Does the work at once.
const FAST: &str = "command:echo 42 > answer.txt";
/// Never ends, and leaves a trace in its workspace.
const NEVER: &str = "command:touch begun; sleep 3000";
/// Does something that no check accepts.
const WRONG: &str = "command:echo 41 > answer.txt; date +%s%N > turn.txt";

/// How a race came out.
struct Race {
    result: Value,
    lines: Vec<Value>,
    output: Output,
}

/// Returns the arguments of a race of these agents.
fn racing<'a>(agents: &[&'a str], options: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["run", TASK, "--yes", "--json"];
    args.extend(agents.iter().flat_map(|agent| ["--race", agent]));
    if !options.contains(&"--unverified") {
        args.extend(["--verify", "sh test.sh"]);
    }
    args.extend(options);
    args
}

fn ended(output: Output) -> Race {
    let lines: Vec<Value> = output.stdout.lines().map(parse).collect();
    let result = lines.last().cloned().unwrap_or_default();
    assert_eq!(result["type"], "race", "{output:?}");
    Race {
        result,
        lines,
        output,
    }
}

fn race(env: &Environment, agents: &[&str], options: &[&str]) -> Race {
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
    fn lane(&self, number: u64) -> &Value {
        let lanes = self.result["lanes"].as_array().unwrap();
        let lane = lanes.iter().find(|lane| lane["lane"] == number);
        lane.unwrap_or_else(|| panic!("lane {number} in {:#}", self.result))
    }

    /// Returns the numbers of the lanes, best first.
    fn order(&self) -> Vec<u64> {
        let lanes = self.result["lanes"].as_array().unwrap();
        lanes
            .iter()
            .map(|lane| lane["lane"].as_u64().unwrap())
            .collect()
    }
}

fn recorded(env: &Environment) -> Option<Winner> {
    in_project(env, |project| winner(project, 1).unwrap())
}

fn statuses(env: &Environment) -> Vec<GoalStatus> {
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
    let slow = gate.agent();
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

/// Starts a race of two agents that are cut off, and waits until both are at work. Begun anew,
/// the first does its work.
fn under_way(env: &Environment) -> Running {
    let running = env.start(&racing(&[TWICE, NEVER], &[]));
    await_working(env, FIRST);
    await_working(env, SECOND);
    running
}

#[test]
fn ctrl_c_pauses_all_lanes_and_resuming_the_first_resumes_the_race() {
    let env = Environment::new();
    let agents = [NEVER, NEVER, NEVER];
    let running = env.start(&racing(&agents, &["--jobs", "2"]));
    await_working(&env, FIRST);
    await_working(&env, SECOND);
    running.signal(Signal::INT);
    let race = ended(running.finish());
    assert_eq!(race.output.code, 130, "{:?}", race.output);
    for number in 1..=3 {
        assert_eq!(race.lane(number)["status"], "paused");
    }
    assert_eq!(race.result["next"][0], "kapi resume 001");
    env.await_no_process();

    let intended = |id: &str| {
        let events = env.events(id);
        let is_agents = |event: &&Value| event["data"]["effect"].to_string().contains("-agent-");
        events.iter().filter(is_agents).count()
    };
    let before = [FIRST, SECOND, THIRD].map(intended);
    let running = env.start(&["resume", "001", "--json"]);
    for id in [FIRST, SECOND, THIRD] {
        await_some("a lane that goes on", || {
            (load(&env, id).status == GoalStatus::Active).then_some(())
        });
    }
    await_some("two lanes at work again", || {
        let now = [FIRST, SECOND].map(intended);
        (now[0] > before[0] && now[1] > before[1]).then_some(())
    });
    // Two lanes at once was said when the race began, and holds when it goes on.
    assert_eq!(intended(THIRD), 0, "a third lane works");
    running.signal(Signal::INT);
    let race = ended(running.finish());
    assert_eq!((race.output.code, race.order().len()), (130, 3));
    env.await_no_process();
}

#[test]
fn a_kill_of_everything_is_repaired_by_resuming_the_race() {
    let env = Environment::new();
    let running = under_way(&env);
    running.kill();
    env.await_no_process();
    assert_eq!(statuses(&env), [GoalStatus::Active, GoalStatus::Active]);
    let status = env.kapi(&["status"]).stdout;
    assert!(
        status.contains("lane 1 of race 001") && status.contains("lane 2 of race 001"),
        "{status}"
    );
    let race = ended(env.kapi(&["resume", "001", "--json"]));
    assert_eq!(race.output.code, 0, "{:?}", race.output);
    assert_eq!(race.result["winner"]["lane"], 1);
    assert_eq!(statuses(&env), [GoalStatus::Done, GoalStatus::Cancelled]);
    assert_eq!(env.show(BRANCH, "answer.txt"), "42");
    env.await_no_process();
    assert_eq!(env.json(&["audit"])["ok"], true);
}

#[test]
fn a_winner_that_was_proved_before_the_kill_is_settled_by_the_next_process() {
    let env = Environment::new();
    let running = under_way(&env);
    running.kill();
    env.await_no_process();
    // Lane 2 is given up, and lane 1 proved, by hand: as far as the log of lane 1 goes.
    let done = prove_by_hand(&env, FIRST);
    assert_eq!(statuses(&env), [GoalStatus::Done, GoalStatus::Active]);
    let race = ended(env.kapi(&["resume", "001", "--json"]));
    assert_eq!(race.output.code, 0, "{:?}", race.output);
    assert_eq!(race.result["winner"]["commit"], done);
    assert_eq!(statuses(&env), [GoalStatus::Done, GoalStatus::Cancelled]);
    let again = ended(env.kapi(&["resume", "001", "--json"]));
    assert_eq!(again.result["winner"], race.result["winner"]);
    let status = env.json(&["status"]);
    assert_eq!(
        status["goals"][1]["race"],
        json!({"of": 1, "lane": 2, "lanes": 2})
    );
    let show = env.kapi(&["show", "002"]).stdout;
    assert!(show.contains("lane 2 of 2, race 001; lane 1 won"), "{show}");
    assert!(show.contains("lost the race to lane 1"), "{show}");
    assert!(!show.contains("by the user"), "{show}");
}

#[test]
fn the_supervisor_ends_a_race_when_a_lane_is_proved() {
    let env = Environment::new();
    let running = under_way(&env);
    running.kill();
    env.await_no_process();
    let up = env.kapi(&["up", "--once"]);
    assert_eq!(up.code, 0, "{up:?}");
    assert_eq!(statuses(&env), [GoalStatus::Done, GoalStatus::Cancelled]);
    assert_eq!(recorded(&env).unwrap().lane, 1);
    env.await_no_process();
}

#[test]
fn parked_lanes_are_left_to_the_supervisor_where_that_is_asked_for() {
    let env = Environment::new();
    let running = env.start(&racing(&[NEVER, NEVER], &["--park"]));
    for id in [FIRST, SECOND] {
        await_working(&env, id);
        park(&env, id, for_file(&env, "ready"), None);
    }
    let race = ended(running.finish());
    assert_eq!(race.output.code, 5, "{:?}", race.output);
    assert_eq!(statuses(&env), [GoalStatus::Waiting, GoalStatus::Waiting]);
    // Asked for again, there is nothing to do but to say so.
    let race = ended(env.kapi(&["resume", "001", "--park", "--json"]));
    assert_eq!((race.output.code, race.lines.len()), (5, 1));
    assert_eq!(statuses(&env), [GoalStatus::Waiting, GoalStatus::Waiting]);
}

/// Drives one lane to its proof with an engine that does not know of races, as a process does that
/// is killed right after it recorded the proof.
fn prove_by_hand(env: &Environment, id: &str) -> String {
    use kapi_core::agent_end::{AgentEnd, AgentRun};
    use kapi_goal::rules::effect::{GoalAction, next};
    use kapi_goal::rules::outcome::{GoalCandidate, GoalOutcome};
    let main = env.commit_of("main");
    let report = |outcome| {
        in_project(env, |project| {
            let id = load(env, id).id;
            let effect = next(&project.load(&id).unwrap()).unwrap().id;
            let intend = GoalCommand::Intend {
                effect: effect.clone(),
            };
            project.submit(&id, &Actor::Engine, &intend).unwrap();
            let report = GoalCommand::Report {
                effect,
                outcome,
                elapsed_ms: 1,
            };
            project.submit(&id, &Actor::Engine, &report).unwrap();
        });
    };
    for _ in 0..8 {
        let Some(effect) = next(&load(env, id)) else {
            break;
        };
        report(match effect.action {
            GoalAction::RunAgent(_) => GoalOutcome::Agent(AgentRun {
                end: AgentEnd::Finished,
                claim: None,
                message: String::new(),
                session: None,
                usage: kapi_core::usage::Usage::default(),
                tools: 1,
                isolation: None,
                score: None,
            }),
            GoalAction::Commit(_) => GoalOutcome::Committed(GoalCandidate {
                commit: main.clone(),
                tree: "0".repeat(40),
                files_changed: 1,
                left_out: Vec::new(),
            }),
            GoalAction::Baseline(task) => GoalOutcome::Verified(exited(&main, task, 1)),
            GoalAction::Verify(task) => GoalOutcome::Verified(exited(&main, task, 0)),
            GoalAction::Publish { commit, .. } => GoalOutcome::Published { commit },
            other => panic!("not expected: {other:?}"),
        });
    }
    assert_eq!(load(env, id).status, GoalStatus::Done);
    main
}

/// Returns a report in which every command exits with a code.
fn exited(
    commit: &str,
    task: kapi_goal::rules::effect::VerifyTask,
    exit_code: i32,
) -> kapi_check::rules::proof::verify_report::VerifyReport {
    use kapi_check::rules::proof::verify_report::VerifyReport;
    use kapi_check::rules::proof::verify_run::{Checks, VerifyRun};

    let run = |command: String| VerifyRun {
        command,
        checks: Checks::Visible,
        exit_code: Some(exit_code),
        timed_out: false,
        duration_ms: 1,
        output_tail: String::new(),
        output_bytes: 0,
        tally: None,
    };
    VerifyReport {
        commit: commit.to_owned(),
        tree: task.tree,
        tampered: Vec::new(),
        runs: task.commands.into_iter().map(run).collect(),
        inspection: Box::default(),
    }
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
