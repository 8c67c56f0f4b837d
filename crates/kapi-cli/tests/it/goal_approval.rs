//! Setting goals up from flags and files, and the only ways in which a contract is approved.

use serde_json::{Value, json};

use crate::environment::{Environment, FIRST, TASK, write};
use crate::goal_judges::with_clis;
use crate::program::{Output, Run};

const HONEST: &str = "command:echo 42 > answer.txt";

/// Returns the arguments of the usual new goal.
fn new<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let usual = ["goal", "new", TASK, "--agent", HONEST];
    [&usual[..], &["--verify", "sh test.sh"], options].concat()
}

/// Proposes the usual goal with nobody at a terminal, and returns its hash.
fn propose(env: &Environment) -> String {
    let output = env.kapi(&new(&["--json"]));
    assert_eq!(output.code, 5, "{output:?}");
    let lines: Vec<Value> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["type"], "approval_needed");
    assert_eq!(lines[1]["type"], "result");
    assert_eq!(lines[1]["status"], "proposed");
    lines[0]["contract_hash"].as_str().unwrap().to_owned()
}

fn status(env: &Environment) -> Value {
    env.json(&["show", "1"])["status"].clone()
}

/// Reference 1.19 D11: a headless goal of the original could never be approved.
#[test]
fn without_a_terminal_a_goal_waits_with_the_line_that_approves_it() {
    let env = Environment::new();
    let output = env.kapi(&new(&[]));
    assert_eq!(output.code, 5, "{output:?}");
    let goal = env.json(&["show", "1", "--all"]);
    assert_eq!(goal["status"], "proposed");
    assert_eq!(goal["approval"], Value::Null);
    let hash = goal["contract_hash"].as_str().unwrap();
    let line = format!("kapi goal approve 001 --hash {}", &hash[..12]);
    assert!(
        output.stdout.contains(&format!("  next     {line}\n")),
        "{output:?}"
    );
    assert!(output.stdout.contains(hash), "{output:?}");
    // The contract was shown whole, the usual included.
    for word in [
        "task",
        "done when",
        "verify",
        "judge",
        "surfaces",
        "ask first",
        "starts in",
    ] {
        assert!(
            output.stderr.contains(&format!("\n  {word:<9} ")),
            "{word}: {output:?}"
        );
    }
    assert!(
        env.events(FIRST)
            .iter()
            .all(|event| event["type"] == "goal_created")
    );
    let words: Vec<&str> = line.split(' ').skip(1).collect();
    let run = Run::from(env.kapi(&[&words[..], &["--json"]].concat()));
    run.assert_status("done", 0);
    assert_eq!(env.json(&["show", "1", "--all"])["approval"], "named_hash");
}

#[test]
fn approval_is_of_the_hash_on_record_and_of_no_other() {
    let env = Environment::new();
    let hash = propose(&env);
    let before = env.events(FIRST);
    let wrong = "0".repeat(64);
    let refused = env.kapi(&["goal", "approve", "1", "--hash", &wrong]);
    assert_eq!(refused.code, 3, "{refused:?}");
    for shown in [&hash, &wrong] {
        assert!(refused.stderr.contains(shown.as_str()), "{refused:?}");
    }
    // Too few digits to mean one contract.
    let short = env.kapi(&["goal", "approve", "1", "--hash", &hash[..11]]);
    assert_eq!(short.code, 2, "{short:?}");
    let silent = env.kapi(&["goal", "approve", "1"]);
    assert_eq!(silent.code, 2, "{silent:?}");
    assert!(
        silent.stderr.contains(&format!("--hash {}", &hash[..12])),
        "{silent:?}"
    );
    assert_eq!(env.events(FIRST), before, "nothing was recorded");
    let approved = env.json(&["goal", "approve", "--hash", &hash[..12], "--no-run"]);
    assert_eq!(approved["status"], "active");
    let again = env.kapi(&["goal", "approve", "1", "--hash", &hash]);
    again.assert_error(3, &["the goal is active, so it cannot be approved"]);
}

/// Reference 1.19 D1: the original's resume activated what nobody had approved.
#[test]
fn resume_activates_nothing_that_nobody_approved() {
    let env = Environment::new();
    propose(&env);
    let before = env.events(FIRST);
    env.kapi(&["goal", "slash", "/until-done resume"])
        .assert_error(
            3,
            &["must be approved first", "kapi goal approve 001 --hash"],
        );
    assert_eq!(env.kapi(&["resume", "1"]).code, 2);
    for verb in [
        &["say", "1", "go on"][..],
        &["goal", "park", "1", "--for", "1h"],
        &["goal", "reopen", "1", "no"],
    ] {
        assert_eq!(env.kapi(verb).code, 3, "{verb:?}");
    }
    assert_eq!(env.events(FIRST), before);
    assert_eq!(status(&env), "proposed");
}

#[test]
fn a_rejected_contract_ends_its_goal() {
    let env = Environment::new();
    propose(&env);
    let rejected = env.json(&["goal", "reject", "--reason", "too wide"]);
    assert_eq!(rejected["status"], "cancelled");
    assert!(
        rejected["reason"]
            .as_str()
            .unwrap()
            .contains("rejected: too wide")
    );
    env.kapi(&["goal", "approve", "1", "--yes"])
        .assert_error(3, &["the goal is cancelled"]);
    env.run(HONEST, &[]).assert_status("done", 0);
    env.kapi(&["goal", "reject", "2"])
        .assert_error(3, &["was approved", "kapi cancel 002"]);
}

#[test]
fn yes_approves_what_is_shown_and_says_so_in_the_record() {
    let env = Environment::new();
    propose(&env);
    let run = Run::from(env.kapi(&["goal", "approve", "1", "--yes", "--json"]));
    run.assert_status("done", 0);
    assert_eq!(env.json(&["show", "1", "--all"])["approval"], "yes_flag");
    let run = Run::from(env.kapi(&new(&["--yes", "--json"])));
    run.assert_status("done", 0);
}

#[test]
fn autopilot_is_the_persons_own_preference_and_is_kept_in_their_home() {
    let env = Environment::new();
    assert_eq!(env.json(&["goal", "autopilot"])["autopilot"], true);
    let run = Run::from(env.kapi(&new(&["--json"])));
    run.assert_status("done", 0);
    assert!(
        run.stderr.contains("kapi goal autopilot off"),
        "{}",
        run.stderr
    );
    let detail = env.json(&["show", "1", "--all"]);
    assert_eq!(detail["approval"], "autopilot");
    assert_eq!(env.json(&["goal", "autopilot"])["autopilot"], false);
    assert_eq!(env.json(&["goal", "autopilot", "on"])["autopilot"], true);
    assert_eq!(env.json(&["goal", "autopilot", "on"])["autopilot"], true);
    assert_eq!(env.json(&["goal", "autopilot", "off"])["autopilot"], false);
    assert_eq!(
        env.kapi(&new(&[])).code,
        5,
        "every contract is asked about again"
    );
    // It is on record with who said it, and nothing of it lies in the repository.
    let projects = env.home().join(".ilchul/projects");
    let project = std::fs::read_dir(&projects)
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let log = project.path().join("preferences/events.jsonl");
    let text = std::fs::read_to_string(log).unwrap();
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(
        text.lines().all(|line| line.contains("\"human\"")),
        "{text}"
    );
}

#[test]
fn agents_set_nothing_up_and_approve_nothing() {
    let env = Environment::new();
    propose(&env);
    let (kapi, repository) = (env!("CARGO_BIN_EXE_kapi"), env.repository());
    let attempts = [
        "goal approve 1 --yes",
        "goal new more --verify true --agent command:true --yes",
        "goal autopilot on",
        "goal judge same",
        "goal reject 1",
        "pause 2",
        "resume 1",
        "cancel 1 --yes",
        "budget 2 --set-turns 30",
        "say 2 hello",
        "goal allow 2 'git push'",
        "goal ask 2 why?",
        "goal park 2 --for 1h",
        "goal reopen 2 no",
        "goal slash '/until-done autopilot'",
    ];
    let lines: Vec<String> = attempts
        .iter()
        .map(|line| format!("{kapi} {line} >> said 2>&1; echo $? >> codes"))
        .collect();
    let script = format!(
        "cd {}\n{}\ncd - >/dev/null; echo 42 > answer.txt",
        repository.display(),
        lines.join("\n")
    );
    let agent = format!("command:{script}");
    let run = env.run(&agent, &["--sandbox", "none"]);
    run.assert_status("done", 0);
    let codes = env.read("codes");
    assert_eq!(codes.lines().count(), attempts.len());
    assert!(
        codes.lines().all(|code| code == "3"),
        "{codes}\n{}",
        env.read("said")
    );
    assert_eq!(status(&env), "proposed");
    assert!(!env.home().join(".ilchul/projects").exists());
}

#[test]
fn a_contract_file_says_what_flags_say_and_flags_hold_over_it() {
    let mut env = with_clis(&["claude"]);
    env.set("ANTHROPIC_API_KEY", "not-a-key");
    write(
        &env.root().join("goal.yaml"),
        "goal: make the answer right\n\
         criteria: the answer is 42\n\
         verify: sh test.sh\n\
         agent: claude\n\
         judge: none\n\
         turns: 7\n\
         wall: 10m\n\
         ask_before: [git push, rm -rf]\n\
         decision_style: boring first\n\
         goal_type: exploratory\n\
         surfaces:\n  - kind: logs\n    location: journalctl\n    notes: ask Ada\n  - staging=https://staging.example\n\
         start_phase: red\n\
         reminders: essential\n\
         distill: false\n",
    );
    let path = env.root().join("goal.yaml");
    let path = path.to_str().unwrap();
    let output = env.kapi(&[
        "goal",
        "new",
        "--contract",
        path,
        "--turns",
        "3",
        "--ask-before",
        "sudo",
    ]);
    assert_eq!(output.code, 5, "{output:?}");
    let contract = env.json(&["show", "1", "--all"])["contract"].clone();
    assert_eq!(contract["intent"], TASK);
    assert_eq!(contract["done_criteria"], "the answer is 42");
    assert_eq!(contract["verify"], json!(["sh test.sh"]));
    assert_eq!(contract["budget"]["turns"], 3, "the flag over the file");
    assert_eq!(contract["budget"]["wall_ms"], 600_000);
    let working = &contract["working"];
    assert_eq!(working["ask_before"], json!(["sudo", "git push", "rm -rf"]));
    assert_eq!(working["decision_style"], "boring first");
    assert_eq!(working["goal_type"], "exploratory");
    assert_eq!(working["start_phase"], "red");
    assert_eq!(working["distill"], "never");
    assert_eq!(working["reminders"], "essential");
    assert_eq!(working["surfaces"][0]["notes"], "ask Ada");
    assert_eq!(working["surfaces"][1]["kind"], "staging");
    // What Kapi writes for people is read back as the same contract, but for the branch that is
    // taken now.
    let whole = env.goal_dir(FIRST).join("contract.yaml");
    let text = std::fs::read_to_string(&whole).unwrap();
    let again = env.kapi(&["goal", "new", "--contract", whole.to_str().unwrap()]);
    again.assert_error(
        2,
        &["`branch`: the branch feat/goal-make-answer-right is taken"],
    );
    let free = text.replace("feat/goal-make-answer-right", "feat/another");
    write(&env.root().join("copy.yaml"), free);
    let copy = env.root().join("copy.yaml");
    assert_eq!(
        env.kapi(&["goal", "new", "--contract", copy.to_str().unwrap()])
            .code,
        5
    );
    let mut second = env.json(&["show", "2", "--all"])["contract"].clone();
    assert_eq!(second["branch"], "feat/another");
    second["branch"] = contract["branch"].clone();
    assert_eq!(second, contract);
}

/// Contract files that are wrong, with the line and the words that say so.
const WRONG_FILES: [(&str, u32, &str); 17] = [
    ("goal: x\nturnz: 3\n", 2, "`turnz`: unknown key"),
    ("goal: x\nintent: y\n", 2, "duplicates another key"),
    ("goal: x\nverify: 3\n", 2, "it is a whole number"),
    ("goal: x\nturns: 0\n", 2, "0 is out of range"),
    (
        "goal: x\nturns: many\n",
        2,
        "\"many\" is not a whole number",
    ),
    ("goal: x\nwall: 3\n", 2, "a duration such as"),
    ("goal: x\nsandbox: jail\n", 2, "unknown value \"jail\""),
    ("goal: x\nstart_phase: blue\n", 2, "unknown value \"blue\""),
    (
        "goal: x\nsurfaces:\n  - kind: logs\n",
        3,
        "it has no `location`",
    ),
    (
        "goal: x\nsurfaces:\n  - kind: logs\n    place: y\n",
        4,
        "unknown key",
    ),
    ("goal: x\nbudget:\n  turnz: 3\n", 3, "`budget.turnz`"),
    (
        "goal: x\nrace: {of: 1, lane: 1, lanes: 2}\n",
        2,
        "lane of a race",
    ),
    ("goal: x\nversion: 2\n", 2, "2 is out of range"),
    ("goal: x\ngoal: y\n", 2, "`goal` is set twice"),
    ("goal: [x\n", 1, ""),
    ("goal: ''\n", 1, "it is empty"),
    (
        "goal: x\njudge: {by: chance}\n",
        2,
        "unknown value \"chance\"",
    ),
];

#[test]
fn a_contract_file_that_is_wrong_is_refused_with_its_line() {
    let env = Environment::new();
    let path = env.root().join("goal.yaml");
    let refused = |text: &str| -> Output {
        write(&path, text);
        env.kapi(&[
            "run",
            "--yes",
            "--agent",
            HONEST,
            "--contract",
            path.to_str().unwrap(),
        ])
    };
    for (text, line, word) in WRONG_FILES {
        let output = refused(text);
        let location = format!("goal.yaml:{line}");
        if text == "goal: [x\n" {
            output.assert_error(2, &["goal.yaml:", "hint: "]);
        } else {
            output.assert_error(2, &[&location, word, "hint: "]);
        }
    }
    env.kapi(&[
        "run",
        "--yes",
        "--agent",
        HONEST,
        "--contract",
        "nowhere.yaml",
    ])
    .assert_error(6, &["nowhere.yaml"]);
    env.kapi(&["run", "--yes", "--agent", HONEST])
        .assert_error(2, &["no task was given", "kapi run"]);
    env.kapi(&new(&["--attempts", "2"]))
        .assert_error(2, &["one goal", "kapi run"]);
    assert!(
        !env.repository().join(".ilchul/goals").exists(),
        "no goal was made"
    );
}

/// Specification, edge case 10, and 22 where goals live side by side.
#[test]
fn an_unfinished_goal_is_kept_unless_it_is_replaced() {
    let env = Environment::new();
    env.run("command:true", &["--turns", "1"])
        .assert_status("paused", 5);
    let beside = env.kapi(&new(&["--yes"]));
    assert_eq!(beside.code, 0, "{beside:?}");
    assert!(beside.stderr.contains("runs alongside it"), "{beside:?}");
    assert_eq!(status(&env), "paused");
    let kept = env.kapi(&new(&["--yes", "--keep"]));
    assert_eq!(kept.code, 0);
    assert!(!kept.stderr.contains("beside"), "{kept:?}");
    let replaced = env.kapi(&new(&["--yes", "--replace"]));
    assert_eq!(replaced.code, 0);
    let old = env.json(&["show", "1"]);
    assert_eq!(old["status"], "cancelled");
    assert!(
        old["reason"]
            .as_str()
            .unwrap()
            .contains("replaced by goal 004-"),
        "{old}"
    );
    for _ in 0..2 {
        env.run("command:true", &["--turns", "1"])
            .assert_status("paused", 5);
    }
    env.kapi(&new(&["--yes", "--replace"]))
        .assert_error_among_talk(3, &["goal_exists", "005-", "006-"]);
}
