//! `kapi loop`: definitions as they are understood, runs by hand, phases, and what keeps a loop
//! from running.

use std::fs;

use serde_json::{Value, json};

use crate::environment::{Environment, write};

/// Writes a definition of the project, of a loop that only looks.
pub(crate) fn define(env: &Environment, name: &str, keys: &str) {
    let said = |key: &str| keys.lines().any(|line| line.starts_with(key));
    let mut text = format!("---\nname: {name}\nagent: oracle\nworkspace: read_only\n{keys}\n");
    if !said("backend:") {
        text.push_str("backend: \"command:echo looked\"\n");
    }
    text.push_str("---\nLook around.\n");
    write(
        &env.repository().join(format!(".ilchul/loops/{name}.md")),
        text,
    );
}

/// Returns the runs of a loop, the newest first.
pub(crate) fn runs(env: &Environment, name: &str) -> Vec<Value> {
    let history = env.json(&["loop", "history", name, "--limit", "1000"]);
    history["runs"].as_array().unwrap().clone()
}

fn listed(env: &Environment, name: &str) -> Value {
    let list = env.json(&["loop", "list"]);
    let loops = list["loops"].as_array().unwrap();
    let found = loops.iter().find(|entry| entry["name"] == name);
    found.unwrap().clone()
}

#[test]
fn a_loop_that_is_run_by_hand_goes_through_eight_phases() {
    let env = Environment::new();
    define(&env, "look", "inputs:\n  what: everything");
    let output = env.kapi(&["loop", "run", "look", "--input", "what=the rest"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.contains("looked"), "{output:?}");
    let runs = runs(&env, "look");
    assert_eq!(runs.len(), 1);
    let phases = runs[0]["loop"]["phases"].as_array().unwrap();
    let names: Vec<&str> = phases
        .iter()
        .map(|phase| phase["phase"].as_str().unwrap())
        .collect();
    let all = [
        "trigger",
        "shouldRun",
        "context",
        "execute",
        "evaluate",
        "learn",
        "handoff",
        "retrigger",
    ];
    assert_eq!(names, all);
    // The same once more is the same, and says so; asked anew it is another.
    let again = env.kapi(&["loop", "run", "look", "--input", "what=the rest", "--json"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.stdout.contains("\"duplicate\":true"), "{again:?}");
    let anew = env.kapi(&["loop", "run", "look", "--input", "what=the rest", "--again"]);
    assert_eq!(anew.code, 0, "{anew:?}");
    assert_eq!(self::runs(&env, "look").len(), 2);
    let status = env.json(&["loop", "status"]);
    let entry = &status["loops"][0];
    assert_eq!(
        entry.as_object().unwrap().len(),
        4,
        "the specification's shape: {entry}"
    );
    assert_eq!(
        (&entry["name"], &entry["status"]),
        (&json!("look"), &json!("completed"))
    );
    assert!(entry["lastRun"].as_str().unwrap().ends_with('Z'));
    assert_eq!(entry["nextScheduled"], Value::Null);
}

#[test]
fn what_cannot_be_run_is_told_before_anything_is_recorded() {
    let env = Environment::new();
    define(&env, "look", "inputs:\n  what: null");
    write(
        &env.repository().join(".pi/loops/odd.md"),
        "---\nname: odd\ntrigger:\n  type: croon\n---\nx\n",
    );
    env.kapi(&["loop", "run", "nothing"])
        .assert_error(6, &["loop not found: nothing", "available: look"]);
    env.kapi(&["loop", "run", "odd"]).assert_error(
        2,
        &[
            "the definition of loop odd",
            ".pi/loops/odd.md:4",
            "did you mean `cron`?",
        ],
    );
    env.kapi(&["loop", "run", "look"])
        .assert_error(2, &["its input \"what\" has no value"]);
    env.kapi(&["loop", "run", "look", "--input", "who=me"])
        .assert_error(2, &["it declares what"]);
    env.kapi(&["loop", "run", "look", "--payload", "{"])
        .assert_error(2, &["the payload as JSON"]);
    assert!(
        !env.repository()
            .join(".ilchul/kernel/events.jsonl")
            .exists()
    );
    let list = env.json(&["loop", "list"]);
    assert_eq!(list["faults"][0]["line"], 4);
    assert_eq!(list["faults"][0]["key"], "trigger.type");
    let reported = env.kapi(&["loop", "list"]);
    assert!(
        reported
            .stdout
            .contains("! .pi/loops/odd.md:4: `trigger.type`"),
        "{reported:?}"
    );
}

#[test]
fn a_loop_is_shown_as_it_is_understood_with_the_place_of_each_value() {
    let env = Environment::new();
    define(
        &env,
        "look",
        "timeout: 30s\ntrigger:\n  type: cron\n  schedule: \"30 2 * * 1-5\"\n  zone: Europe/Berlin",
    );
    let shown = env.json(&["loop", "show", "look"]);
    assert_eq!(shown["definition"]["timeout_ms"], 30_000);
    assert_eq!(shown["sources"]["timeout_ms"], ".ilchul/loops/look.md:5");
    assert_eq!(shown["sources"]["trigger"], ".ilchul/loops/look.md:6");
    assert_eq!(shown["sources"]["cooldown_ms"], "default");
    assert_eq!(shown["loop"]["trigger"], "cron");
    assert!(shown["loop"]["next_at_ms"].as_i64().unwrap() > 0);
    let human = env.kapi(&["loop", "show", "look"]).stdout;
    assert!(
        human.contains("(.ilchul/loops/look.md:5)") && human.contains("Look around."),
        "{human}"
    );
    let list = env.kapi(&["loop", "list"]).stdout;
    assert!(
        list.contains("at 02:30, Monday to Friday, Europe/Berlin"),
        "{list}"
    );
}

#[test]
fn a_dry_run_tells_what_would_happen_and_changes_nothing() {
    let env = Environment::new();
    define(&env, "look", "cooldown: 600");
    let would = |code: i32| {
        let output = env.kapi(&["loop", "run", "look", "--dry-run", "--json"]);
        assert_eq!(output.code, code, "{output:?}");
        output.document()["would"].as_str().unwrap().to_owned()
    };
    assert_eq!(would(0), "run");
    assert!(!env.repository().join(".ilchul/kernel").exists());
    env.kapi(&["loop", "run", "look"]);
    let log = || fs::read(env.repository().join(".ilchul/kernel/events.jsonl")).unwrap();
    let before = log();
    assert_eq!(would(0), "return the existing task task_1");
    write(
        &env.repository().join(".ilchul/policy.yaml"),
        "rules:\n  - name: no-looking\n    effect: deny\n    loop: look\n    reason: not today\n",
    );
    assert!(
        would(3).starts_with("be denied by the policy"),
        "{}",
        would(3)
    );
    assert_eq!(log(), before);
}

#[test]
fn a_loop_that_rests_runs_only_for_a_person_who_asks_again() {
    let env = Environment::new();
    define(&env, "look", "cooldown: 600");
    env.kapi(&["loop", "run", "look"]);
    let rests = env.kapi(&["loop", "run", "look", "--payload", "1", "--json"]);
    assert_eq!(rests.code, 0, "{rests:?}");
    assert_eq!(
        rests.document(),
        json!({"type": "skipped", "reason": "cooldown active"})
    );
    assert_eq!(runs(&env, "look").len(), 1);
    let history = env.json(&["loop", "history", "look"]);
    assert_eq!(history["last_skip"]["reason"], "cooldown active");
    let rests = env.kapi(&["loop", "run", "look", "--payload", "1"]);
    assert!(
        rests.stdout.contains("cooldown active") && rests.stdout.contains("--again"),
        "{rests:?}"
    );
    let listed = env.kapi(&["loop", "list"]).stdout;
    assert!(listed.contains("did not run"), "{listed}");
    // Its own terms kept it, so nobody is called.
    assert_eq!(env.json(&["inbox"])["items"], json!([]));
    let again = env.kapi(&["loop", "run", "look", "--again"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(runs(&env, "look").len(), 2);
}

#[test]
fn a_condition_is_tried_without_a_run_and_costs_nothing_where_it_is_false() {
    let env = Environment::new();
    define(
        &env,
        "look",
        "cooldown: 600\nshould_run: {command: \"test -e go\"}",
    );
    let would = || {
        let output = env.kapi(&["loop", "run", "look", "--dry-run", "--json"]);
        assert_eq!(output.code, 0, "{output:?}");
        output.document()["would"].as_str().unwrap().to_owned()
    };
    let said = would();
    assert!(
        said.starts_with("not run, because its condition does not hold")
            && said.contains("test -e go"),
        "{said}"
    );
    assert!(!env.repository().join(".ilchul/kernel").exists());
    for _ in 0..2 {
        // The second is neither the same as the first nor too early.
        let output = env.kapi(&["loop", "run", "look", "--json"]);
        assert!(!output.stdout.contains("\"duplicate\":true"), "{output:?}");
    }
    assert_eq!(runs(&env, "look").len(), 2);
    assert_eq!(listed(&env, "look")["status"], "skipped");
    let human = env.kapi(&["loop", "list"]).stdout;
    assert!(human.starts_with('\u{25cb}'), "{human}");
    env.write("go", "");
    let said = would();
    assert!(
        said.starts_with("run, because its condition holds"),
        "{said}"
    );
    let ran = env.kapi(&["loop", "run", "look"]);
    assert!(ran.stdout.contains("looked"), "{ran:?}");
}

#[test]
fn a_loop_that_is_denied_or_fails_is_seen_wherever_one_looks() {
    let env = Environment::new();
    define(&env, "look", "cooldown: 600");
    define(&env, "fail", "backend: \"command:exit 3\"");
    let policy = "rules:\n  - name: no-looking\n    effect: deny\n    when:\n      loop: look\n    \
                  reason: not today\n";
    env.write(".ilchul/policy.yaml", policy);
    let denied = env.kapi(&["loop", "run", "look"]);
    assert_eq!(denied.code, 3, "{denied:?}");
    assert_eq!(env.kapi(&["loop", "run", "fail"]).code, 5);
    assert_eq!(listed(&env, "look")["status"], "denied");
    for words in [
        &["loop", "list"][..],
        &["loop", "status"],
        &["status"],
        &["inbox"],
    ] {
        let output = env.kapi(words);
        assert!(output.stdout.contains("not today"), "{words:?}: {output:?}");
    }
    let status = env.kapi(&["status"]).stdout;
    assert!(
        status.contains("warning: loop fail: its last run, task_1, failed"),
        "{status}"
    );
    let inbox = env.json(&["inbox"]);
    let kinds: Vec<&str> = inbox["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["loop_denied", "loop_failed"]);
    // A run that ends well settles it.
    fs::remove_file(env.repository().join(".ilchul/policy.yaml")).unwrap();
    let ran = env.kapi(&["loop", "run", "look", "--again"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(listed(&env, "look")["status"], "completed");
    assert_eq!(env.json(&["inbox"])["items"].as_array().unwrap().len(), 1);
}

#[test]
fn the_next_times_of_all_schedules_are_told_in_their_order() {
    let env = Environment::new();
    let at =
        |schedule: &str| format!("trigger: {{type: cron, schedule: \"{schedule}\", zone: UTC}}");
    define(&env, "night", &at("0 3 * * *"));
    define(&env, "noon", &at("0 12 * * *"));
    define(&env, "hand", "");
    env.kapi(&["loop", "disable", "noon"]);
    let next = env.json(&["loop", "next", "--limit", "4"]);
    let rows = next["next"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    let at_ms: Vec<i64> = rows
        .iter()
        .map(|row| row["at_ms"].as_i64().unwrap())
        .collect();
    assert!(
        at_ms.is_sorted() && at_ms[2] - at_ms[0] == 86_400_000,
        "{next}"
    );
    for row in rows {
        assert_eq!(row["is_enabled"], row["loop"] == "night", "{row}");
    }
    let one = env.kapi(&["loop", "next", "night", "--limit", "2"]).stdout;
    assert_eq!(one.lines().count(), 2, "{one}");
    assert!(one.lines().all(|line| line.ends_with("night")), "{one}");
}

#[test]
fn a_schedule_may_be_meant_in_the_zone_of_the_machine() {
    let mut env = Environment::new();
    let at = |zone: &str| format!("trigger: {{type: cron, schedule: \"0 3 * * *\", zone: {zone}}}");
    define(&env, "here", &at("local"));
    define(&env, "tokyo", &at("Asia/Tokyo"));
    define(&env, "utc", &at("UTC"));
    for (zone, same) in [
        ("Asia/Tokyo", "tokyo"),
        (":Asia/Tokyo", "tokyo"),
        ("UTC", "utc"),
    ] {
        env.set("TZ", zone);
        let [here, other] = ["here", same].map(|name| listed(&env, name)["next_at_ms"].clone());
        assert!(here.is_number() && here == other, "{zone}: {here} {other}");
    }
    let shown = env.kapi(&["loop", "next", "here", "--limit", "1"]).stdout;
    assert!(shown.contains("03:00"), "{shown}");
}

#[test]
fn loops_are_switched_by_a_person_alone() {
    let mut env = Environment::new();
    define(
        &env,
        "look",
        "trigger:\n  type: cron\n  schedule: \"@hourly\"",
    );
    assert!(listed(&env, "look")["next_at_ms"].is_number());
    assert_eq!(env.kapi(&["loop", "disable", "look"]).code, 0);
    let off = listed(&env, "look");
    assert_eq!(
        (&off["is_enabled"], &off["next_at_ms"]),
        (&json!(false), &Value::Null)
    );
    // A person may still run it.
    assert_eq!(env.kapi(&["loop", "run", "look"]).code, 0);
    env.set("KAPI_RUN_ID", "001-x-t001-agent-a1");
    env.kapi(&["loop", "enable", "look"])
        .assert_error(3, &["only the user may enable and disable loops"]);
    let by_agent = env.kapi(&["loop", "run", "look", "--again", "--json"]);
    assert!(
        by_agent.stdout.contains("the loop is disabled"),
        "{by_agent:?}"
    );
}

#[test]
fn the_shipped_loops_are_written_once_and_never_over_a_persons_own() {
    let env = Environment::new();
    define(&env, "refactor", "");
    let mine = "---\nname: fix-bug\nagent: oracle\nbackend: \"command:true\"\n---\nMine.\n";
    let path = env.repository().join(".ilchul/loops/fix-bug.md");
    write(&path, mine);
    let first = env.json(&["loop", "init"]);
    assert_eq!(
        first["written"],
        json!(["code-review", "implement-feature", "update-dependencies"])
    );
    assert_eq!(first["kept"], json!(["fix-bug", "refactor"]));
    assert_eq!(fs::read_to_string(&path).unwrap(), mine);
    assert_eq!(env.json(&["loop", "init"])["written"], json!([]));
    let list = env.json(&["loop", "list"]);
    assert_eq!(list["faults"], json!([]));
    assert_eq!(list["loops"].as_array().unwrap().len(), 5);
    env.kapi(&["loop", "init", "nothing"])
        .assert_error(6, &["there is no built-in loop"]);
}
