//! Races that are interrupted, killed, parked or supervised, and gone on with.

use kapi_core::actor::Actor;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::state::GoalStatus;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::environment::{BRANCH, Environment, FIRST, await_some};
use crate::parking::{TWICE, await_working, for_file, in_project, load, park};
use crate::program::Running;
use crate::races::{NEVER, SECOND, THIRD, ended, racing, recorded, statuses};

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
