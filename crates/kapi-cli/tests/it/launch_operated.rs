//! Launches operated like goals: their log, limits, listings, resuming, and the truth after a kill.
//!
//! Agents are shell commands and scripts; sandboxes, git and processes are real.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::containers::Containers;
use crate::environment::{Environment, await_some, write};
use crate::launch::launch;
use crate::program::parse;

/// Returns the directory of a launch's sandbox.
fn sandbox(env: &Environment, id: &str) -> PathBuf {
    let projects = fs::read_dir(env.home().join(".ilchul/sandboxes")).unwrap();
    let mut dirs = projects.map(|project| project.unwrap().path().join(id));
    dirs.find(|dir| dir.join("sandbox.json").is_file()).unwrap()
}

/// Returns the one status file there is.
fn status_file(env: &Environment) -> Value {
    let listed = fs::read_dir(env.home().join(".ilchul/status")).unwrap();
    let mut files = listed.map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.is_file()).unwrap();
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// Launches an agent that never ends and kills the process that launched it.
fn killed(env: &Environment, id: &str, options: &[&str]) {
    let project = env.repository().display().to_string();
    let agent = "command:if [ -e began ]; then cat > answer.txt; exit 0; fi; touch began; \
                 while :; do sleep 0.05; done";
    let fixed = [
        "launch",
        id,
        &project,
        "--task",
        "make it right",
        "--agent",
        agent,
        "--json",
    ];
    let running = env.start(&[&fixed, options].concat());
    await_some("the agent's file", || {
        let found = env.kapi(&["sandbox", "list", "--json"]).document();
        let dir = PathBuf::from(found.get(0)?["sandbox"].as_str()?);
        dir.join("layer/upper/began").exists().then_some(())
    });
    running.kill();
    env.await_no_process();
}

#[test]
fn status_and_inbox_tell_of_a_launch_whose_process_was_killed_and_resume_goes_on() {
    let env = Environment::new();
    killed(&env, "1", &["--branch", "b"]);
    let before = status_file(&env);
    assert_ne!(before["phase"], "complete", "{before:#}");
    let status = env.json(&["status"]);
    let row = &status["launches"][0];
    assert_eq!(row["status"], "stopped", "{status:#}");
    assert_eq!(row["task"], "make it right", "{status:#}");
    assert_eq!(status["waiting"], 1, "{status:#}");
    // Tools that poll are told as well from then on.
    let after = status_file(&env);
    assert_eq!(after["phase"], "complete", "{after:#}");
    assert_eq!(after["exit_code"], 137, "{after:#}");
    assert_eq!(after["error_class"], "kapi", "{after:#}");
    assert_eq!(after["heartbeat_at"], before["heartbeat_at"]);
    let human = env.kapi(&["status"]).stdout;
    assert!(human.contains("launch/1  stopped"), "{human}");
    let inbox = env.json(&["inbox"]);
    assert_eq!(inbox["items"][0]["kind"], "launch_stopped", "{inbox:#}");
    assert_eq!(inbox["items"][0]["yes"], "kapi resume launch/1");

    let resumed = env.kapi(&["resume", "launch/1", "--json"]);
    let document = resumed.document();
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_eq!(document["launches"], 2, "{document:#}");
    let told = env.show("b", "answer.txt");
    assert!(told.starts_with("make it right"), "{told}");
    assert!(
        told.contains("earlier attempt at this task was cut off"),
        "{told}"
    );
    let status = env.json(&["status"]);
    assert_eq!(status["launches"][0]["status"], "finished", "{status:#}");
    assert_eq!(status["waiting"], 0, "{status:#}");
    assert_eq!(env.json(&["inbox"]), json!({"items": []}));
    let again = env.kapi(&["resume", "launch/1", "--json"]);
    again.assert_error(3, &["has ended well", "kapi launch 1"]);
}

#[test]
fn what_failed_or_is_not_merged_waits_for_the_person() {
    let env = Environment::new();
    launch(&env, "1", "exit 3", &["--branch", "b"]);
    launch(&env, "2", "echo x > new.txt", &[]);
    launch(&env, "3", "true", &[]);
    let inbox = env.json(&["inbox"]);
    let kinds = |items: &Value| -> Vec<String> {
        let items = items["items"].as_array().unwrap().iter();
        let told = items.map(|item| {
            format!(
                "{} {} {}",
                item["kind"].as_str().unwrap(),
                item["subject"].as_str().unwrap(),
                item["yes"].as_str().unwrap()
            )
        });
        told.collect()
    };
    assert_eq!(
        kinds(&inbox),
        [
            "launch_failed launch/1 kapi resume launch/1",
            "launch_unmerged launch/2 kapi sandbox merge launch/2"
        ]
    );
    let status = env.json(&["status"]);
    let rows = status["launches"].as_array().unwrap().iter();
    let told: Vec<Value> = rows
        .map(|row| json!([row["id"], row["status"], row["waits"], row["error_class"]]))
        .collect();
    assert_eq!(
        told,
        [
            json!(["1", "failed", true, "agent"]),
            json!(["2", "finished", true, null]),
            json!(["3", "finished", false, null])
        ]
    );
    let human = env.kapi(&["status"]);
    assert!(
        human.stdout.contains("launch/1  failed, exit code 103"),
        "{human:?}"
    );
    assert!(
        human.stdout.contains("launch/2  finished, not merged"),
        "{human:?}"
    );
    assert!(!human.stdout.contains("launch/3"), "{human:?}");
    assert!(human.stderr.contains("1 ended launch"), "{human:?}");
    assert_eq!(env.kapi(&["sandbox", "merge", "launch/2"]).code, 0);
    assert_eq!(kinds(&env.json(&["inbox"])).len(), 1);
}

/// Returns what an audit says of a launch, and how it ended.
fn audited(env: &Environment, id: &str) -> (bool, String, i32) {
    let output = env.kapi(&["audit", &format!("launch/{id}"), "--json"]);
    let row = &output.document()["launches"][0];
    let is_whole = row["ok"].as_bool().unwrap();
    (is_whole, row["faults"].to_string(), output.code)
}

#[test]
fn the_log_of_a_launch_is_chained_and_an_audit_finds_what_was_altered() {
    let env = Environment::new();
    launch(
        &env,
        "1",
        "echo said; echo 42 > answer.txt",
        &["--branch", "b"],
    );
    let exec = env.kapi(&["sandbox", "exec", "1", "--", "true"]);
    assert_eq!(exec.code, 0, "{exec:?}");
    let dir = sandbox(&env, "1");
    assert_eq!(audited(&env, "1"), (true, "[]".to_owned(), 0));
    let whole = env.json(&["audit"]);
    assert_eq!(whole["launches"][0]["id"], "launch/1", "{whole:#}");
    assert_eq!(whole["launches"][0]["events"], 7, "{whole:#}");
    let log = fs::read_to_string(dir.join("events.jsonl")).unwrap();
    let record = fs::read_to_string(dir.join("sandbox.json")).unwrap();
    let transcript = dir.join("runs/1/transcript.jsonl");
    let said = fs::read_to_string(&transcript).unwrap();

    // A line of the log, its end, what follows from it, and what an agent said.
    write(
        &dir.join("events.jsonl"),
        log.replace("make the answer", "break the answer"),
    );
    let (is_whole, faults, code) = audited(&env, "1");
    assert!(
        !is_whole && code == 4 && faults.contains("was changed"),
        "{faults}"
    );
    launch(&env, "1", "true", &["--branch", "b"]).assert_error(4, &["events.jsonl", "line 1"]);
    let status = env.json(&["status"]);
    let fault = status["launches"][0]["fault"].as_str().unwrap();
    assert!(fault.contains("events.jsonl at line 1"), "{fault}");
    assert_eq!(status["waiting"], 1, "{status:#}");
    write(&dir.join("events.jsonl"), &log);
    write(
        &dir.join("sandbox.json"),
        record.replace("\"id\": \"1\"", "\"id\": \"2\""),
    );
    let (is_whole, faults, _) = audited(&env, "1");
    assert!(
        !is_whole && faults.contains("does not match the log"),
        "{faults}"
    );
    launch(&env, "1", "true", &["--branch", "b"])
        .assert_error(4, &["sandbox.json", "does not match the log"]);
    write(&dir.join("sandbox.json"), &record);
    write(&transcript, said.replace("said", "lied"));
    let (is_whole, faults, _) = audited(&env, "1");
    assert!(
        !is_whole && faults.contains("its content was altered"),
        "{faults}"
    );
    write(&transcript, said);
    assert_eq!(audited(&env, "1"), (true, "[]".to_owned(), 0));
    // A power cut between the log and what follows from it is mended by the next launch.
    fs::remove_file(dir.join("sandbox.json")).unwrap();
    assert_eq!(launch(&env, "1", "true", &["--branch", "b"]).code, 0);
    assert_eq!(audited(&env, "1"), (true, "[]".to_owned(), 0));
}

#[test]
fn a_log_that_was_cut_short_does_not_match_what_followed_from_it() {
    let env = Environment::new();
    launch(&env, "1", "echo 42 > answer.txt", &[]);
    let dir = sandbox(&env, "1");
    let log = fs::read_to_string(dir.join("events.jsonl")).unwrap();
    let first = log.lines().next().unwrap();
    write(&dir.join("events.jsonl"), format!("{first}\n"));
    let (is_whole, faults, code) = audited(&env, "1");
    assert!(!is_whole && code == 4, "{faults}");
    assert!(faults.contains("sandbox.json"), "{faults}");
}

#[test]
fn logs_that_a_person_has_removed_are_not_missed() {
    let env = Environment::new();
    launch(&env, "1", "echo x > new.txt", &[]);
    let cleaned = env.kapi(&["cleanup", "--logs", "--yes"]);
    assert_eq!(cleaned.code, 0, "{cleaned:?}");
    assert!(!sandbox(&env, "1").join("runs").exists());
    assert_eq!(audited(&env, "1"), (true, "[]".to_owned(), 0));
}

#[test]
fn a_launch_is_ended_at_its_own_limits() {
    let env = Environment::new();
    let steps = "turns:\n  - steps:\n      - bash: touch began\n      - usage: {input_tokens: 900, output_tokens: 100, \
                 usd: 0.5}\n      - usage: {input_tokens: 900, output_tokens: 100, usd: 0.5}\n      \
                 - bash: sleep 3000\n";
    let agent = env.script("dear.yaml", steps);
    for (id, limit, said) in [
        ("1", ["--tokens", "1500"], "it used 2000 of 1500 tokens"),
        ("2", ["--usd", "0.75"], "it used $1.00 of $0.75"),
    ] {
        let fixed = [
            "launch", id, ".", "--task", "t", "--agent", &agent, "--branch", id, "--json",
        ];
        let output = env.kapi(&[&fixed, &limit[..]].concat());
        let document = output.document();
        assert_eq!(output.code, 5, "{output:?}");
        let error = document["error"].as_str().unwrap();
        assert!(
            error.contains("at its limit") && error.contains(said),
            "{error}"
        );
        assert_eq!(env.show(id, "began"), "", "its work is kept");
        let shown = env.json(&["show", &format!("launch/{id}")]);
        assert_eq!(shown["error_class"], "limit", "{shown:#}");
        let budget = env.json(&["budget", &format!("launch/{id}")]);
        let limits = &budget["budget"];
        assert!(
            limits["tokens"] == 1500 || limits["usd_micros"] == 750_000,
            "{budget:#}"
        );
    }
    env.await_no_process();
    // The same limit is kept when it is resumed, unless it is raised.
    let resumed = env.kapi(&["resume", "launch/1", "--json"]);
    assert_eq!(resumed.code, 5, "{resumed:?}");
    let refused = env.kapi(&["resume", "launch/1", "--turns", "+1", "--json"]);
    refused.assert_error(2, &["a launch has no `--turns`"]);
}

#[test]
fn the_log_of_a_launch_has_its_events_around_what_its_agent_said() {
    let env = Environment::new();
    launch(&env, "1", "echo one", &["--branch", "b"]);
    launch(&env, "1", "echo two", &["--branch", "b"]);
    let logged = env.kapi(&["log", "launch/1", "--json"]);
    let types: Vec<String> = logged
        .stdout
        .lines()
        .map(|line| parse(line)["type"].as_str().unwrap().to_owned())
        .collect();
    let mut around: Vec<&str> = types.iter().map(String::as_str).collect();
    around.dedup();
    assert_eq!(
        around,
        [
            "launched",
            "transcript",
            "run_recorded",
            "agent_ended",
            "ended",
            "launched",
            "transcript",
            "run_recorded",
            "agent_ended",
            "ended"
        ],
        "{logged:?}"
    );
    let only = env.kapi(&["log", "launch/1", "--transcript", "--json"]);
    let mut only = only.stdout.lines().map(parse);
    assert!(only.all(|line| line["type"] == "transcript"));
}

#[test]
fn a_text_that_both_sides_changed_counts_as_taken_over_once_it_is_merged() {
    let env = Environment::new();
    env.write("long.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    env.commit_all("long");
    launch(&env, "1", "sed -i s/1/one/ long.txt; echo x > new.txt", &[]);
    env.write("long.txt", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    let some = env.json(&["sandbox", "merge", "1", "long.txt"]);
    assert_eq!(some["applied"], true, "{some:#}");
    assert_eq!(env.read("long.txt"), "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    let left = env.json(&["diff", "launch/1"]);
    assert_eq!(left["changed"].as_array().unwrap().len(), 1, "{left:#}");
    assert_eq!(left["changed"][0]["path"], "new.txt", "{left:#}");
    env.json(&["sandbox", "merge", "1"]);
    env.commit_all("merged");
    let listed = env.json(&["sandbox", "list"]);
    assert_eq!(listed[0]["changed"], 0, "{listed:#}");
    assert_eq!(env.json(&["inbox"]), json!({"items": []}));
    assert_eq!(audited(&env, "1"), (true, "[]".to_owned(), 0));
}

#[test]
fn a_command_in_a_container_is_looked_up_inside() {
    let mut env = Environment::new();
    let _containers = Containers::new(&mut env);
    let launched = launch(&env, "1", "echo x > new.txt", &["--sandbox", "podman"]);
    assert_eq!(launched.code, 0, "{launched:?}");
    // The host has no such program on its path.
    let exec = [
        "sandbox", "exec", "1", "--", "ash", "-c", "cat $0", "new.txt",
    ];
    let output = env.kapi(&exec);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "x\n"),
        "{output:?}"
    );
    let missing = env.kapi(&["sandbox", "exec", "1", "--", "no-such-program"]);
    assert_eq!(missing.code, 127, "{missing:?}");
}

#[test]
fn the_person_is_the_author_of_what_a_launch_commits() {
    let mut env = Environment::new();
    let included = env.root().join("who");
    let person = "[user]\n\tname = Ada Person\n\temail = ada@example.org\n";
    write(&included, person);
    env.git(&["config", "include.path", &included.display().to_string()]);
    let author =
        |env: &Environment, branch: &str| env.git(&["log", "-1", "--format=%an <%ae> %cn", branch]);
    launch(&env, "1", "echo 42 > answer.txt", &["--branch", "b"]);
    assert_eq!(author(&env, "b"), "Ada Person <ada@example.org> Ada Person");
    env.set("GIT_AUTHOR_NAME", "Eve Person");
    launch(&env, "2", "echo 42 > answer.txt", &["--branch", "c"]);
    assert_eq!(author(&env, "c"), "Eve Person <ada@example.org> Eve Person");
}

#[test]
fn nothing_is_kept_of_a_launch_that_changed_nothing() {
    let env = Environment::new();
    launch(&env, "1", "true", &["--branch", "b"]);
    let listed = env.kapi(&["sandbox", "list"]).stdout;
    let (_, row) = listed.split_once('\n').unwrap();
    assert!(
        listed.contains("FILES") && row.contains(" layer "),
        "{listed}"
    );
    let gone = env.json(&["sandbox", "discard", "1", "--yes"]);
    assert_eq!(gone["kept"], json!([]), "{gone:#}");
    assert_eq!(env.git(&["for-each-ref", "refs/kapi/rescue"]), "");
}
