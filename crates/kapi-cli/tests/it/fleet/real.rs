//! What is asked for on one machine is done on another, whoever is killed or cut off.

use std::time::Duration;

use kapi_fleet::address::Address;
use kapi_fleet::client::FleetSettings;
use kapi_fleet::log::NetLog;
use serde_json::json;

use crate::environment::{Environment, await_some};
use crate::fleet::Fleet;
use crate::fleet::proxy::Proxy;
use crate::kernel_task::{HONEST, branches};

/// Works until it is ended, or at once when the attempt before was lost.
const SLOW: &str = "command:if grep -q ' died\\|worker was stopped' \"$KAPI_PROMPT_FILE\"; then echo 42 > answer.txt; else sleep 300; fi";

/// Opens the log as nobody of the product does.
fn log(fleet: &Fleet) -> NetLog {
    let first = fleet.asks.git(&["rev-list", "--max-parents=0", "HEAD"]);
    let settings = FleetSettings {
        address: Address::parse(&fleet.cluster.address()).unwrap(),
        authorities: None,
        replicas: 1,
        patience: Duration::from_secs(30),
    };
    NetLog::open(settings, &format!("repo-{}", &first[..24]), "kernel").unwrap()
}

fn is_running(shown: &serde_json::Value) -> bool {
    shown["state"] == "running"
}

#[test]
fn what_is_asked_on_one_machine_is_done_on_another_and_comes_back_as_a_commit() {
    let fleet = Fleet::new(3);
    let works = fleet.machine(&fleet.cluster.address());
    let base = fleet.commit("news.txt");
    let agent = format!("{HONEST}; cat news.txt");
    let submitted = fleet.submit(&agent);
    assert_eq!(submitted["id"], "task_1");
    assert_eq!(submitted["duplicate"], false);
    // The same, asked on the other machine, is the same task.
    let again = works.json(&[
        "task",
        "run",
        "make it right",
        "--agent",
        &agent,
        "--detach",
    ]);
    assert_eq!(
        (&again["id"], &again["duplicate"]),
        (&json!("task_1"), &json!(true))
    );
    let worked = works.kapi(&["up", "--once", "--json"]);
    assert_eq!(worked.code, 0, "{worked:?}");
    let result = fleet.result(0);
    assert_eq!(result["status"], "completed", "{result:#}");
    assert!(
        result["output"].as_str().unwrap().contains("only here"),
        "{result:#}"
    );
    assert_eq!(branches(&fleet.asks), ["kapi/task_1"]);
    assert_eq!(fleet.asks.show("kapi/task_1", "answer.txt"), "42");
    assert_eq!(fleet.asks.commit_of("kapi/task_1^"), base);
    assert_eq!(
        fleet
            .asks
            .git(&["status", "--porcelain", "--untracked-files=no"]),
        ""
    );
    fleet.asks.git(&["fsck", "--strict"]);
    // Nothing is in files, the log is whole, and the place is shown without its secrets.
    assert!(
        !fleet
            .asks
            .repository()
            .join(".ilchul/kernel/events.jsonl")
            .exists()
    );
    let audited = works.json(&["audit"]);
    assert_eq!(audited["kernel"]["ok"], true, "{audited:#}");
    assert!(
        audited["kernel"]["events"].as_u64().unwrap() >= 4,
        "{audited:#}"
    );
    let shown = fleet.asks.json(&["dashboard"]);
    assert_eq!(shown["queue"]["completed"], 1, "{shown:#}");
    let mut settings = shown["settings"].as_array().unwrap().iter();
    let store = settings.find(|setting| setting["key"] == "store").unwrap();
    assert_eq!(store["value"], json!(fleet.cluster.address()));
    assert_eq!(store["source"], "environment KAPI_STORE");
}

#[test]
fn a_branch_that_holds_other_work_is_left_alone() {
    let fleet = Fleet::new(1);
    let works = fleet.machine(&fleet.cluster.address());
    fleet.submit(HONEST);
    fleet
        .asks
        .git(&["checkout", "--quiet", "-b", "kapi/task_1"]);
    let own = fleet.commit("mine.txt");
    assert_eq!(works.kapi(&["up", "--once"]).code, 0);
    let result = fleet.result(0);
    assert_eq!(result["status"], "completed", "{result:#}");
    assert_eq!(fleet.asks.commit_of("kapi/task_1"), own);
    let names = branches(&fleet.asks);
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(fleet.asks.show(&names[1], "answer.txt"), "42");
    // Asking again changes nothing.
    fleet.result(0);
    assert_eq!(branches(&fleet.asks), names);
}

#[test]
fn a_worker_that_is_killed_is_followed_by_one_on_another_machine() {
    let fleet = Fleet::new(3);
    let [first, second] = [0, 1].map(|_| fleet.machine(&fleet.cluster.address()));
    fleet.commit("news.txt");
    fleet.submit(SLOW);
    let killed = first.start(&["up"]);
    let seen = fleet.await_task("it to run", &is_running);
    let waits = second.start(&["up"]);
    killed.kill();
    let result = fleet.result(0);
    assert_eq!(result["status"], "completed", "{result:#}");
    assert_eq!(
        (&result["attempts"], &result["losses"]),
        (&json!(2), &json!(1))
    );
    let holder = seen["lease"]["holder"].as_str().unwrap();
    assert!(holder.starts_with("kapi up on "), "{holder}");
    assert_eq!(fleet.asks.show("kapi/task_1", "answer.txt"), "42");
    end(waits, &second);
    first.await_no_process();
}

#[test]
fn a_worker_whose_network_is_cut_stops_and_another_takes_over() {
    let fleet = Fleet::new(1);
    let proxy = Proxy::to(fleet.cluster.ports()[0]);
    let cut = fleet.machine(&format!("nats://127.0.0.1:{}", proxy.port));
    let free = fleet.machine(&fleet.cluster.address());
    fleet.submit(SLOW);
    let alone = cut.start(&["up"]);
    fleet.await_task("it to run", &is_running);
    proxy.cut();
    let works = free.start(&["up"]);
    let result = fleet.result(0);
    assert_eq!(
        (&result["attempts"], &result["losses"]),
        (&json!(2), &json!(1))
    );
    // Nobody can tell it; it finds out itself, and nothing of it goes on.
    let left = alone.finish();
    assert_eq!(left.code, 4, "{left:?}");
    assert!(left.stderr.contains("error: failed to reach"), "{left:?}");
    cut.await_no_process();
    assert_eq!(fleet.asks.show("kapi/task_1", "answer.txt"), "42");
    end(works, &free);
}

#[test]
fn a_commit_that_nobody_has_delays_the_task_and_is_no_loss() {
    let fleet = Fleet::new(1);
    let works = fleet.machine(&fleet.cluster.address());
    let base = fleet.commit("news.txt");
    fleet.submit(HONEST);
    let objects = log(&fleet).objects();
    objects.remove(&base).unwrap();
    let worker = works.start(&["up"]);
    let shown = fleet.await_task("the cause of a retry", &|shown| {
        shown["retry_cause"].is_string()
    });
    let why = shown["retry_cause"].as_str().unwrap();
    assert_eq!(
        why,
        format!("commit {base} is not available here, and no machine has offered it")
    );
    // Whoever has it offers it with the next task, and the first goes on.
    let offered = fleet
        .asks
        .kapi(&["task", "run", "another", "--detach", "--agent", HONEST]);
    assert_eq!(offered.code, 0, "{offered:?}");
    let result = fleet.result(0);
    assert_eq!(
        (&result["losses"], &result["retries"]),
        (&json!(0), &json!(0)),
        "{result:#}"
    );
    assert_eq!(
        fleet
            .asks
            .show(result["work"]["branch"].as_str().unwrap(), "answer.txt"),
        "42"
    );
    await_some("the other task", || {
        let shown = fleet.asks.json(&["show", "task_2"]);
        (shown["state"] == "completed").then_some(())
    });
    end(worker, &works);
}

#[test]
fn only_a_person_says_where_tasks_are_kept() {
    let mut env = Environment::new();
    env.write(
        ".ilchul/config.toml",
        "[goal]\n\n[kernel]\nstore = \"nats://127.0.0.1:1\"\n",
    );
    let refused = env.kapi(&["task", "list"]);
    refused.assert_error(
        2,
        &["config.toml:4", "`kernel.store`", "a project may not set"],
    );
    env.write(".ilchul/config.toml", "");
    env.configure("[kernel]\nstore = \"nats://kim:s3cret@\"\n");
    let wrong = env.kapi(&["task", "list"]);
    wrong.assert_error(2, &["config.toml:2", "it must name 1 to 16 servers"]);
    assert!(!wrong.stderr.contains("s3cret"), "{wrong:?}");
    // Nobody is there: it is said, and nothing is kept in files instead.
    env.configure("[kernel]\nstore = \"nats://127.0.0.1:1\"\n");
    let away = env.kapi(&["task", "run", "x", "--agent", HONEST, "--detach"]);
    away.assert_error(4, &["failed to reach", "127.0.0.1:1"]);
    assert!(
        !env.repository()
            .join(".ilchul/kernel/events.jsonl")
            .exists()
    );
    // A flag is nearer than the variable, the variable nearer than the file.
    env.set("KAPI_STORE", "nats://127.0.0.1:2");
    env.kapi(&["task", "list"])
        .assert_error(4, &["127.0.0.1:2"]);
    let listed = env.kapi(&["task", "list", "--store", "files"]);
    assert_eq!(listed.code, 0, "{listed:?}");
}

fn end(running: crate::program::Running, env: &Environment) {
    running.signal(rustix::process::Signal::INT);
    let output = running.finish();
    assert_eq!(output.code, 130, "{output:?}");
    env.await_no_process();
}
