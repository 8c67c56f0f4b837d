//! Who works on a task: this process, another one, the next one after a death, or nobody yet.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::dialogs::at_terminal;
use crate::environment::{Environment, await_some};
use crate::kernel_task::{HONEST, branches};
use crate::program::{Output, Running, parse};

/// Works until it is ended, or at once when the attempt before was lost.
const SLOW: &str = "command:if grep -q ' died\\|worker was stopped' \"$KAPI_PROMPT_FILE\"; then echo 42 > answer.txt; else sleep 300; fi";

fn args<'a>(agent: &'a str, options: &[&'a str]) -> Vec<&'a str> {
    [
        &["task", "run", "make it right", "--json", "--agent", agent],
        options,
    ]
    .concat()
}

fn running(env: &Environment, id: &str) -> Value {
    await_some(&format!("{id} to run"), || {
        let shown = env.kapi(&["show", id, "--json"]);
        let shown = (shown.code == 0).then(|| shown.document())?;
        (shown["state"] == "running").then_some(shown)
    })
}

fn last(output: &Output) -> Value {
    parse(output.stdout.lines().last().unwrap())
}

#[test]
fn eight_processes_with_one_key_in_the_same_instant_launch_once() {
    let env = Environment::new();
    let started: Vec<Running> = (0..8)
        .map(|n| {
            env.start(&args(
                HONEST,
                if n % 2 == 0 {
                    &["--key", "k"]
                } else {
                    &["--key", "k", "--detach"]
                },
            ))
        })
        .collect();
    let outputs: Vec<Output> = started.into_iter().map(Running::finish).collect();
    let firsts: Vec<Value> = outputs
        .iter()
        .map(|output| parse(output.stdout.lines().next().unwrap()))
        .collect();
    assert!(
        firsts.iter().all(|line| line["id"] == "task_1"),
        "{firsts:?}"
    );
    let n_new = firsts
        .iter()
        .filter(|line| line["duplicate"] == false)
        .count();
    assert_eq!(n_new, 1, "{firsts:?}");
    for output in outputs.iter().step_by(2) {
        assert_eq!(output.code, 0, "{output:?}");
        assert_eq!(last(output)["status"], "completed");
    }
    assert_eq!(branches(&env), ["kapi/task_1"]);
    assert_eq!(env.json(&["show", "task_1"])["attempts"], 1);
}

#[test]
fn a_worker_that_is_killed_is_followed_by_the_next_one() {
    let env = Environment::new();
    let first = env.start(&args(SLOW, &[]));
    let seen = running(&env, "1");
    // A second one looks on, and takes over as soon as the first is gone.
    let mut second = env.start(&args(SLOW, &[]));
    second.await_line(&|line| line.contains("task_changed"));
    first.kill();
    let output = second.finish();
    assert_eq!(output.code, 0, "{output:?}");
    let ended = last(&output);
    assert_eq!(ended["status"], "completed", "{ended:#}");
    assert_eq!(
        (&ended["attempts"], &ended["losses"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(env.show("kapi/task_1", "answer.txt"), "42");
    let fence = seen["lease"]["fence"].as_u64().unwrap();
    assert!(
        output.stdout.contains(&format!("task_1-{}", fence + 1)),
        "{output:?}"
    );
    env.await_no_process();
}

#[test]
fn a_killed_worker_is_gone_for_whoever_looks_and_for_whoever_cancels() {
    let env = Environment::new();
    let first = env.start(&args(SLOW, &[]));
    running(&env, "1");
    first.kill();
    let shown = env.kapi(&["show", "task_1"]);
    assert!(shown.stderr.contains("worker 1 is gone"), "{shown:?}");
    let cancelled = env.json(&["cancel", "task_1", "--reason", "no need"]);
    assert_eq!(cancelled["status"], "cancelled", "{cancelled:#}");
    env.kapi(&["cancel", "task_1"])
        .assert_error(3, &["task_1 is cancelled"]);
    env.await_no_process();
}

#[test]
fn an_interrupt_gives_the_task_back_and_the_same_command_goes_on_with_it() {
    let env = Environment::new();
    let first = env.start(&args(SLOW, &[]));
    running(&env, "1");
    first.signal(Signal::INT);
    let output = first.finish();
    assert_eq!(output.code, 130, "{output:?}");
    let left = last(&output);
    assert_eq!(
        (&left["status"], &left["losses"]),
        (&json!("queued"), &json!(0)),
        "{left:#}"
    );
    env.await_no_process();
    let output = env.kapi(&args(SLOW, &[]));
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(last(&output)["id"], "task_1");
}

#[test]
fn a_cancel_ends_the_agents_processes_and_the_worker_says_so() {
    let env = Environment::new();
    let mut worker = env.start(&args("command:sleep 300 & sleep 300", &[]));
    running(&env, "1");
    let waiting = env.start(&["wait", "task_1", "--json"]);
    assert_eq!(env.kapi(&["cancel", "task_1"]).code, 0);
    worker.await_line(&|line| line.contains("\"result\"") && line.contains("cancelled"));
    assert_eq!(worker.finish().code, 5);
    let waited = waiting.finish();
    assert_eq!(waited.code, 5, "{waited:?}");
    assert_eq!(last(&waited)["status"], "cancelled");
    env.await_no_process();
}

#[test]
fn a_detached_task_waits_for_a_worker_and_says_which_command_is_one() {
    let env = Environment::new();
    let output = env.kapi(&[
        "task",
        "run",
        "make it right",
        "--detach",
        "--agent",
        HONEST,
    ]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.contains("kapi up --once"), "{output:?}");
    let listed = env.kapi(&["task", "list"]);
    assert!(
        listed.stdout.contains("task_1  queued  sisyphus"),
        "{listed:?}"
    );
    assert!(listed.stdout.contains("waiting for a worker"), "{listed:?}");
    let waited = env.kapi(&["wait", "task_1", "--timeout", "50ms"]);
    waited.assert_error_among_talk(7, &["has not ended"]);
    assert!(waited.stderr.contains("no worker is running"), "{waited:?}");
    assert_eq!(env.kapi(&["task", "retry", "1"]).code, 3);
}

#[test]
fn over_capacity_waits_in_one_mode_and_is_refused_in_the_other() {
    let env = Environment::new();
    env.configure("[kernel]\nmax_concurrency = 1\noverflow = \"reject\"\n");
    let first = env.start(&args(SLOW, &[]));
    running(&env, "1");
    let refused = env.kapi(&["task", "run", "another", "--agent", HONEST]);
    refused.assert_error(7, &["over capacity (1/1)", "raise `max_concurrency`"]);
    assert_eq!(
        env.kapi(&["show", "task_2"]).code,
        6,
        "nothing was recorded"
    );

    env.configure("[kernel]\nmax_concurrency = 1\n");
    let mut second = env.start(&["task", "run", "another", "--json", "--agent", HONEST]);
    second.await_line(&|line| line.contains("all 1 slots"));
    let waiting = env.json(&["show", "task_2"]);
    assert_eq!(waiting["status"], "queued", "{waiting:#}");
    assert_eq!(waiting["waits"], "all 1 slots of the project are in use");
    env.kapi(&["cancel", "task_1"]);
    let output = second.finish();
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(first.finish().code, 5);
}

#[test]
fn places_of_one_profile_are_counted_on_their_own() {
    let env = Environment::new();
    env.configure("[kernel.per_agent]\noracle = 1\n");
    let first = env.start(&args("command:sleep 300", &["--profile", "oracle"]));
    running(&env, "1");
    let detached = [
        "task",
        "run",
        "another",
        "--detach",
        "--profile",
        "oracle",
        "--agent",
        HONEST,
    ];
    assert_eq!(env.kapi(&detached).code, 0);
    let waiting = env.json(&["show", "task_2"]);
    assert_eq!(waiting["waits"], "all 1 slots of agent oracle are in use");
    // Another profile is not held up by it.
    assert_eq!(
        env.kapi(&["task", "run", "a third", "--agent", HONEST])
            .code,
        0
    );
    env.kapi(&["cancel", "task_1"]);
    assert_eq!(first.finish().code, 5);
}

#[test]
fn places_of_the_machine_are_shared_by_all_projects_of_a_person() {
    let env = Environment::new();
    env.configure("[kernel]\nmachine_max = 1\n");
    let other = env.root().join("other");
    env.git(&["clone", "--quiet", ".", &other.display().to_string()]);
    let first = env.start(&args(SLOW, &[]));
    running(&env, "1");
    let mut command = env.command(env!("CARGO_BIN_EXE_kapi"), &other);
    command.args(args(HONEST, &[]));
    let mut second = Running::spawn(command);
    second.await_line(&|line| line.contains("all 1 slots of this machine are in use"));
    env.kapi(&["cancel", "task_1"]);
    assert_eq!(first.finish().code, 5);
    let output = second.finish();
    assert_eq!(output.code, 0, "{output:?}");
}

#[test]
fn who_presses_ctrl_c_says_whether_the_task_is_cancelled_or_left() {
    for (answer, status) in [
        ("cancel\n", "cancelled"),
        ("leave\n", "queued"),
        ("\n", "queued"),
    ] {
        let env = Environment::new();
        let asked = ["task", "run", "make it right", "--agent", SLOW];
        let answers = [
            ("running on worker 1", "\u{3}"),
            ("[cancel/leave] ", answer),
        ];
        let output = at_terminal(&env, &asked, &answers);
        assert_eq!(output.code, 130, "{output:?}");
        let shown = env.json(&["show", "task_1"]);
        assert_eq!(shown["status"], status, "{shown:#}");
        env.await_no_process();
    }
}
