//! `kapi up` as worker and leader: each instant and each event sets off one run, whoever is killed.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::environment::{Environment, await_some, write};
use crate::kernel_loop::{define, runs};
use crate::program::{Running, parse};

/// Returns the records of the kernel's log.
pub(crate) fn log(env: &Environment) -> Vec<Value> {
    let path = env.repository().join(".ilchul/kernel/events.jsonl");
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
    whole.lines().map(parse).collect()
}

pub(crate) fn count(env: &Environment, kind: &str) -> usize {
    let records = log(env);
    records
        .iter()
        .filter(|record| record["type"] == kind)
        .count()
}

pub(crate) fn await_count(env: &Environment, kind: &str, n: usize) {
    let kernel = env.repository().join(".ilchul/kernel");
    env.await_record(&kernel, &format!("{n} of {kind}"), || {
        (count(env, kind) >= n).then_some(())
    });
}

pub(crate) fn end(running: Running) {
    running.signal(Signal::INT);
    let output = running.finish();
    assert_eq!(output.code, 130, "{output:?}");
}

const EVERY_SECOND: &str =
    "trigger:\n  type: cron\n  schedule: \"* * * * * *\"\n  misfire: all\n  misfire_max: 100";

/// The instants that were dealt with, in the order of the log.
fn instants(env: &Environment) -> Vec<i64> {
    let due = |record: &Value| match record["type"].as_str() {
        Some("submitted") => record["data"]["request"]["loop"]["trigger"]["due_at_ms"].as_i64(),
        Some("loop_skipped") => record["data"]["trigger"]["due_at_ms"].as_i64(),
        _ => None,
    };
    log(env).iter().filter_map(due).collect()
}

#[test]
fn each_instant_sets_off_one_run_though_leaders_are_killed_and_started_again() {
    let env = Environment::new();
    define(&env, "tick", EVERY_SECOND);
    let mut supervisors = vec![env.start(&["up"]), env.start(&["up"])];
    for round in 1..=4 {
        await_count(&env, "ended", 2 * round);
        // One after the other is killed, the leader among them.
        supervisors.remove(0).kill();
        supervisors.push(env.start(&["up"]));
    }
    await_count(&env, "ended", 10);
    for supervisor in supervisors {
        end(supervisor);
    }
    let leaders: BTreeSet<i64> = log(&env)
        .iter()
        .filter(|record| record["type"] == "led")
        .filter_map(|record| record["data"]["fence"].as_i64())
        .collect();
    assert!(leaders.len() >= 2, "somebody took over: {leaders:?}");
    let instants = instants(&env);
    let steps: Vec<i64> = instants.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        steps.iter().all(|step| *step == 1_000),
        "none twice, none lost: {instants:?}"
    );
    // None ran twice either, but for those whose worker was killed or left.
    let of = |kind: &str, task: &Value| {
        let records = log(&env).into_iter();
        let records = records.filter(|it| it["type"] == kind && it["data"]["task"] == *task);
        records.count()
    };
    for record in log(&env).iter().filter(|it| it["type"] == "submitted") {
        let task = &record["data"]["task"];
        let (begun, requeued) = (of("begun", task), of("requeued", task));
        assert!(
            begun <= 1 + requeued,
            "{task}: {begun} begun, {requeued} requeued"
        );
    }
}

/// Whoever clones a repository and supervises it spends nothing that they did not ask for.
#[test]
fn a_loop_that_came_with_the_repository_waits_for_a_word() {
    let env = Environment::new();
    let text = concat!(
        "---\nname: tick\nagent: oracle\nworkspace: read_only\nbackend: \"command:echo ran\"\n",
        "trigger:\n  type: cron\n  schedule: \"* * * * * *\"\n---\nLook around.\n"
    );
    write(&env.repository().join(".pi/loops/tick.md"), text);
    let listed = env.kapi(&["loop", "list"]);
    let word = "turn its triggers on with `kapi loop enable tick`";
    assert!(listed.stdout.contains(word), "{listed:?}");
    let supervisor = env.start(&["up"]);
    await_count(&env, "loop_seen", 1);
    assert_eq!(count(&env, "submitted"), 0);
    assert_eq!(env.kapi(&["loop", "enable", "tick"]).code, 0);
    await_count(&env, "ended", 1);
    end(supervisor);
}

/// A queue is plain files: an archive can hold one that says anything.
#[test]
fn a_queue_from_elsewhere_is_shown_and_not_worked_on() {
    let env = Environment::new();
    define(&env, "look", "");
    assert_eq!(env.kapi(&["loop", "run", "look", "--detach"]).code, 0);
    fs::remove_dir_all(env.home().join(".ilchul/kernels")).unwrap();
    for refused in [&["up", "--once"][..], &["loop", "run", "look"]] {
        let words = ["come from elsewhere", "kapi task adopt"];
        env.kapi(refused).assert_error(3, &words);
    }
    let shown = env.kapi(&["task", "list"]);
    assert!(shown.stdout.contains("task_1"), "{shown:?}");
    let adopted = env.kapi(&["task", "adopt"]);
    assert!(adopted.stdout.contains("1 task, 1 of them"), "{adopted:?}");
    assert_eq!(env.kapi(&["up", "--once"]).code, 0);
    assert_eq!(count(&env, "ended"), 1);
}

#[test]
fn the_log_of_tasks_is_audited_too() {
    let env = Environment::new();
    env.kapi(&["audit"])
        .assert_error(6, &["there are no goals"]);
    define(&env, "look", "");
    assert_eq!(env.kapi(&["loop", "run", "look", "--detach"]).code, 0);
    let report = env.json(&["audit"]);
    assert_eq!(report["kernel"]["ok"], true);
    assert_eq!(report["kernel"]["events"], count(&env, "submitted"));
    let path = env.repository().join(".ilchul/kernel/events.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    write(&path, text.replacen("Look around", "Look aroumd", 1));
    let found = env.kapi(&["audit"]);
    assert_eq!(found.code, 4, "{found:?}");
    assert!(found.stdout.contains("kernel  ") && found.stdout.contains("DAMAGED"));
}

#[test]
fn once_does_what_is_due_and_waits_for_its_end() {
    let env = Environment::new();
    env.kapi(&["up", "--once"])
        .assert_error(6, &["there are no goals"]);
    define(
        &env,
        "tick",
        "trigger:\n  type: cron\n  schedule: \"* * * * * *\"",
    );
    assert_eq!(env.kapi(&["up", "--once"]).code, 0);
    let ran = await_some("a due instant", || {
        let output = env.kapi(&["up", "--once", "--json"]);
        assert_eq!(output.code, 0, "{output:?}");
        let last = output.stdout.lines().last().map(parse).unwrap();
        (last["tasks"] != json!([])).then_some(last)
    });
    // On a slow machine another instant is due before the run has ended.
    let tasks = ran["tasks"].as_array().unwrap();
    assert_eq!(tasks[0], json!({"id": "task_1", "state": "completed"}));
    assert!(
        tasks.iter().all(|task| task["state"] == "completed"),
        "{ran}"
    );
    assert_eq!(ran["waiting"], 0);
    // Whoever ends leads no more.
    assert_eq!(log(&env).last().unwrap()["type"], "resigned");

    define(
        &env,
        "tick",
        "backend: \"command:exit 3\"\ntrigger:\n  type: cron\n  schedule: \"* * * * * *\"",
    );
    await_some("a run that fails", || {
        let output = env.kapi(&["up", "--once"]);
        assert!([0, 5].contains(&output.code), "{output:?}");
        (output.code == 5).then_some(())
    });
}

#[test]
fn files_refs_and_results_set_loops_off_once_each() {
    let env = Environment::new();
    define(
        &env,
        "on-files",
        "trigger:\n  type: event\n  files: [\"src/**\"]",
    );
    define(
        &env,
        "on-ref",
        "trigger:\n  type: event\n  git_ref: refs/heads/main",
    );
    define(
        &env,
        "on-tags",
        "trigger:\n  type: event\n  git_ref: refs/tags/*",
    );
    define(
        &env,
        "on-result",
        "trigger:\n  type: event\n  loop: on-files",
    );
    env.git(&["tag", "v0"]);
    let running = env.start(&["up"]);
    // At first sight nothing is set off.
    await_count(&env, "loop_seen", 4);
    // An empty file that is filled afterwards may be two changes.
    env.place(&env.repository().join("src/a"), "1");
    await_count(&env, "ended", 2);
    let of_files = runs(&env, "on-files");
    assert_eq!(of_files.len(), 1);
    assert_eq!(of_files[0]["loop"]["source"], "files src/**");
    assert_eq!(
        runs(&env, "on-result")[0]["loop"]["source"],
        "loop on-files completed"
    );
    let submitted = log(&env);
    let of_files = submitted
        .iter()
        .find(|record| record["type"] == "submitted")
        .unwrap();
    let payload = &of_files["data"]["request"]["loop"]["payload"];
    assert_eq!(payload["changed"], json!(["src/a"]));

    env.commit_all("more");
    await_count(&env, "ended", 3);
    assert_eq!(runs(&env, "on-ref").len(), 1);
    env.git(&["tag", "v1"]);
    await_count(&env, "ended", 4);
    assert_eq!(runs(&env, "on-tags").len(), 1);

    // What happens while nobody is there is noticed by whoever comes next; what happens while a
    // loop is off is not.
    end(running);
    write(&env.repository().join("src/b"), "1");
    assert_eq!(env.kapi(&["loop", "disable", "on-tags"]).code, 0);
    env.git(&["tag", "v2"]);
    assert_eq!(env.kapi(&["up", "--once"]).code, 0);
    assert_eq!(env.kapi(&["loop", "enable", "on-tags"]).code, 0);
    assert_eq!(env.kapi(&["up", "--once"]).code, 0);
    let n_runs = |name: &str| runs(&env, name).len();
    assert_eq!(
        (n_runs("on-files"), n_runs("on-result"), n_runs("on-tags")),
        (2, 2, 1)
    );
}

#[test]
fn ctrl_c_and_a_kill_give_tasks_back_and_a_definition_that_is_gone_is_no_matter() {
    let env = Environment::new();
    define(&env, "slow", "timeout: 0\nbackend: \"command:sleep 600\"");
    let asked = env.kapi(&["loop", "run", "slow", "--detach"]);
    assert_eq!(asked.code, 0, "{asked:?}");
    assert!(asked.stdout.contains("task_1 is queued"), "{asked:?}");
    for signal in [Signal::INT, Signal::TERM] {
        let before = count(&env, "begun");
        let running = env.start(&["up"]);
        await_count(&env, "begun", before + 1);
        running.signal(signal);
        assert_eq!(running.finish().code, 130);
        env.await_no_process();
        let task = env.json(&["show", "task_1"]);
        assert_eq!(task["state"], "pending", "{task}");
    }
    // The run carries the definition as it was; a changed file changes it for later runs only.
    fs::remove_file(env.repository().join(".ilchul/loops/slow.md")).unwrap();
    let before = count(&env, "begun");
    let running = env.start(&["up"]);
    await_count(&env, "begun", before + 1);
    assert_eq!(env.kapi(&["cancel", "task_1"]).code, 0);
    await_count(&env, "ended", 1);
    end(running);
    env.await_no_process();
}

#[test]
fn a_definition_that_is_changed_while_it_runs_counts_at_once_and_a_faulty_one_never_fires() {
    let env = Environment::new();
    define(
        &env,
        "tick",
        "trigger:\n  type: cron\n  schedule: \"@yearly\"",
    );
    let running = env.start(&["up"]);
    await_count(&env, "loop_seen", 1);
    define(&env, "tick", EVERY_SECOND);
    await_count(&env, "ended", 1);
    define(
        &env,
        "tick",
        "trigger:\n  type: cron\n  schedule: \"61 * * * *\"",
    );
    // Whoever leads resigns when nothing is left that could be due.
    await_some("a leader that resigns", || {
        let records = log(&env);
        // Runs that were under way may end after it.
        let mut of_leaders = records.iter().rev();
        let last = of_leaders.find(|it| it["type"] == "led" || it["type"] == "resigned");
        (last?["type"] == "resigned").then_some(())
    });
    end(running);
}
