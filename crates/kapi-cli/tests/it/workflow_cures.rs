//! Builds that agents bring to a stop: work that was done already, and turns that are used up.
//!
//! What helps is one command, and where the workflow is shown it is named.

use std::fs;

use kapi_sys::lock::Lock;

use crate::environment::write;
use crate::program::Output;
use crate::workflow_support::{AGENT, Machine};

const WORDS: &[&str] = &["greet", "people"];
const AT_ONCE: &[&str] = &["--unlinked", "--approve-plan", "auto"];

/// Returns the usual agent with something of it in other words.
fn agent_with(changes: &[[&str; 2]]) -> Machine {
    let mut agent = AGENT.to_owned();
    for [from, to] in changes {
        assert!(agent.contains(from), "{from}");
        agent = agent.replace(from, to);
    }
    Machine::with_agent(&agent)
}

fn resume(machine: &Machine, options: &[&str]) -> Output {
    let words = [&["ralph", "resume", "1"], options].concat();
    machine.env.kapi(&words)
}

#[test]
fn a_task_whose_work_another_one_did_is_done_with_evidence() {
    let machine = agent_with(&[
        [
            r#"{path: word.txt, content: "helo\n"}}, {claim"#,
            r#"{path: word.txt, content: "hello\n"}}, {bash: "echo sh greet.sh NAME > MANUAL"}, {claim"#,
        ],
        [
            r#"steps: [{write: {path: MANUAL, content: "sh greet.sh NAME\n"}}, {claim"#,
            r#"steps: [{say: It is there already.}, {claim"#,
        ],
        [
            "touches: [MANUAL], isolation",
            "depends_on: [T-001], touches: [MANUAL], isolation",
        ],
    ]);
    let held = machine.ralph(WORDS, AT_ONCE);
    assert_eq!(held.code, 5, "{held:?}");
    let named = "changes paths that the plan does not assign to it: MANUAL";
    assert!(held.stdout.contains(named), "{held:?}");
    let branch = "feat/ralph-greet-people";
    assert_eq!(
        machine.env.commit_of(branch),
        machine.env.commit_of("main"),
        "nothing landed before a person's word"
    );
    let inbox = machine.env.json(&["inbox"])["items"][0].clone();
    assert_eq!(inbox["yes"], "kapi ralph resume 001 --allow-paths");
    let done = resume(&machine, &["--allow-paths"]);
    assert_eq!(done.code, 0, "{done:?}");
    let said = "T-002 is already done: its checks pass on";
    assert!(done.stderr.contains(said), "{done:?}");
    let evidence = machine.env.json(&["status", "1"])["evidence"].clone();
    let mut evidence = evidence.as_array().unwrap().iter();
    let found = evidence.find(|it| {
        it["summary"]
            .as_str()
            .unwrap()
            .starts_with("T-002 needed no")
    });
    let found = found.unwrap_or_else(|| panic!("{done:?}"));
    assert_eq!(found["weight"], "validation");
    assert_eq!(found["kind"], "goal");
}

#[test]
fn a_task_out_of_turns_goes_on_by_the_one_command_that_is_named() {
    // The first turn does nothing of use, and the second what is asked for.
    let machine = agent_with(&[
        [
            r#"      - steps: [{write: {path: word.txt, content: "helo\n"}}, {claim: done}]"#,
            "      - steps: [{write: {path: other.txt, content: \"x\\n\"}}]\n      \
             - steps: [{write: {path: word.txt, content: \"helo\\n\"}}, {claim: done}]",
        ],
        ["touches: [word.txt]", "touches: [word.txt, other.txt]"],
    ]);
    let blocked = machine.ralph(WORDS, &[AT_ONCE, &["--turns", "1"]].concat());
    assert_eq!(blocked.code, 5, "{blocked:?}");
    let cure = "kapi ralph resume 001 --turns +10";
    assert!(
        blocked.stdout.contains(&format!("hint     {cure}\n"))
            && blocked.stdout.contains(&format!("next     {cure}\n")),
        "{blocked:?}"
    );
    let inbox = machine.env.json(&["inbox"]);
    let items = inbox["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "it is put once: {inbox:#}");
    assert_eq!(items[0]["yes"], cure, "{inbox:#}");
    let refused = resume(&machine, &[]);
    assert_eq!(refused.code, 5, "without more turns it stays: {refused:?}");
    let done = resume(&machine, &["--turns", "+10"]);
    assert_eq!(done.code, 0, "{done:?}");
    let none = resume(&machine, &["--turns", "+10"]);
    assert_ne!(none.code, 0, "{none:?}");
}

#[test]
fn whoever_looks_sees_who_drives_it_and_what_it_cost() {
    let spends = "    - steps: [{usage: {input_tokens: 700, output_tokens: 42}}, {answer: &plan {";
    let machine = agent_with(&[["    - steps: [{answer: &plan {", spends]]);
    let env = &machine.env;
    assert_eq!(machine.ralph(WORDS, &["--unlinked"]).code, 5);
    let view = env.json(&["status", "1"]);
    assert_eq!(view["driver"], serde_json::Value::Null, "{view:#}");
    assert_eq!(view["total_usage"]["input_tokens"], 700, "{view:#}");
    let shown = env.kapi(&["status", "1"]).stdout;
    assert!(shown.contains("  used     742 tokens\n"), "{shown}");
    assert!(shown.contains("next     kapi ralph approve 001"), "{shown}");
    let lock = machine.dir("ralph", "001-greet-people").join("drive.lock");
    let held = Lock::acquire(&lock, "somebody else", 1_000).unwrap();
    let driver = format!("pid {}, somebody else", std::process::id());
    let view = env.json(&["status", "1"]);
    assert_eq!(view["driver"], driver, "{view:#}");
    let shown = env.kapi(&["status", "1"]).stdout;
    drop(held);
    let ends = format!("  driven   by {driver}\n  next     kapi log 001 --follow\n");
    assert!(shown.ends_with(&ends), "{shown}");
}

#[test]
fn whoever_approves_again_sees_what_changed() {
    let machine = Machine::new();
    assert_eq!(machine.ralph(WORDS, &["--unlinked"]).code, 5);
    let revised = resume(&machine, &["--revise", "say it in fewer words"]);
    assert_eq!(revised.code, 5, "{revised:?}");
    let approve = ["ralph", "approve", "1", "--yes"];
    let approved = machine.env.kapi(&approve);
    assert_eq!(approved.code, 0, "{approved:?}");
    let shown = approved
        .stdout
        .split("Changed since the draft before:\n")
        .nth(1);
    let shown = shown.unwrap_or_else(|| panic!("{approved:?}"));
    for line in [
        "--- plan.md, before",
        "-Consensus was reached",
        "+Consensus was reached",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}

#[test]
fn the_branches_of_tasks_go_with_their_worktrees_and_their_commits_stay() {
    let machine = Machine::new();
    let env = &machine.env;
    env.git(&["config", "user.name", "Ada Lovelace"]);
    env.git(&["config", "user.email", "ada@example.invalid"]);
    let done = machine.ralph(WORDS, AT_ONCE);
    assert_eq!(done.code, 0, "{done:?}");
    // Each commit of the branch is the person's, with the workflow in a trailer.
    let format = "--format=%an <%ae> %cn %(trailers:key=Kapi-Workflow,valueonly,separator=)";
    let commits = env.git(&["log", format, "main..feat/ralph-greet-people"]);
    let by = "Ada Lovelace <ada@example.invalid> Ada Lovelace 001-greet-people";
    assert!(commits.lines().count() > 2, "{commits}");
    assert!(commits.lines().all(|line| line == by), "{commits}");
    // They went when they landed: no command had to be typed.
    let branches = env.git(&["branch", "--format=%(refname:short)"]);
    assert_eq!(branches, "feat/ralph-greet-people\nmain");
    let commit = env.commit_of("refs/kapi/001-greet-people-T-001/turn-1");
    let kept = env.git(&["for-each-ref", "--points-at", &commit, "refs/kapi"]);
    assert!(kept.contains("refs/kapi/001-greet-people-T-001/"), "{kept}");
    let shown = env.kapi(&["show", "001/T-001"]);
    assert!(!shown.stdout.contains("MOVED"), "{shown:?}");
    assert_eq!(env.kapi(&["diff", "001/T-001"]).code, 0);
    assert_eq!(env.kapi(&["audit"]).code, 0);
}

#[test]
fn a_log_that_was_changed_is_told_where_the_workflow_is_shown() {
    let machine = Machine::new();
    let env = &machine.env;
    assert_eq!(machine.ralph(WORDS, &["--unlinked"]).code, 5);
    let whole = env.kapi(&["status", "1"]);
    assert!(!whole.stderr.contains("cannot be trusted"), "{whole:?}");
    let log = machine
        .dir("ralph", "001-greet-people")
        .join("events.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let changed = text.replacen("greet people", "greet nobody", 1);
    assert_ne!(changed, text);
    write(&log, changed);
    let shown = env.kapi(&["status", "1"]);
    assert!(
        shown
            .stderr
            .contains("ralph 001-greet-people cannot be trusted"),
        "{shown:?}"
    );
    let listed = env.kapi(&["status"]);
    let all = format!("{}{}", listed.stdout, listed.stderr);
    assert!(all.contains("the last audit failed to"), "{listed:?}");
}

#[test]
fn a_number_is_no_purpose() {
    let machine = Machine::new();
    let output = machine.ralph(&["002"], &["--unlinked", "--no-drive"]);
    output.assert_error(2, &["\"002\" is not a purpose", "kapi ralph resume 002"]);
}
