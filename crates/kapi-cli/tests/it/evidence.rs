//! What a run left behind is part of the record: whoever alters, cuts or removes it is found out, and
//! a branch that was moved is never offered as proved.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::environment::{BRANCH, Environment, FIRST, TASK, write};
use crate::parking::{TWICE, working};

const RIGHT: &str = "command:echo 42 > answer.txt";

fn done() -> Environment {
    let env = Environment::new();
    env.run(RIGHT, &[]).assert_status("done", 0);
    env
}

fn runs(env: &Environment) -> PathBuf {
    env.repository().join(".ilchul/runs")
}

/// Returns the file of this name of the first run that has one.
fn run_file(env: &Environment, name: &str) -> PathBuf {
    let dirs = fs::read_dir(runs(env)).unwrap();
    let paths = dirs.map(|dir| dir.unwrap().path().join(name));
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    paths.sort();
    paths.first().unwrap().clone()
}

fn faults(report: &Value) -> String {
    report["goals"][0]["faults"].to_string()
}

fn flip_first_byte(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    bytes[0] ^= 1;
    write(path, bytes);
}

#[test]
fn an_audit_finds_what_was_done_to_the_files_of_a_run() {
    let env = done();
    assert_eq!(env.kapi(&["audit"]).code, 0);
    for (name, is_cut, reported) in [
        ("prompt.md", false, "altered"),
        ("verify-1.log", false, "altered"),
        ("prompt.md", true, "shorter"),
    ] {
        let path = run_file(&env, name);
        let whole = fs::read(&path).unwrap();
        if is_cut {
            write(&path, &whole[..whole.len() - 1]);
        } else {
            flip_first_byte(&path);
        }
        let output = env.kapi(&["audit", "--json"]);
        let found = faults(&output.document());
        assert_eq!(output.code, 4, "{name}");
        assert!(found.contains(name) && found.contains(reported), "{found}");
        write(&path, &whole);
        assert_eq!(env.kapi(&["audit"]).code, 0, "{name}");
    }
    fs::remove_dir_all(runs(&env)).unwrap();
    let output = env.kapi(&["audit", "--json"]);
    let found = faults(&output.document());
    assert_eq!(output.code, 4);
    assert!(found.contains("missing"), "{found}");
}

#[test]
fn what_an_audit_found_stays_in_sight_until_it_is_mended() {
    let env = done();
    let path = run_file(&env, "prompt.md");
    let whole = fs::read(&path).unwrap();
    flip_first_byte(&path);
    // Whoever looks at the goal itself is told at once.
    let shown = env.kapi(&["show", "1"]);
    assert!(shown.stdout.contains("DAMAGED"), "{shown:?}");
    assert!(!shown.stdout.contains("git merge"), "{shown:?}");
    assert_eq!(env.kapi(&["audit"]).code, 4);
    let status = env.kapi(&["status"]);
    assert!(status.stdout.contains("prompt.md"), "{status:?}");
    let row = &env.json(&["status"])["goals"][0];
    assert_eq!(row["damage"].as_array().unwrap().len(), 1);
    let inbox = env.kapi(&["inbox", "--list"]);
    assert!(inbox.stdout.contains("prompt.md"), "{inbox:?}");
    write(&path, &whole);
    assert_eq!(env.kapi(&["audit"]).code, 0);
    assert_eq!(
        env.json(&["status"])["goals"][0]["damage"],
        Value::Array(Vec::new())
    );
}

#[test]
fn hidden_checks_and_the_spend_ledger_are_audited() {
    let env = Environment::new();
    let hidden = env.root().join("hidden");
    write(&hidden.join("test.sh"), crate::environment::TEST_SH);
    let hidden = hidden.display().to_string();
    env.run(RIGHT, &["--hidden", &hidden])
        .assert_status("done", 0);
    assert_eq!(env.kapi(&["audit"]).code, 0);
    let ledger = env.home().join(".ilchul/spend/events.jsonl");
    let whole = fs::read(&ledger).unwrap();
    flip_first_byte(&ledger);
    let output = env.kapi(&["audit", "--json"]);
    assert_eq!(output.code, 4);
    assert_eq!(output.document()["spend"]["ok"], false);
    write(&ledger, &whole);
    assert_eq!(env.kapi(&["audit"]).code, 0);
}

#[test]
fn a_branch_that_was_moved_is_never_offered_as_proved() {
    let env = done();
    let proved = env.commit_of(BRANCH);
    let base = env.commit_of("main");
    assert!(
        env.kapi(&["show", "1"])
            .stdout
            .contains(&format!("git merge {BRANCH}"))
    );
    let name = format!("refs/heads/{BRANCH}");
    env.git(&["update-ref", &name, "main"]);
    let shown = env.kapi(&["show", "1"]);
    assert!(shown.stdout.contains(&proved[..10]), "{shown:?}");
    assert!(shown.stdout.contains(&base[..10]), "{shown:?}");
    assert!(
        shown.stdout.contains(&format!("git merge {proved}")),
        "{shown:?}"
    );
    assert!(
        !shown.stdout.contains(&format!("git merge {BRANCH}")),
        "{shown:?}"
    );
    let view = env.json(&["show", "1"]);
    assert_eq!(view["moved_branch"]["kind"], "moved");
    assert_eq!(view["moved_branch"]["found"], base.as_str());
    assert_eq!(
        env.json(&["status"])["goals"][0]["moved_branch"]["kind"],
        "moved"
    );
    let status = env.kapi(&["status"]);
    assert!(status.stdout.contains(&proved[..10]), "{status:?}");
    for command in ["diff", "log"] {
        let output = env.kapi(&[command, "1"]);
        assert!(
            output.stderr.contains(&proved[..10]),
            "{command}: {output:?}"
        );
    }
    env.git(&["update-ref", "-d", &name]);
    let view = env.json(&["show", "1"]);
    assert_eq!(view["moved_branch"]["kind"], "deleted");
    let offer = format!("git branch {BRANCH} {proved}");
    assert!(view["next"].to_string().contains(&offer), "{view}");
    // Work of one's own on top contains what was proved.
    let tree = format!("{proved}^{{tree}}");
    let mine = env.git(&["commit-tree", &tree, "-p", &proved, "-m", "mine"]);
    env.git(&["update-ref", &name, &mine]);
    assert_eq!(env.json(&["show", "1"])["moved_branch"]["kind"], "ahead");
}

#[test]
fn the_runs_of_a_task_are_audited() {
    let env = Environment::new();
    let ran = env.kapi(&["task", "run", TASK, "--agent", RIGHT]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(env.kapi(&["audit"]).code, 0);
    let output = env.json(&["audit"]);
    assert_eq!(output["kernel"]["ok"], true, "{output}");
    let sandboxes = env.home().join(".ilchul/sandboxes");
    let keys = fs::read_dir(&sandboxes)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let sandbox = keys
        .filter(|path| path.is_dir())
        .flat_map(|path| fs::read_dir(path).unwrap())
        .map(|entry| entry.unwrap())
        .find(|entry| entry.file_name().to_string_lossy().starts_with("task_"))
        .unwrap();
    let runs = sandbox.path().join("runs");
    let prompt = runs.join("1/prompt.md");
    flip_first_byte(&prompt);
    let output = env.kapi(&["audit", "--json"]);
    let found = output.document()["kernel"]["faults"].to_string();
    assert_eq!(output.code, 4, "{output:?}");
    assert!(found.contains("prompt.md"), "{found}");
    flip_first_byte(&prompt);
    assert_eq!(env.kapi(&["audit"]).code, 0);
    fs::remove_dir_all(&runs).unwrap();
    assert_eq!(env.kapi(&["audit"]).code, 4, "lost");
}

#[test]
fn a_run_that_is_repeated_after_a_kill_does_not_contradict_the_log() {
    let env = Environment::new();
    working(&env, TWICE, &[]).kill();
    assert_eq!(env.kapi(&["audit"]).code, 0);
    env.resume("1").assert_status("done", 0);
    assert_eq!(env.kapi(&["audit"]).code, 0);
    let recorded = env.events(FIRST);
    let recorded = recorded
        .iter()
        .filter(|event| event["type"] == "run_recorded");
    assert!(
        recorded.count() >= 2,
        "the agent's run and the verification"
    );
}
