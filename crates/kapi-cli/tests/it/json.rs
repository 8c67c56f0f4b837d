//! What scripts rely on: every document, every stream, its fields, and help.

use std::fs;

use serde_json::{Value, json};

use crate::environment::{BRANCH, Environment, FIRST};
use crate::program::{Output, Run};

const HONEST: &str = "command:echo 42 > answer.txt";

#[test]
fn a_run_prints_every_event_and_ends_with_the_result() {
    let env = Environment::new();
    let run = env.run(HONEST, &[]);
    run.assert_status("done", 0);
    let events: Vec<&Value> = run
        .lines
        .iter()
        .filter(|line| line["seq"].is_u64())
        .collect();
    let fields = ["type", "data", "goal", "seq", "at_ms", "actor"];
    for event in &events {
        assert_has(event, &fields);
        assert_eq!(event["goal"], FIRST);
    }
    let printed: Vec<&Value> = events.iter().map(|event| &event["seq"]).collect();
    let log = env.events(FIRST);
    let recorded: Vec<&Value> = log.iter().map(|record| &record["seq"]).collect();
    assert_eq!(printed, recorded, "from the first to the last");
    for record in &log {
        assert_has(
            record,
            &["v", "seq", "at", "id", "type", "actor", "data", "prev"],
        );
    }
    for line in run.lines.iter().filter(|line| line["type"] == "activity") {
        assert_has(line, &["goal", "kind"]);
    }
    let approved = run.events("contract_approved");
    assert_eq!(approved[0]["means"], "yes_flag");
    assert_result(&run.result);
    assert_eq!(
        run.result["next"],
        json!(["kapi diff 001", format!("git merge {BRANCH}")])
    );
}

#[test]
fn a_resume_prints_what_it_recorded_and_ends_with_the_result() {
    let env = Environment::new();
    let agent = "command:[ $KAPI_TURN = 1 ] || echo 42 > answer.txt";
    env.run(agent, &["--turns", "1"]);
    env.kapi(&["budget", "1", "--turns", "+1"]);
    let before = env.events(FIRST).len();
    let run = env.resume("1");
    run.assert_status("done", 0);
    let seqs: Vec<u64> = run
        .lines
        .iter()
        .filter_map(|line| line["seq"].as_u64())
        .collect();
    let expected: Vec<u64> = (before + 1..=env.events(FIRST).len())
        .map(|seq| seq as u64)
        .collect();
    assert_eq!(seqs, expected);
    assert_eq!(run.lines[0]["type"], "goal_resumed");
}

#[test]
fn every_command_prints_one_document_with_its_fields() {
    let env = Environment::new();
    let run = env.run("command:echo 1 > one.txt", &["--turns", "1"]);
    let status = env.json(&["status"]);
    let row = &status["goals"][0];
    assert_has(
        row,
        &[
            "id", "status", "driver", "branch", "worktree", "updated", "fault", "sandbox",
        ],
    );
    assert_eq!(row["id"], FIRST);
    let shown = env.json(&["show", "1"]);
    assert_has(&shown, &["contract", "contract_hash", "approval", "driver"]);
    assert_eq!(shown["type"], "goal");
    for field in [
        "id",
        "status",
        "branch",
        "candidate",
        "usage",
        "verify",
        "reason",
        "next",
    ] {
        assert_eq!(shown[field], run.result[field], "{field}");
    }
    let diff = env.json(&["diff", "1"]);
    assert_has(&diff, &["id", "base", "commit", "proved", "patch"]);
    assert_eq!(diff["proved"], false);
    assert!(
        diff["patch"].as_str().unwrap().contains("+++ b/one.txt"),
        "{diff}"
    );
    let budget = env.json(&["budget", "1", "--turns", "+1"]);
    assert_has(&budget, &["id", "budget", "spent"]);
    for part in ["budget", "spent"] {
        assert_has(&budget[part], &["turns", "tokens", "usd_micros", "wall_ms"]);
    }
    let audit = env.json(&["audit"]);
    assert_eq!(audit["ok"], true);
    assert_has(
        &audit["goals"][0],
        &[
            "id",
            "file",
            "events",
            "ok",
            "torn_bytes",
            "faults",
            "stale",
        ],
    );
    assert_eq!(env.json(&["audit", "1"]), audit);
    let cancelled = env.json(&["cancel", "1"]);
    assert_result(&cancelled);
    assert_eq!(cancelled["status"], "cancelled");
    let log = env.kapi(&["log", "1", "--json"]);
    assert_eq!(log.stdout.lines().count(), env.events(FIRST).len());
    let nothing = Environment::new();
    let empty = json!({
        "attached": null, "cleanup": [], "goals": [], "health": [], "launches": [], "session": null,
        "waiting": 0, "workflows": [],
    });
    assert_eq!(nothing.json(&["status"]), empty);
}

#[test]
fn the_doctor_looks_at_everything_and_says_what_to_do() {
    let env = Environment::new();
    let output = env.kapi(&["doctor", "--json"]);
    let report = output.document();
    assert_eq!(
        (output.code, &report["ok"]),
        (0, &json!(true)),
        "{report:#}"
    );
    let checks = report["checks"].as_array().unwrap();
    for check in checks {
        assert_has(check, &["name", "ok", "required", "detail", "hint"]);
        assert!(check["ok"] == true || !check["hint"].is_null(), "{check}");
    }
    let names: Vec<&str> = checks
        .iter()
        .map(|check| check["name"].as_str().unwrap())
        .collect();
    for name in [
        "git",
        "agent: claude",
        "agent: codex",
        "agent: gemini",
        "agent: pi",
        "configuration",
    ] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    assert!(
        names.iter().any(|name| name.starts_with("sandbox")),
        "{names:?}"
    );
    let mut poor = Environment::new();
    poor.set("PATH", "/nonexistent");
    let output = poor.kapi(&["doctor"]);
    assert_eq!(output.code, 4);
    assert!(output.stdout.contains("FAILED   git"), "{output:?}");
}

#[test]
fn references_are_an_index_a_slug_or_both() {
    let env = Environment::new();
    env.run("command:true", &["--turns", "1"]);
    for reference in ["1", "001", "make-answer-right", FIRST] {
        assert_eq!(env.json(&["show", reference])["id"], FIRST);
    }
    // From a directory below the top as well.
    fs::create_dir_all(env.repository().join("deep/er")).unwrap();
    let output = env.kapi_in(&env.repository().join("deep/er"), &["show", "1", "--json"]);
    assert_eq!(output.document()["id"], FIRST);
}

#[test]
fn configuration_gives_what_no_flag_says() {
    let env = Environment::new();
    env.configure("[goal]\nturns = 2\nagent = \"command:true\"\nverify = [\"sh test.sh\"]\n");
    env.write(
        ".ilchul/config.toml",
        "[goal]\nturns = 1\ntype = \"docs\"\n",
    );
    let run = Run::from(env.kapi(&["run", "write manual", "--yes", "--json"]));
    run.assert_status("paused", 5);
    assert_eq!(run.result["turns"], 1, "the project's smaller limit");
    assert_eq!(run.result["branch"], "docs/goal-write-manual");
    let run = Run::from(env.kapi(&["run", "write manual", "--yes", "--json", "--turns", "2"]));
    assert_eq!(run.result["turns"], 2, "the flag over both");
}

#[test]
fn a_project_only_narrows_what_the_person_allows() {
    let env = Environment::new();
    env.configure(
        "[goal]\nturns = 1\nwall = \"10m\"\nagent = \"command:true\"\njudge = \"command:true\"\n\
         protect = [\"answer.txt\"]\nverify = [\"sh test.sh\"]\n",
    );
    env.write(
        ".ilchul/config.toml",
        "[goal]\nturns = 5000\nwall = \"900h\"\njudge = \"none\"\nprotect = []\n",
    );
    Run::from(env.kapi(&["run", "try it", "--yes", "--json"])).assert_status("paused", 5);
    let contract = &env.json(&["show", "1"])["contract"];
    assert_eq!(contract["budget"]["turns"], 1);
    assert_eq!(contract["budget"]["wall_ms"], 600_000);
    assert_eq!(contract["judge"]["by"], "same");
    let protected = contract["protect"].as_array().unwrap();
    assert!(protected.contains(&"answer.txt".into()), "{protected:?}");
    env.write(".ilchul/config.toml", "[goal]\nagent = \"command:evil\"\n");
    let output = env.kapi(&["run", "try it", "--yes"]);
    output.assert_error(2, &["agent", "config.toml"]);
}

#[test]
fn an_isolation_of_none_is_shown_everywhere() {
    let env = Environment::new();
    let run = env.run("command:true", &["--turns", "1", "--sandbox", "none"]);
    assert!(run.stderr.contains("note: NO ISOLATION"), "{}", run.stderr);
    assert_eq!(env.json(&["show", "1"])["contract"]["sandbox"], "none");
    assert_eq!(env.json(&["status"])["goals"][0]["sandbox"], "none");
    for command in [&["show", "1"][..], &["status"]] {
        let shown = env.kapi(command).stdout;
        assert!(
            shown.to_lowercase().contains("no isolation"),
            "{command:?}: {shown}"
        );
    }
}

#[test]
fn help_explains_every_command_and_option() {
    let env = Environment::new();
    let help = env.kapi(&["--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (0, ""));
    let headings = [
        "Start work:",
        "Look and steer:",
        "Maintain:",
        "For programs:",
    ];
    let commands: Vec<String> = headings
        .iter()
        .flat_map(|heading| section(&help, heading))
        .collect();
    assert_eq!(commands.len(), 39, "{commands:?}");
    for line in &commands {
        let (name, about) = line
            .trim()
            .split_once("  ")
            .unwrap_or_else(|| panic!("{line:?}"));
        assert!(
            !about.trim().is_empty() && !about.ends_with('.'),
            "{line:?}"
        );
        let help = env.kapi(&[name, "-h"]);
        assert_eq!((help.code, help.stderr.as_str()), (0, ""), "{name}");
        assert!(help.stdout.starts_with(about.trim()), "{help:?}");
        for option in section(&help, "Options:") {
            let option = option.trim_start();
            let is_bare = option.starts_with('-') && !option.contains("  ");
            assert!(!is_bare, "{name} has an option without help: {option}");
        }
    }
    let version = env.kapi(&["--version"]);
    assert_eq!(
        version.stdout,
        concat!("kapi ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let env = Environment::new();
    env.run("command:true", &["--turns", "1"]);
    let shell = format!("{} log 1 --json | head -n 1", env!("CARGO_BIN_EXE_kapi"));
    let mut command = env.command("sh", &env.repository());
    command.args(["-c", &shell]);
    let output = crate::program::finish(command);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert_eq!(output.stdout.lines().count(), 1);
}

/// Returns the lines of a section of a help text.
fn section(help: &Output, title: &str) -> Vec<String> {
    let lines = help
        .stdout
        .lines()
        .skip_while(|line| *line != title)
        .skip(1);
    lines
        .take_while(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

fn assert_result(result: &Value) {
    assert_has(
        result,
        &[
            "type",
            "id",
            "status",
            "branch",
            "commit",
            "candidate",
            "worktree",
            "turns",
            "usage",
            "wall_ms",
            "verify",
            "tampered",
            "judge",
            "reason",
            "next",
        ],
    );
    assert_eq!(result["type"], "result");
    assert_has(&result["usage"], &["input_tokens", "output_tokens", "usd"]);
    let check_fields = [
        "command",
        "exit_code",
        "tree",
        "hidden",
        "timed_out",
        "duration_ms",
        "output_tail",
    ];
    for check in result["verify"].as_array().unwrap() {
        assert_has(check, &check_fields);
    }
}

fn assert_has(value: &Value, fields: &[&str]) {
    let object = value.as_object().unwrap();
    for field in fields {
        assert!(object.contains_key(*field), "{field} in {value:#}");
    }
}
