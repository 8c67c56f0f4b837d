//! What a workflow may use as a whole, and what a person says to that.
//!
//! The agents are scripts that say what they used.

use crate::environment::Environment;
use crate::program::Output;
use crate::workflow_support::{Machine, last};

/// A machine whose first two tasks use more than a thousand tokens together.
fn thirsty() -> Machine {
    let mut machine = Machine::new();
    let text = std::fs::read_to_string(machine.agent.strip_prefix("script:").unwrap()).unwrap();
    let text = text
        .replace(
            "{write: {path: word.txt, content: \"helo\\n\"}}",
            "{usage: {input_tokens: 800}}, {write: {path: word.txt, content: \"helo\\n\"}}",
        )
        .replace(
            "{write: {path: MANUAL,",
            "{usage: {input_tokens: 300}}, {write: {path: MANUAL,",
        );
    assert_eq!(text.matches("usage:").count(), 2, "{text}");
    machine.agent = machine.env.script("thirsty.yaml", &text);
    machine
}

fn events_of(machine: &Machine, id: &str, kind: &str) -> usize {
    let events = machine.events("ralph", id);
    events.iter().filter(|event| event["type"] == kind).count()
}

#[test]
fn the_limit_is_of_the_whole_and_a_person_raises_it() {
    let machine = thirsty();
    let env = &machine.env;
    let options = [
        "--unlinked",
        "--approve-plan",
        "auto",
        "--tokens",
        "1000",
        "--json",
    ];
    let output = machine.ralph(&["greet", "people"], &options);
    let view = last(&output);
    assert_eq!(output.code, 5, "{view:#}\n{}", output.stderr);
    assert_eq!(view["status"], "blocked", "{view:#}");
    let reason = view["blocked"]["reason"].as_str().unwrap();
    assert!(
        reason.contains("the workflow has used up its token limit"),
        "{reason}"
    );
    let unblock = view["blocked"]["unblock"].as_str().unwrap();
    assert!(
        unblock.contains("kapi ralph resume 001 --tokens"),
        "{unblock}"
    );
    let id = view["id"].as_str().unwrap().to_owned();
    assert!(events_of(&machine, &id, "goal_used") >= 2);

    // What was proved and waits still lands, because that uses nothing; then only more helps.
    let mut alone = env.kapi(&["ralph", "resume", "1"]);
    if alone.code == 5 {
        alone = env.kapi(&["ralph", "resume", "1"]);
    }
    alone.assert_error(3, &["not_ready", "kapi ralph resume 001 --tokens"]);
    let money = env.kapi(&["ralph", "resume", "1", "--usd", "+5"]);
    money.assert_error(2, &["malformed", "has none"]);
    let raised = env.kapi(&["ralph", "resume", "1", "--tokens", "+100k", "--json"]);
    let view = last(&raised);
    assert_eq!(raised.code, 0, "{view:#}\n{}", raised.stderr);
    assert_eq!(view["status"], "completed");
    assert_eq!(events_of(&machine, &id, "limits_raised"), 1);
    let context = machine.document("ralph", &id, "context.md");
    assert!(
        context.contains("the whole workflow: 101000 tokens"),
        "{context}"
    );
}

#[test]
fn a_purpose_in_any_language_has_a_name() {
    let machine = Machine::new();
    let begun = |purpose: &str| {
        let args = [
            "deep-interview",
            purpose,
            "--agent",
            &machine.agent,
            "--no-drive",
        ];
        let view = machine.env.json(&args);
        view["id"].as_str().unwrap().to_owned()
    };
    assert_eq!(begun("일출을 고쳐줘"), "001-ilchuleul-gochyeojwo");
    assert_eq!(begun("Исправить вход"), "002-ispravit-vkhod");
    assert_eq!(begun("修复登录"), "003-xiufudenglu");
    let nameless = begun("🚀");
    assert!(nameless.starts_with("004-workflow-"), "{nameless}");
    let again = begun("🚀");
    assert_eq!(again[4..], format!("{}-2", &nameless[4..]));
}

#[test]
fn a_branch_that_is_in_the_way_of_all_others_is_told_before_anything_is_done() {
    let machine = Machine::new();
    let env = &machine.env;
    env.git(&["branch", "feat"]);
    env.git(&["branch", "docs"]);
    let reported = [
        "the local branch \"feat\" prevents every branch feat/",
        "git branch -m feat feat-old",
    ];
    machine
        .ralph(&["greet people"], &["--unlinked"])
        .assert_error(2, &reported);
    env.kapi(&[
        "run",
        "greet people",
        "--agent",
        "command:true",
        "--verify",
        "true",
    ])
    .assert_error(2, &reported);
    assert!(!env.repository().join(".ilchul/workflows").exists());
    // An interview makes no branch.
    assert_eq!(machine.interview(&["--no-drive"]).code, 0);

    env.git(&["branch", "-m", "feat", "feat-old"]);
    let planned = machine.ralph(&["greet people"], &["--unlinked", "--json"]);
    assert_eq!(planned.code, 5, "{planned:?}");
    assert!(
        planned.stderr.contains("git branch -m docs docs-old"),
        "{planned:?}"
    );
    env.git(&["branch", "-m", "feat-old", "feat"]);
    let args = ["ralph", "approve", "2", "--yes", "--accept-risks"];
    env.kapi(&args).assert_error(3, &reported);
    env.git(&["branch", "-D", "feat"]);
    let approved = env.kapi(&args);
    assert_eq!(approved.code, 0, "{approved:?}");
}

#[test]
fn what_was_edited_by_hand_goes_along_with_a_revision() {
    let machine = Machine::new();
    let env = &machine.env;
    let planned = machine.ralph(&["greet people"], &["--unlinked", "--json"]);
    let id = last(&planned)["id"].as_str().unwrap().to_owned();
    let plan = machine.document("ralph", &id, "plan.md");
    let edit = plan.replace("the manual", "the manual, in two languages");
    crate::environment::write(&machine.dir("ralph", &id).join("plan.md"), &edit);
    let revise = [
        "ralph",
        "resume",
        "1",
        "--revise",
        "as I wrote",
        "--no-drive",
    ];
    let revised = env.kapi(&revise);
    assert_eq!(revised.code, 0, "{revised:?}");
    assert!(revised.stderr.contains("plan.edited.md"), "{revised:?}");
    assert_eq!(machine.document("ralph", &id, "plan.edited.md"), edit);
    let said = env.json(&["status", "1"])["revisions"][0]["text"].clone();
    let said = said.as_str().unwrap();
    assert!(said.starts_with("as I wrote\n"), "{said}");
    assert!(said.contains("in two languages"), "{said}");
    let planned = env.kapi(&["ralph", "resume", "1"]);
    assert_eq!(planned.code, 5, "{planned:?}");
    let prompts = env
        .repository()
        .join(format!(".ilchul/runs/{id}-t002-thesis-a2/prompt.md"));
    let prompt = std::fs::read_to_string(&prompts).unwrap();
    assert!(
        prompt.contains("in two languages"),
        "the planner is told: {prompt}"
    );
}

#[test]
fn records_of_what_has_ended_are_written_again_by_the_command_that_is_named() {
    let machine = Machine::new();
    let env: &Environment = &machine.env;
    machine.drafted();
    let ended = ["deep-interview", "resume", "1", "--abandon", "no more"];
    assert_eq!(env.kapi(&ended).code, 0);
    let spec = machine
        .dir("deep-interview", "001-greet-people-name")
        .join("interview.md");
    let right = std::fs::read(&spec).unwrap();
    crate::environment::write(&spec, "something else\n");
    let probed = env.kapi(&["doctor", "--modes"]);
    assert_eq!(probed.code, 4, "{probed:?}");
    assert!(
        probed.stdout.contains("kapi doctor --modes --mend"),
        "{probed:?}"
    );
    assert!(!probed.stdout.contains("resume 001"), "{probed:?}");
    let mended = env.kapi(&["doctor", "--modes", "--mend"]);
    assert_eq!(mended.code, 0, "{mended:?}");
    assert_eq!(std::fs::read(&spec).unwrap(), right);
}

#[test]
fn the_time_of_the_whole_is_limited_in_every_mode_and_a_person_raises_it() {
    let machine = Machine::new();
    let env = &machine.env;
    let check = |output: &Output, mode: &str, index: &str| {
        let view = last(output);
        assert_eq!(output.code, 5, "{view:#}\n{}", output.stderr);
        assert_eq!(view["status"], "blocked", "{view:#}");
        let blocked = view["blocked"].to_string();
        assert!(
            blocked.contains("the workflow has used up its working-time limit"),
            "{blocked}"
        );
        let raise = format!("kapi {mode} resume {index} --wall +30m");
        assert!(blocked.contains(&raise), "{blocked}");
        env.kapi(&[mode, "resume", index])
            .assert_error(3, &["not_ready", "--wall +30m"]);
        view["id"].as_str().unwrap().to_owned()
    };
    let answers = env.root().join("answers.yaml").display().to_string();
    let asked = machine.interview(&["--answers", &answers, "--wall", "1ms", "--json"]);
    check(&asked, "deep-interview", "001");
    let raise = ["--wall", "+1h", "--answers", &answers, "--json"];
    let drafted = env.kapi(&[&["deep-interview", "resume", "1"], &raise[..]].concat());
    assert_eq!(
        last(&drafted)["pending"]["decision"],
        "approve_interview_spec"
    );

    let options = ["--unlinked", "--wall", "1ms", "--json"];
    let planned = machine.ralph(&["greet", "people"], &options);
    let id = check(&planned, "ralph", "002");
    assert!(events_of(&machine, &id, "time_used") > 0);
    env.kapi(&["ralph", "resume", "2", "--tokens", "+5"])
        .assert_error(2, &["malformed", "has none"]);
    let raised = env.kapi(&["ralph", "resume", "2", "--wall", "+1h", "--json"]);
    let view = last(&raised);
    assert_eq!(
        view["pending"]["decision"], "approve_ralph_plan",
        "{view:#}"
    );
    let context = machine.document("ralph", &id, "context.md");
    assert!(context.contains("Total working time: 3600 s"), "{context}");
}

#[test]
fn what_begins_beside_the_integration_branch_is_told_so() {
    let machine = Machine::new();
    let env = &machine.env;
    let reported = |options: &[&str]| {
        let options = [&["--unlinked", "--no-drive"], options].concat();
        let begun = machine.ralph(&["greet", "people"], &options);
        assert_eq!(begun.code, 0, "{}", begun.stderr);
        begun
            .stderr
            .contains("Branch dev has work that this does not include")
    };
    assert!(!reported(&[]), "there is no such branch");
    env.git(&["branch", "dev"]);
    assert!(!reported(&[]), "it has nothing more");
    env.git(&["checkout", "-q", "dev"]);
    env.git(&["commit", "-q", "--allow-empty", "-m", "integrated"]);
    env.git(&["checkout", "-q", "-"]);
    assert!(reported(&[]));
    assert!(!reported(&["--base", "dev"]));
}
