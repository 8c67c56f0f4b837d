//! Waits of every kind, with a person who looks on: the goal is parked, and goes on by itself.
//!
//! Nothing is mocked: files appear, processes end, commands run in sandboxes.

use std::io;
use std::process::{Child, Stdio};

use kapi_goal::rules::state::GoalStatus;
use kapi_goal::rules::wait::{FileState, WaitFor};
use kapi_sys::clock::{Clock as _, SystemClock};
use kapi_sys::process::process_name;
use rustix::process::Signal;

use crate::environment::{BRANCH, Environment, FIRST, write};
use crate::parking::{
    TWICE, allow, ask_to_wait, assert_woken_and_done, count, for_file, load, park, parked,
    woken_because, working, worktree,
};
use crate::program::Run;

#[test]
fn a_run_stays_with_its_parked_goal_and_goes_on_when_the_file_comes() {
    let env = Environment::new();
    let mut running = working(&env, TWICE, &[]);
    park(&env, FIRST, for_file(&env, "ready"), None);
    let reported = running.await_line(&|line| line.contains("after Ctrl-C it stays parked"));
    assert!(reported.contains("kapi up"), "{reported}");
    assert_eq!(load(&env, FIRST).status, GoalStatus::Waiting);
    write(&env.root().join("ready"), "");
    let run = Run::from(running.finish());
    run.assert_status("done", 0);
    assert_eq!(env.show(BRANCH, "answer.txt"), "42");
    assert_woken_and_done(&env, FIRST, 1);
    env.await_no_process();
}

#[test]
fn ctrl_c_leaves_a_parked_goal_parked() {
    let env = Environment::new();
    let mut running = working(&env, TWICE, &[]);
    park(&env, FIRST, for_file(&env, "ready"), None);
    running.await_line(&|line| line.contains("after Ctrl-C it stays parked"));
    env.await_event(FIRST, &|event| event["type"] == "effect_cancelled");
    let n_events = env.events(FIRST).len();
    running.signal(Signal::INT);
    let run = Run::from(running.finish());
    run.assert_status("waiting", 130);
    assert_eq!(run.result["next"][0], "kapi up");
    assert_eq!(env.events(FIRST).len(), n_events, "nothing was recorded");
    env.await_no_process();
}

#[test]
fn a_run_follows_a_goal_that_another_process_goes_on_with() {
    let env = Environment::new();
    let mut running = working(&env, TWICE, &[]);
    park(&env, FIRST, for_file(&env, "never"), None);
    running.await_line(&|line| line.contains("after Ctrl-C it stays parked"));
    let resumed = env.resume("1");
    resumed.assert_status("done", 0);
    let followed = Run::from(running.finish());
    followed.assert_status("done", 0);
    assert_eq!(followed.result["commit"], resumed.result["commit"]);
    assert_eq!(count(&env, FIRST, "goal_woken"), 0, "a person did not wait");
}

#[test]
fn an_agents_wait_parks_the_goal_at_the_end_of_its_turn() {
    let env = Environment::new();
    // The first turn ends when the test says so; the second does the work.
    let agent = "command:[ $KAPI_TURN = 1 ] || { echo 42 > answer.txt; exit; }
        touch begun; until [ -e end ]; do sleep 0.01; done; rm begun end";
    let mut running = working(&env, agent, &[]);
    let until = WaitFor::File {
        path: "build/ready".to_owned(),
        until: FileState::Exists,
    };
    ask_to_wait(&env, FIRST, until);
    let worktree = worktree(&env, FIRST);
    write(&worktree.join("end"), "");
    running.await_line(&|line| line.contains("after Ctrl-C it stays parked"));
    assert_eq!(
        load(&env, FIRST).spent.turns,
        1,
        "a wait is no further turn"
    );
    // The same name elsewhere is another file.
    write(&env.repository().join("build/ready"), "");
    assert_eq!(load(&env, FIRST).status, GoalStatus::Waiting);
    write(&worktree.join("build/ready"), "");
    Run::from(running.finish()).assert_status("done", 0);
    let ended = env.await_event(FIRST, &|event| event["type"] == "turn_ended");
    assert_eq!(ended["data"]["verdict"], "waiting");
    assert_eq!(woken_because(&env, FIRST), "the file build/ready exists");
    assert_woken_and_done(&env, FIRST, 1);
}

/// A process of the machine that ends when its input does.
struct Reader(Child);

impl Reader {
    fn start(env: &Environment) -> io::Result<Self> {
        let mut command = env.command("cat", env.root());
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        command.spawn().map(Self)
    }

    fn end(mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_process_is_waited_for_by_its_number_and_its_start() {
    let env = Environment::new();
    let reader = Reader::start(&env).unwrap();
    let mut running = working(&env, TWICE, &[]);
    let name = process_name(reader.0.id()).unwrap();
    let until = WaitFor::Process {
        pid: name.pid,
        started_ticks: name.started_ticks,
    };
    park(&env, FIRST, until, None);
    running.await_line(&|line| line.contains("after Ctrl-C it stays parked"));
    assert_eq!(load(&env, FIRST).status, GoalStatus::Waiting);
    reader.end();
    Run::from(running.finish()).assert_status("done", 0);
    let why = format!("process {} has exited", name.pid);
    assert_eq!(woken_because(&env, FIRST), why);
}

#[test]
fn another_process_of_the_same_number_is_not_waited_for() {
    let env = Environment::new();
    let name = process_name(std::process::id()).unwrap();
    let until = WaitFor::Process {
        pid: name.pid,
        started_ticks: name.started_ticks - 1,
    };
    parked(&env, until, None);
    assert_eq!(env.kapi(&["up", "--once"]).code, 0);
    assert_woken_and_done(&env, FIRST, 1);
}

#[test]
fn a_command_is_tried_in_the_sandbox_on_the_work_so_far() {
    let env = Environment::new();
    env.write("host.txt", "not committed");
    let until = WaitFor::Command {
        command: format!(
            "[ $PWD = {} ] && [ -n \"$KAPI_RUN_ID\" ] && [ -e answer.txt ] \
             && [ ! -e host.txt ] && [ $(git rev-parse HEAD) = {} ]",
            env.repository().display(),
            env.commit_of("main")
        ),
        every_ms: 10_000,
    };
    parked(&env, until, None);
    let up = env.kapi(&["up", "--once"]);
    assert_eq!(up.code, 0, "{up:?}");
    assert_woken_and_done(&env, FIRST, 1);
    env.await_no_process();
}

#[test]
fn a_command_that_fails_leaves_the_goal_parked_and_is_not_tried_again_too_soon() {
    let env = Environment::new();
    env.write("host.txt", "not committed");
    let hidden_from_it = env.repository().join("host.txt");
    let until = WaitFor::Command {
        command: format!(
            "echo tried at $(date +%s%N); [ -e {} ]",
            hidden_from_it.display()
        ),
        every_ms: 3_600_000,
    };
    parked(&env, until, None);
    let log = env
        .repository()
        .join(format!(".ilchul/runs/{FIRST}-wait-1/tried.log"));
    let mut tries = Vec::new();
    for _ in 0..3 {
        assert_eq!(env.kapi(&["up", "--once"]).code, 0);
        tries.push(std::fs::read_to_string(&log).unwrap());
    }
    assert!(tries[0].starts_with("tried at "), "{tries:?}");
    assert_eq!((&tries[1], &tries[2]), (&tries[0], &tries[0]));
    assert_eq!(load(&env, FIRST).status, GoalStatus::Waiting);
    assert_eq!(count(&env, FIRST, "goal_woken"), 0);
    env.await_no_process();
}

#[test]
fn a_deadline_ends_a_wait_that_nothing_else_ends() {
    let env = Environment::new();
    let running = working(&env, TWICE, &[]);
    park(&env, FIRST, for_file(&env, "never"), Some(300));
    Run::from(running.finish()).assert_status("done", 0);
    let why = woken_because(&env, FIRST);
    assert!(
        why.starts_with("its deadline passed before the file"),
        "{why}"
    );
}

#[test]
fn a_time_is_waited_for() {
    let env = Environment::new();
    let running = working(&env, TWICE, &[]);
    let at_ms = SystemClock.now_ms() + 1_500;
    park(&env, FIRST, WaitFor::Time { at_ms }, None);
    let run = Run::from(running.finish());
    run.assert_status("done", 0);
    let is_woken = |line: &&serde_json::Value| line["type"] == "goal_woken";
    let woken = run.lines.iter().find(is_woken).unwrap();
    let woken_ms = woken["at_ms"].as_i64().unwrap();
    assert!(woken_ms >= at_ms, "{at_ms} {woken_ms}");
}

#[test]
fn consent_ends_the_wait_for_it_and_a_run_goes_on() {
    let env = Environment::new();
    let mut running = working(&env, TWICE, &[]);
    let what = "spend the rest of the month's money".to_owned();
    park(&env, FIRST, WaitFor::Approval { what: what.clone() }, None);
    running.await_line(&|line| line.contains("after Ctrl-C it stays parked"));
    allow(&env, FIRST, &what);
    Run::from(running.finish()).assert_status("done", 0);
    assert_woken_and_done(&env, FIRST, 1);
}
