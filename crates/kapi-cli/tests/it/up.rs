//! `kapi up`: parked goals wake once, active ones find a driver, and killing everything changes
//! nothing.

use std::time::{Duration, Instant};
use std::{fs, thread};

use kapi_goal::rules::state::GoalStatus;
use rustix::process::Signal;
use serde_json::Value;

use crate::environment::{BRANCH, Environment, FIRST, TASK, await_some, processes_with, write};
use crate::parking::{
    TWICE, assert_woken_and_done, await_working, count, for_file, forget_beginning, load, nth,
    orphaned, park, parked, working,
};
use crate::program::{Output, Running, parse};

fn lines(output: &Output) -> Vec<Value> {
    output.stdout.lines().map(parse).collect()
}

fn await_done(env: &Environment, id: &str) {
    env.await_event(id, &|event| event["type"] == "goal_done");
}

/// Ends a supervisor as a person does.
fn end(running: Running) -> Output {
    running.signal(Signal::INT);
    let output = running.finish();
    assert_eq!(output.code, 130, "{output:?}");
    output
}

#[test]
fn a_goal_that_is_parked_on_a_file_survives_the_end_of_everything_and_wakes_once() {
    let env = Environment::new();
    parked(&env, for_file(&env, "ready"), None);
    let parked_log = fs::read(env.log(FIRST)).unwrap();
    // Supervisors come and are killed, all at once and again: nothing is recorded.
    for _ in 0..3 {
        let mut supervisors = [0; 3].map(|_| env.start(&["up"]));
        for supervisor in &mut supervisors {
            supervisor.await_line(&|line| line.contains("parked until the file"));
        }
        for supervisor in supervisors {
            supervisor.kill();
        }
        env.await_no_process();
    }
    assert_eq!(fs::read(env.log(FIRST)).unwrap(), parked_log);

    let mut supervisors = [0; 3].map(|_| env.start(&["up"]));
    for supervisor in &mut supervisors {
        supervisor.await_line(&|line| line.contains("parked until the file"));
    }
    write(&env.root().join("ready"), "");
    await_done(&env, FIRST);
    for mut supervisor in supervisors {
        supervisor.await_line(&|line| line.contains("done: "));
        end(supervisor);
    }
    assert_woken_and_done(&env, FIRST, 1);
    assert_eq!(env.show(BRANCH, "answer.txt"), "42");
    env.await_no_process();
}

#[test]
fn a_kill_between_the_wake_and_the_work_loses_nothing() {
    let env = Environment::new();
    parked(&env, for_file(&env, "ready"), None);
    write(&env.root().join("ready"), "");
    let supervisor = env.start(&["up"]);
    env.await_event(FIRST, &|event| event["type"] == "goal_woken");
    supervisor.kill();
    env.await_no_process();
    assert_eq!(env.kapi(&["up", "--once"]).code, 0);
    assert_woken_and_done(&env, FIRST, 1);
}

#[test]
fn a_goal_whose_driver_died_finds_another() {
    let env = Environment::new();
    orphaned(&env);
    let up = env.kapi(&["up", "--once", "--json"]);
    assert_eq!(up.code, 0, "{up:?}");
    let lines = lines(&up);
    let result = lines.last().unwrap();
    assert_eq!(result["type"], "result");
    assert_eq!(result["driven"], serde_json::json!([FIRST]));
    for kind in ["failed", "parked", "undriven", "woken"] {
        assert_eq!(result[kind], serde_json::json!([]), "{kind}");
    }
    let is_event = |line: &&Value| line["type"] == "agent_ended" && line["goal"] == FIRST;
    assert!(lines.iter().any(|line| is_event(&line)), "{lines:#?}");
    let standings: Vec<&str> = lines
        .iter()
        .filter(|line| line["type"] == "standing")
        .map(|line| line["standing"].as_str().unwrap())
        .collect();
    assert_eq!(standings.first(), Some(&"due"));
    assert_eq!(standings.last(), Some(&"ended"));
    assert_eq!(load(&env, FIRST).status, GoalStatus::Done);
}

#[test]
fn ctrl_c_lets_go_of_a_goal_and_the_next_supervisor_goes_on() {
    let env = Environment::new();
    orphaned(&env);
    // It would do its work now, so it is made to begin anew.
    forget_beginning(&env, FIRST);
    let mut supervisor = env.start(&["up"]);
    supervisor.await_line(&|line| line.contains("working"));
    await_working(&env, FIRST);
    end(supervisor);
    env.await_no_process();
    let goal = load(&env, FIRST);
    assert_eq!((goal.status, goal.stop), (GoalStatus::Active, None));
    let status = env.kapi(&["status"]).stdout;
    assert!(status.contains("active, not driven"), "{status}");
    assert_eq!(env.kapi(&["up", "--once"]).code, 0);
    assert_eq!(load(&env, FIRST).status, GoalStatus::Done);
    assert_eq!(count(&env, FIRST, "goal_done"), 1);
}

#[test]
fn a_goal_that_needs_a_person_is_listed_and_not_touched() {
    let env = Environment::new();
    let stopped = env.run("command:true", &["--turns", "1"]);
    stopped.assert_status("paused", 5);
    let log = fs::read(env.log(FIRST)).unwrap();
    let up = env.kapi(&["up", "--once"]);
    assert_eq!(up.code, 0, "{up:?}");
    assert!(up.stdout.contains(&format!("{FIRST}  paused: ")), "{up:?}");
    assert!(
        up.stdout.contains("next: kapi resume 001 --turns"),
        "{up:?}"
    );
    assert_eq!(fs::read(env.log(FIRST)).unwrap(), log);
}

#[test]
fn goals_and_waits_that_come_while_it_runs_are_noticed() {
    let env = Environment::new();
    parked(&env, for_file(&env, "ready"), None);
    let mut supervisor = env.start(&["up"]);
    supervisor.await_line(&|line| line.contains("parked until the file"));
    // A goal that is new and orphaned.
    let running = env.start_run(TWICE, &[]);
    let second = nth(&env, 2);
    await_working(&env, &second);
    running.kill();
    await_done(&env, &second);
    // The same goal, parked on something else.
    park(&env, FIRST, for_file(&env, "other"), None);
    supervisor.await_line(&|line| line.contains("other exists"));
    write(&env.root().join("ready"), "");
    write(&env.root().join("other"), "");
    await_done(&env, FIRST);
    end(supervisor);
    assert_woken_and_done(&env, FIRST, 1);
}

#[test]
fn no_more_goals_are_driven_at_once_than_there_are_jobs() {
    let env = Environment::new();
    let ids = [1, 2, 3].map(|n| {
        let running = env.start_run(TWICE, &[]);
        let id = nth(&env, n);
        await_working(&env, &id);
        running.kill();
        id
    });
    env.await_no_process();
    let up = env.kapi(&["up", "--once", "--jobs", "1", "--json"]);
    assert_eq!(up.code, 0, "{up:?}");
    let mut driven = Vec::new();
    for line in lines(&up) {
        let goal = line["goal"].as_str().unwrap_or_default().to_owned();
        let is_event = line["seq"].is_number();
        if is_event && driven.last() != Some(&goal) {
            driven.push(goal);
        }
    }
    assert_eq!(driven, ids, "one after the other");
}

#[test]
fn a_damaged_goal_is_told_and_hides_no_other() {
    let env = Environment::new();
    orphaned(&env);
    let running = env.start_run(TWICE, &[]);
    let second = nth(&env, 2);
    await_working(&env, &second);
    running.kill();
    env.await_no_process();
    let log = env.log(FIRST);
    let text = fs::read_to_string(&log).unwrap();
    write(&log, text.replacen(TASK, "make it wrong", 1));
    drop(fs::remove_file(env.goal_dir(FIRST).join("state.json")));
    let damaged = fs::read(&log).unwrap();
    let up = env.kapi(&["up", "--once"]);
    assert_eq!(up.code, 4, "{up:?}");
    assert!(
        up.stdout.contains(&format!("{FIRST}  failed to ")),
        "{up:?}"
    );
    assert_eq!(fs::read(&log).unwrap(), damaged);
    assert_eq!(load(&env, &second).status, GoalStatus::Done);
}

#[test]
fn a_run_that_is_started_under_a_supervisor_drives_its_goal_itself() {
    let env = Environment::new();
    env.run("command:true", &["--turns", "1"]);
    let mut supervisor = env.start(&["up"]);
    supervisor.await_line(&|line| line.contains("paused"));
    let run = env.run("command:sleep 0.5; echo 42 > answer.txt", &[]);
    run.assert_status("done", 0);
    end(supervisor);
    assert_eq!(count(&env, run.id(), "goal_done"), 1);
}

#[test]
fn only_a_person_supervises() {
    let mut env = Environment::new();
    orphaned(&env);
    env.set("KAPI_RUN_ID", "001-x-t001-agent-a1");
    env.kapi(&["up", "--once"])
        .assert_error(3, &["only the user may supervise goals"]);
    let (stdout, code) = {
        let nowhere = env.kapi_in(env.root(), &["up"]);
        (nowhere.stdout, nowhere.code)
    };
    assert_eq!((stdout.as_str(), code), ("", 3));
}

#[test]
fn where_there_are_no_goals_there_is_nothing_to_supervise() {
    let env = Environment::new();
    env.kapi(&["up", "--once"])
        .assert_error(6, &["there are no goals"]);
}

/// How often the threads of a process slept and were woken so far, however long that took.
fn wakes(running: &Running) -> u64 {
    let threads = fs::read_dir(format!("/proc/{}/task", running.id())).unwrap();
    let wakes_of = |status: &str| -> u64 {
        let count = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.unwrap().trim().parse().unwrap()
    };
    threads
        .map(|thread| fs::read_to_string(thread.unwrap().path().join("status")).unwrap())
        .map(|status| wakes_of(&status))
        .sum()
}

#[test]
fn a_parked_goal_hardly_wakes_the_supervisor_and_costs_no_process() {
    /// Long enough to see several of the looks that are taken without a reason.
    const WATCHED: Duration = Duration::from_secs(11);
    let env = Environment::new();
    parked(&env, for_file(&env, "ready"), None);
    let mut supervisor = env.start(&["up"]);
    supervisor.await_line(&|line| line.contains("parked until the file"));
    // What it asked when it began may still be ending.
    await_some("only the supervisor", || {
        (processes_with(&env.marker()).len() == 1).then_some(())
    });
    let (before, began) = (wakes(&supervisor), Instant::now());
    // This is the time that is measured, not a wait for something.
    thread::sleep(WATCHED);
    let used = wakes(&supervisor) - before;
    let passed = began.elapsed();
    let most = passed.as_millis() / 300;
    assert!(u128::from(used) <= most, "woken {used} times in {passed:?}");
    assert_eq!(processes_with(&env.marker()).len(), 1);
    end(supervisor);
}

#[test]
fn a_person_who_resumes_a_parked_goal_does_not_wait() {
    let env = Environment::new();
    parked(&env, for_file(&env, "never"), None);
    let mut supervisor = env.start(&["up"]);
    supervisor.await_line(&|line| line.contains("parked until the file"));
    env.resume("1").assert_status("done", 0);
    end(supervisor);
    assert_eq!(count(&env, FIRST, "goal_woken"), 0);
    let audit = env.json(&["audit"]);
    assert_eq!(audit["ok"], true);
}

#[test]
fn a_parked_goal_is_shown_as_parked() {
    let env = Environment::new();
    let running = working(&env, TWICE, &[]);
    park(&env, FIRST, for_file(&env, "ready"), None);
    running.kill();
    env.await_no_process();
    let shown = env.json(&["show", "1"]);
    assert_eq!(shown["status"], "waiting");
    let reason = shown["reason"].as_str().unwrap();
    assert!(reason.starts_with("parked until the file"), "{reason}");
    assert_eq!(shown["next"][0], "kapi up");
}
