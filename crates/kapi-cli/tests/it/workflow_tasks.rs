//! A workflow's work as tasks of the kernel: shown, shared with `kapi up`, cancelled, kept out by a
//! rule, and never more at once than the project allows.
//!
//! The agents are scripts; one of them waits until a test lets it go on.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::environment::{await_some, write};
use crate::program::{Running, parse};
use crate::workflow_support::{Machine, last};

const RALPH: &str = "001-greet-people-name";
const WORDS: [&str; 4] = ["greet", "people", "by", "name"];
/// The first step of T-001 and of T-002 in the script of the agent that works.
const FIRST_STEPS: [&str; 2] = ["{write: {path: word.txt", "{write: {path: MANUAL"];

/// A machine whose first task waits at a gate, or both of its first ones.
struct Gated {
    machine: Machine,
    gate: PathBuf,
}

impl Gated {
    fn new() -> Self {
        Self::at(&FIRST_STEPS[..1], "")
    }

    /// Makes one whose tasks wait at these steps, with more of the person's configuration.
    fn at(steps: &[&str], more: &str) -> Self {
        let machine = Machine::new();
        let gate = machine.env.root().join("gate");
        fs::create_dir(&gate).unwrap();
        machine
            .env
            .configure(&format!("[sandbox]\nread_only = [{gate:?}]\n{more}"));
        let script = machine.env.root().join("agent.yaml");
        let mut text = fs::read_to_string(&script).unwrap();
        let wait = format!(
            "while [ ! -e {}/open ]; do sleep 0.05; done",
            gate.display()
        );
        for step in steps {
            assert!(text.contains(step), "{text}");
            text = text.replacen(step, &format!("{{bash: {wait:?}}}, {step}"), 1);
        }
        write(&script, text);
        Self { machine, gate }
    }

    fn open(&self) {
        write(&self.gate.join("open"), "");
    }

    /// Returns the task of the kernel for a task of the plan, once it stands so.
    fn task(&self, of_plan: &str, is_so: &dyn Fn(&Value) -> bool) -> Value {
        await_some(&format!("the task of {of_plan}"), || {
            let listed = self.machine.env.kapi(&["task", "list", "--all", "--json"]);
            let listed = (listed.code == 0).then(|| listed.document())?;
            let mut tasks = listed["tasks"].as_array()?.clone().into_iter();
            tasks.find(|task| task["goal"]["task"] == of_plan && is_so(task))
        })
    }

    fn running(&self, of_plan: &str) -> Value {
        self.task(of_plan, &|task| task["state"] == "running")
    }

    fn start(&self, options: &[&str]) -> Running {
        let machine = &self.machine;
        let mut args = vec!["ralph"];
        args.extend(WORDS);
        args.extend(["--agent", &machine.agent, "--reviewer", &machine.reviewer]);
        args.extend(["--judge", "none", "--unlinked", "--approve-plan", "auto"]);
        args.extend(options);
        machine.env.start(&args)
    }
}

fn kernel_events(machine: &Machine) -> Vec<Value> {
    let log = machine.env.repository().join(".ilchul/kernel/events.jsonl");
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().map(parse).collect()
}

/// Returns how many tasks were held at once, at most.
fn held_at_once(events: &[Value]) -> usize {
    let (mut held, mut most) = (BTreeSet::new(), 0);
    for event in events {
        let task = event["data"]["task"].to_string();
        match event["type"].as_str().unwrap() {
            "claimed" => drop(held.insert(task)),
            "ended" | "requeued" => drop(held.remove(&task)),
            _ => {}
        }
        most = most.max(held.len());
    }
    most
}

#[test]
fn the_work_of_a_plan_is_tasks_of_the_kernel() {
    let gated = Gated::at(&FIRST_STEPS, "[kernel]\nmax_concurrency = 1\n");
    let (machine, env) = (&gated.machine, &gated.machine.env);
    let mut driver = gated.start(&["--jobs", "2", "--json"]);
    // Both that could be done at once were begun, and the project has one place.
    driver.await_line(&|line| line.contains("all 1 slots of the project are in use"));
    gated.open();
    let done = driver.finish();
    let view = last(&done);
    assert_eq!(done.code, 0, "{view:#}\n{}", done.stderr);

    let tasks = env.json(&["task", "list", "--all"])["tasks"].clone();
    let tasks = tasks.as_array().unwrap();
    let of_plan: BTreeSet<&str> = tasks
        .iter()
        .map(|task| task["goal"]["task"].as_str().unwrap())
        .collect();
    let expected = ["F-001", "T-001", "T-002", "T-003"];
    assert_eq!(of_plan, BTreeSet::from(expected), "{tasks:#?}");
    assert_eq!(tasks.len(), 4, "each was asked for once: {tasks:#?}");
    for task in tasks {
        assert_eq!(task["state"], "completed", "{task:#}");
        assert_eq!(task["goal"]["workflow"], RALPH);
        assert_eq!(task["attempts"], 1, "{task:#}");
        // What was used stands in the goal's account, and nowhere twice.
        assert_eq!(task["usage"]["input_tokens"], 0, "{task:#}");
    }
    let events = kernel_events(machine);
    assert_eq!(held_at_once(&events), 1, "{events:#?}");

    let dispatches: Vec<&Value> = view["workers"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|worker| worker["dispatches"].as_array().unwrap())
        .collect();
    assert_eq!(dispatches.len(), 4, "{view:#}");
    for dispatch in dispatches {
        let task = tasks.iter().find(|task| task["id"] == dispatch["task"]);
        let goal = &task.unwrap_or_else(|| panic!("{dispatch:#}"))["goal"];
        assert_eq!(goal["goal"], dispatch["goal"], "{dispatch:#}");
        assert_eq!(goal["effect"], dispatch["effect"], "{dispatch:#}");
    }
    assert_pointers(machine, tasks[0]["id"].as_str().unwrap());
    // The goals stand under the workflow's name, and its own number stays the last one.
    let shown = env.json(&["show", "1/T-002"]);
    assert_eq!(shown["id"], "001-greet-people-name_T-002", "{shown:#}");
    let reported = env.kapi(&["show", "001/T-002"]);
    assert!(
        reported.stdout.contains("001-greet-people-name_T-002"),
        "{reported:?}"
    );
    assert_eq!(env.json(&["show", "1"])["id"], RALPH);
    let options = ["--unlinked", "--no-drive", "--json"];
    let started = last(&machine.ralph(&["something", "else"], &options));
    assert!(
        started["id"].as_str().unwrap().starts_with("002-"),
        "{started:#}"
    );
    assert_eq!(env.json(&["audit"])["ok"], true);
}

/// What is asked of a task that drives a goal leads to the goal and the workflow.
fn assert_pointers(machine: &Machine, id: &str) {
    let env = &machine.env;
    let shown = env.kapi(&["show", id]);
    assert!(shown.stdout.contains(RALPH), "{shown:?}");
    assert!(shown.stdout.contains("kapi log 0"), "{shown:?}");
    let logs = env.kapi(&["log", id]);
    assert!(logs.stdout.contains("has its own log"), "{logs:?}");
    let logs = env.json(&["log", id]);
    assert_eq!(logs["type"], "goal_log", "{logs:#}");
    let command = logs["next"][0].as_str().unwrap();
    let args: Vec<&str> = command.split(' ').skip(1).collect();
    assert_eq!(env.kapi(&args).code, 0, "{command}");
    assert_eq!(env.kapi(&["wait", id]).code, 0);
    let again = env.kapi(&["task", "retry", id]);
    again.assert_error(3, &["which retries it itself", "kapi ralph resume 001"]);
}

#[test]
fn a_worker_takes_what_a_killed_drive_left_and_the_next_drive_waits_for_it() {
    let gated = Gated::new();
    let env = &gated.machine.env;
    let driver = gated.start(&[]);
    gated.running("T-001");
    driver.kill();
    env.await_no_process();

    let up = env.start(&["up", "--json"]);
    let again = |task: &Value| task["state"] == "running" && task["losses"] == 1;
    let taken = gated.task("T-001", &again);
    let holder = taken["lease"]["holder"].as_str().unwrap().to_owned();
    let mut driver = env.start(&["ralph", "resume", "1", "--json"]);
    let runs = format!("is running on {holder}");
    driver.await_line(&|line| line.contains("T-001: task_") && line.contains(&runs));
    gated.open();
    let done = driver.finish();
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(last(&done)["status"], "completed");
    up.signal(Signal::INT);
    let up = up.finish();
    assert!(up.stdout.contains(taken["id"].as_str().unwrap()), "{up:?}");

    let ended = gated.task("T-001", &|task| task["state"] == "completed");
    assert_eq!(ended["id"], taken["id"], "it is the same task all along");
    assert_eq!(
        (&ended["attempts"], &ended["losses"]),
        (&json!(2), &json!(1))
    );
    let goals = fs::read_dir(env.repository().join(".ilchul/goals")).unwrap();
    assert_eq!(goals.count(), 4, "no work was done by two goals");
    let audit = env.json(&["audit"]);
    assert_eq!(audit["ok"], true, "{audit:#}");
    env.await_no_process();
}

#[test]
fn a_cancelled_task_lets_go_of_its_goal_and_the_workflow_is_told() {
    let gated = Gated::new();
    let env = &gated.machine.env;
    let driver = gated.start(&[]);
    let task = gated.running("T-001");
    let id = task["id"].as_str().unwrap();
    let goal = task["goal"]["goal"].as_str().unwrap();
    assert_eq!(env.kapi(&["cancel", id]).code, 0);
    let held_up = driver.finish();
    assert_eq!(held_up.code, 5, "{held_up:?}");
    let view = env.json(&["status", "1"]);
    assert_eq!(view["status"], "blocked", "{view:#}");
    let reason = view["blocked"]["reason"].as_str().unwrap();
    assert!(reason.contains(&format!("{id} was cancelled")), "{reason}");
    assert_eq!(env.json(&["show", id])["state"], "cancelled");
    // Nobody goes on with the goal behind the workflow's back.
    let up = env.kapi(&["up", "--once", "--json"]);
    assert_eq!(up.code, 0, "{up:?}");
    assert_eq!(last(&up)["driven"], json!([]), "{up:?}");
    assert_eq!(env.json(&["show", goal])["status"], "active");

    gated.open();
    let done = env.kapi(&["ralph", "resume", "1", "--json"]);
    assert_eq!(done.code, 0, "{done:?}");
    let second = gated.task("T-001", &|task| task["state"] == "completed");
    assert_ne!(second["id"], task["id"]);
    assert_eq!(second["goal"]["goal"], goal, "the goal goes on");
}

#[test]
fn a_rule_of_the_policy_keeps_a_plans_work_out() {
    let machine = Machine::new();
    let env = &machine.env;
    let policy = env.repository().join(".ilchul/policy.yaml");
    write(
        &policy,
        "rules:\n  - name: no scripts\n    effect: deny\n    when:\n      agent: script\n    reason: they are for tests\n",
    );
    let denied = machine.ralph(&WORDS, &["--unlinked", "--approve-plan", "auto", "--json"]);
    let view = last(&denied);
    assert_eq!(view["status"], "blocked", "{view:#}");
    let reason = view["blocked"]["reason"].as_str().unwrap();
    for words in ["policy denied request", "they are for tests"] {
        assert!(reason.contains(words), "{reason}");
    }
    assert_eq!(env.json(&["task", "list", "--all"])["tasks"], json!([]));
    // Nothing holds a goal to what a rule says of commands, so that is a refusal too.
    write(
        &policy,
        "rules:\n  - name: no pushes\n    effect: deny\n    when:\n      command: git push\n    reason: a person pushes\n",
    );
    let denied = env.kapi(&["ralph", "resume", "1", "--json"]);
    let view = last(&denied);
    let reason = view["blocked"]["reason"].as_str().unwrap();
    assert!(
        reason.contains("a workflow's goal cannot enforce it"),
        "{reason}"
    );
    fs::remove_file(&policy).unwrap();
    let done = env.kapi(&["ralph", "resume", "1", "--json"]);
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn without_a_kernel_the_work_fails_and_is_tried_again() {
    let mut machine = Machine::new();
    machine.env.set("KAPI_STORE", "nats://127.0.0.1:9");
    let env = &machine.env;
    let mut args = vec!["ralph"];
    args.extend(WORDS);
    args.extend(["--agent", &machine.agent, "--reviewer", &machine.reviewer]);
    args.extend(["--judge", "none", "--unlinked", "--approve-plan", "auto"]);
    let driver = env.start(&args);
    let failed = await_some("the work to fail", || {
        let log = machine.dir("ralph", RALPH).join("events.jsonl");
        let text = fs::read_to_string(log).unwrap_or_default();
        let whole = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        whole
            .filter(|event: &Value| event["type"] == "effect_ended")
            .find_map(|event| event["data"]["failed"].as_str().map(str::to_owned))
    });
    assert!(failed.contains("to the queue"), "{failed}");
    driver.signal(Signal::INT);
    assert_eq!(driver.finish().code, 130);
    let view = env.json(&["status", "1"]);
    assert_eq!(view["status"], "active", "it is tried again: {view:#}");
    machine.env.set("KAPI_STORE", "files");
    let done = machine.env.kapi(&["ralph", "resume", "1"]);
    assert_eq!(done.code, 0, "{done:?}");
}
