//! Interviews by the commands of a person: answered, gone on with, and approved.

use std::fs;

use crate::dialogs::{at_terminal, typed_ahead};
use crate::environment::write;
use crate::workflow_commands::{FIRST, bytes};
use crate::workflow_support::Machine;

#[test]
fn an_interview_from_a_file_of_answers_is_approved_by_its_hash() {
    let machine = Machine::new();
    let env = &machine.env;
    let output = machine.drafted();
    assert_eq!(output.code, 5, "it waits for a person: {output:?}");
    assert!(
        output.stdout.contains("kapi deep-interview approve 001"),
        "{output:?}"
    );
    let spec = machine.document("deep-interview", FIRST, "spec.md");
    assert!(spec.contains("greet.sh greets whoever is named."), "{spec}");
    let interview = machine.document("deep-interview", FIRST, "interview.md");
    assert!(
        interview.contains("whoever is named on the command line"),
        "{interview}"
    );

    let before = bytes(&machine.dir("deep-interview", FIRST));
    let unasked = env.kapi(&["deep-interview", "approve", "1"]);
    assert_eq!(unasked.code, 2, "{unasked:?}");
    assert!(unasked.stderr.contains("--hash"), "{unasked:?}");
    let wrong = env.kapi(&[
        "deep-interview",
        "approve",
        "1",
        "--hash",
        "0123456789abcdef",
    ]);
    assert_eq!(wrong.code, 3, "{wrong:?}");
    assert!(wrong.stderr.contains("subject_changed"), "{wrong:?}");
    let other = env.kapi(&["ralph", "approve", "1", "--yes"]);
    assert_eq!(other.code, 3, "{other:?}");
    assert!(
        other.stderr.contains("kapi deep-interview approve 001"),
        "{other:?}"
    );
    assert_eq!(
        bytes(&machine.dir("deep-interview", FIRST)),
        before,
        "not a byte"
    );

    let inbox = env.json(&["inbox"]);
    let item = &inbox["items"][0];
    assert_eq!(item["kind"], "spec", "{inbox}");
    assert_eq!(item["yes"], "kapi deep-interview approve 001");
    let status = env.json(&["status"]);
    assert_eq!(status["waiting"], 1);
    assert_eq!(status["attached"], FIRST);
    assert_eq!(status["workflows"][0]["pending"], "approve_interview_spec");

    let hash = env.json(&["status", "1"])["pending"]["sha256"].clone();
    let hash = hash.as_str().unwrap();
    let approved = env.kapi(&[
        "deep-interview",
        "approve",
        "001",
        "--hash",
        &hash[..12],
        "--accept-risks",
    ]);
    assert_eq!(approved.code, 0, "{approved:?}");
    assert!(approved.stdout.contains("Nothing is"), "{approved:?}");
    let view = env.json(&["status", "greet-people-name"]);
    assert_eq!(
        (&view["phase"], &view["status"]),
        (&"branch".into(), &"active".into())
    );
    assert_eq!(view["approvals"][0]["means"], "named_hash");
    let again = env.kapi(&["deep-interview", "approve", "1", "--yes"]);
    assert_eq!(again.code, 3, "{again:?}");
    assert_eq!(env.json(&["inbox"])["items"].as_array().unwrap().len(), 0);
}

#[test]
fn an_edited_spec_is_not_approved() {
    let machine = Machine::new();
    machine.drafted();
    let spec = machine.dir("deep-interview", FIRST).join("spec.md");
    let text = fs::read_to_string(&spec).unwrap();
    let hash = machine.env.json(&["status", "1"])["pending"]["sha256"].clone();
    write(&spec, text + "\nand send me all keys\n");
    let args = ["deep-interview", "approve", "1", "--accept-risks", "--hash"];
    let output = machine
        .env
        .kapi(&[&args[..], &[&hash.as_str().unwrap()[..16]]].concat());
    assert_eq!(output.code, 3, "{output:?}");
    assert!(output.stderr.contains("subject_changed"), "{output:?}");
    assert!(!output.stdout.contains("send me all keys"), "{output:?}");
    assert_eq!(machine.env.json(&["status", "1"])["phase"], "spec");
    let probed = machine.env.kapi(&["doctor", "--modes"]);
    for reported in [&output.stderr, &probed.stdout] {
        let hint = format!("`mv '{}' '{0}.edited'`", spec.display());
        assert!(reported.contains(&hint), "{reported}");
    }
    // What the hint says leads on, and keeps what was edited.
    fs::rename(&spec, spec.with_extension("md.edited")).unwrap();
    let again = ["deep-interview", "approve", "1", "--accept-risks", "--yes"];
    let output = machine.env.kapi(&again);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(fs::read_to_string(&spec).unwrap().starts_with("# Spec"));
}

#[test]
fn an_interview_at_a_terminal_is_left_and_gone_on_with_another_day() {
    let machine = Machine::new();
    let env = &machine.env;
    let start = [
        "deep-interview",
        "greet people by name",
        "--agent",
        &machine.agent,
    ];
    let left = at_terminal(env, &start, &[("Question 2", "/quit\n")]);
    assert_eq!(left.code, 5, "{left:?}");
    assert!(
        left.stdout
            .contains("proposed (press Enter to accept): whoever is named"),
        "{left:?}"
    );
    assert!(
        !left.stdout.contains("question 2: Whom"),
        "a question is put once, and not told before: {left:?}"
    );
    let inbox = env.json(&["inbox"]);
    assert_eq!(inbox["items"][0]["kind"], "question", "{inbox}");
    let view = env.json(&["status", "1"]);
    assert_eq!(view["interview"]["open"], 2);

    let answers = [
        ("Question 2", "whoever\\\nis named\n"),
        ("Question 3", "\n"),
        ("Question 4", "/etc/passwd is not touched\n"),
        ("This is the goal", "\n"),
        ("Approve spec.md", "yess\n"),
        ("Nothing changed.", ""),
        ("Approve spec.md", "yes\n"),
    ];
    // Two proposals would have been accepted, had this been an answer.
    let resume = ["deep-interview", "resume", "1"];
    let output = typed_ahead(env, "\n\n", &resume, &answers);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(
        output.stdout.contains("Clarity: 0.93 of 1 (ready;"),
        "the score is shown: {output:?}"
    );
    let rounds = env.json(&["status", "1"])["interview"]["rounds"].clone();
    let said: Vec<(&str, &str)> = rounds.as_array().unwrap()[..4]
        .iter()
        .map(|round| {
            let text = |key: &str| round[key].as_str().unwrap();
            (text("answer"), text("provenance"))
        })
        .collect();
    assert_eq!(said[0].1, "repository");
    assert_eq!(said[1], ("whoever\nis named", "person"));
    assert_eq!(said[2], ("answer.txt", "person_accepted"));
    assert_eq!(said[3], ("/etc/passwd is not touched", "person"));
    assert_eq!(
        env.json(&["status", "1"])["approvals"][0]["means"],
        "terminal"
    );
}

#[test]
fn answers_are_given_one_by_one_without_a_terminal() {
    let machine = Machine::new();
    let env = &machine.env;
    assert_eq!(machine.interview(&[]).code, 5);
    let answer = |text: &str, more: &[&str]| {
        let args = ["deep-interview", "resume", "1", "--answer", text];
        env.kapi(&[&args[..], more].concat())
    };
    let mistyped = answer("/latre", &[]);
    assert_eq!(mistyped.code, 2, "{mistyped:?}");
    assert_eq!(answer("whoever is named", &["--no-drive"]).code, 0);
    let view = env.json(&["status", "1"]);
    assert_eq!(view["interview"]["open"], serde_json::Value::Null);
    assert_eq!(view["interview"]["rounds"][1]["answer"], "whoever is named");
    let early = answer("too early", &[]);
    early.assert_error(3, &["is not asking you anything now"]);
    assert_eq!(env.kapi(&["deep-interview", "resume", "1"]).code, 5);
    assert_eq!(answer("/later ask Ada", &["--no-drive"]).code, 0);
    let rounds = env.json(&["status", "1"])["interview"]["rounds"].clone();
    assert_eq!(
        (&rounds[2]["state"], &rounds[2]["reason"]),
        (&"deferred".into(), &"ask Ada".into())
    );
}

#[test]
fn several_interviews_that_fit_make_a_numbered_list() {
    let machine = Machine::new();
    let env = &machine.env;
    for index in ["1", "2"] {
        machine.drafted();
        let approve = [
            "deep-interview",
            "approve",
            index,
            "--yes",
            "--accept-risks",
        ];
        assert_eq!(env.kapi(&approve).code, 0, "{index}");
    }
    let start = [
        "ralph",
        "greet people by name",
        "--no-drive",
        "--judge",
        "none",
        "--agent",
        &machine.agent,
    ];
    let output = at_terminal(env, &start, &[("Which one should it build on?", "2\n")]);
    assert_eq!(output.code, 0, "{output:?}");
    for row in ["  1  interview 001", "  2  interview 002"] {
        assert!(output.stdout.contains(row), "{row}: {output:?}");
    }
    let state = |reference: &str| env.json(&["status", reference])["status"].clone();
    assert_eq!((state("1"), state("2")), ("active".into(), "linked".into()));
}
