//! Conditions: as they are written, what they ask, what they come to, how they are kept.

mod refused;
mod unknown;

use std::collections::BTreeMap;

use kapi_core::value::KernelValue;
use kapi_settings::fault::{Faults, SettingsFault};
use kapi_settings::{read as settings, yaml};

use super::expression::{Expression, ExpressionContext};
use super::window::{LocalTime, Weekday};
use super::{
    Condition, ConditionForm, ConditionQuestion, ConditionResult, Facts, ProbeAnswer, RunResult,
    evaluate, needs,
};

/// Reads a condition under the key `c`.
fn read(text: &str) -> Result<Condition, SettingsFault> {
    let mut faults = Faults::of("f".to_owned());
    let root = yaml::parse(
        &format!("c:\n  {}\n", text.replace('\n', "\n  ")),
        &mut faults,
    );
    let found: Option<BTreeMap<String, ConditionForm>> =
        root.and_then(|root| settings::read(&root, &mut faults));
    let mut faults = faults.into_list();
    match faults.len() {
        0 => Ok(found.unwrap()["c"].0.clone()),
        1 => Err(faults.remove(0)),
        _ => panic!("{text}: {faults:?}"),
    }
}

fn parsed(text: &str) -> Condition {
    read(text).unwrap_or_else(|fault| panic!("{text}: {fault}"))
}

fn refused(text: &str) -> (String, String) {
    let fault = read(text).unwrap_err();
    (fault.location_and_what(), fault.remedy)
}

/// A condition, the question it asks, answers that make it hold and answers that do not.
fn check(text: &str, question: &ConditionQuestion, good: &[ProbeAnswer], bad: &[ProbeAnswer]) {
    let condition = parsed(text);
    assert_eq!(needs(&condition), std::slice::from_ref(question), "{text}");
    let context = ExpressionContext::default();
    for (answers, wanted) in [(good, true), (bad, false)] {
        for answer in answers {
            let facts = Facts::from([(question.clone(), answer.clone())]);
            let verdict = evaluate(&condition, &context, &facts);
            assert_eq!(verdict.holds, wanted, "{text} {answer:?}");
            let turned = Condition::Not {
                of: Box::new(condition.clone()),
            };
            let turned = evaluate(&turned, &context, &facts);
            assert_eq!(turned.holds, !wanted, "not {text} {answer:?}");
        }
    }
    // Unknown in any way: it does not hold, nor does its opposite.
    let unknown = ProbeAnswer::Unknown {
        why: "git was not found".to_owned(),
    };
    let other = ProbeAnswer::Uncommitted { count: u64::MAX };
    let is_other = !matches!(question, ConditionQuestion::Uncommitted);
    let mut all = vec![Facts::new(), Facts::from([(question.clone(), unknown)])];
    all.extend(is_other.then(|| Facts::from([(question.clone(), other)])));
    for facts in all {
        for condition in [
            condition.clone(),
            Condition::Not {
                of: Box::new(condition.clone()),
            },
        ] {
            let verdict = evaluate(&condition, &context, &facts);
            assert!(!verdict.holds, "{text} {facts:?}");
            assert_eq!(
                verdict.reasons[0].held,
                ConditionResult::Unknown,
                "{text} {facts:?}"
            );
        }
    }
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn files() {
    let glob = text("docs/*.md");
    let question = ConditionQuestion::Files { glob: glob.clone() };
    let files = |count| ProbeAnswer::Files { count };
    check(
        "file: {exists: docs/*.md}",
        &question,
        &[files(1), files(9)],
        &[files(0)],
    );
    check(
        "file: {gone: docs/*.md}",
        &question,
        &[files(0)],
        &[files(1)],
    );
    let paths = |paths: &[&str]| ProbeAnswer::Changed {
        paths: paths.iter().map(|path| text(path)).collect(),
    };
    let good = [paths(&["docs/a.md"]), ProbeAnswer::NoRunBefore];
    let question = ConditionQuestion::FilesChanged { glob };
    check(
        "file: {changed: docs/*.md}",
        &question,
        &good,
        &[paths(&[])],
    );
    let question = ConditionQuestion::Changed {
        globs: vec![text("src/**"), text("Cargo.lock")],
    };
    check(
        "changed: [src/**, Cargo.lock]",
        &question,
        &good,
        &[paths(&[])],
    );
    let one = ConditionQuestion::Changed {
        globs: vec![text("src/**")],
    };
    check("changed: src/**", &one, &good, &[paths(&[])]);
}

#[test]
fn commands() {
    let question = ConditionQuestion::Command {
        run: text("cargo test"),
        timeout_ms: 60_000,
    };
    let exit = |code| ProbeAnswer::Exit { code };
    let bad = [exit(1), exit(-1), exit(101), ProbeAnswer::TimedOut];
    check("command: cargo test", &question, &[exit(0)], &bad);
    let question = ConditionQuestion::Command {
        run: text("make"),
        timeout_ms: 5_000,
    };
    check(
        "command: {run: make, timeout: 5}",
        &question,
        &[exit(0)],
        &bad,
    );
}

#[test]
fn git() {
    let branch = |name: Option<&str>| ProbeAnswer::Branch {
        name: name.map(ToOwned::to_owned),
    };
    let good = [branch(Some("release/1")), branch(Some("release/x"))];
    let bad = [
        branch(Some("main")),
        branch(Some("release/a/b")),
        branch(None),
    ];
    check(
        "git: {branch: release/*}",
        &ConditionQuestion::Branch,
        &good,
        &bad,
    );
    let count = |count| ProbeAnswer::Uncommitted { count };
    check(
        "git: clean",
        &ConditionQuestion::Uncommitted,
        &[count(0)],
        &[count(2)],
    );
    check(
        "git: dirty",
        &ConditionQuestion::Uncommitted,
        &[count(2)],
        &[count(0)],
    );
    let ahead = |commits| ProbeAnswer::Ahead { commits };
    let question = ConditionQuestion::AheadOf {
        reference: text("origin/main"),
    };
    check(
        "git: {ahead_of: origin/main}",
        &question,
        &[ahead(1)],
        &[ahead(0)],
    );
    let moved = |before: Option<&str>, now: Option<&str>| ProbeAnswer::Moved {
        before: before.map(ToOwned::to_owned),
        now: now.map(ToOwned::to_owned),
    };
    let good = [
        moved(Some("a"), Some("b")),
        moved(None, Some("b")),
        moved(Some("a"), None),
        ProbeAnswer::NoRunBefore,
    ];
    let bad = [moved(Some("a"), Some("a")), moved(None, None)];
    let question = ConditionQuestion::RefChanged {
        reference: text("refs/heads/main"),
    };
    check(
        "git: {ref_changed: refs/heads/main}",
        &question,
        &good,
        &bad,
    );
}

#[test]
fn last_results() {
    let question = ConditionQuestion::LastResult { loop_name: None };
    let result = ProbeAnswer::Result;
    check(
        "last_result: completed",
        &question,
        &[result(RunResult::Completed)],
        &[result(RunResult::Failed), result(RunResult::None)],
    );
    check(
        "last_result: [failed, none]",
        &question,
        &[result(RunResult::Failed), result(RunResult::None)],
        &[result(RunResult::Completed), result(RunResult::Skipped)],
    );
    let Condition::LastResult { loop_name, is } =
        parsed("last_result: {loop: nightly, is: failed}")
    else {
        panic!("a last result");
    };
    assert_eq!(loop_name.unwrap().as_str(), "nightly");
    assert_eq!(is, [RunResult::Failed]);
}

#[test]
fn times() {
    let window = "time: {days: mon-fri, from: \"09:00\", to: \"17:00\", zone: Europe/Berlin}";
    let question = ConditionQuestion::LocalTime {
        zone: text("Europe/Berlin"),
    };
    let at = |day, hour: u16, minute| {
        ProbeAnswer::LocalTime(LocalTime {
            day,
            minute: hour * 60 + minute,
        })
    };
    let good = [at(Weekday::Mon, 9, 0), at(Weekday::Fri, 16, 59)];
    let bad = [
        at(Weekday::Mon, 8, 59),
        at(Weekday::Mon, 17, 0),
        at(Weekday::Sat, 12, 0),
    ];
    check(window, &question, &good, &bad);
    let night = "time: {days: [fri, sat], from: \"22:00\", to: \"6:00\", zone: Europe/Berlin}";
    let good = [
        at(Weekday::Fri, 22, 0),
        at(Weekday::Sat, 5, 59),
        at(Weekday::Sat, 23, 0),
        at(Weekday::Sun, 0, 0),
    ];
    let bad = [
        at(Weekday::Fri, 5, 0),
        at(Weekday::Sat, 6, 0),
        at(Weekday::Sat, 21, 59),
        at(Weekday::Sun, 22, 0),
    ];
    check(night, &question, &good, &bad);
    let wrapped = parsed("time: {days: sat-mon, zone: UTC}");
    let Condition::Time { window } = &wrapped else {
        panic!("a window");
    };
    assert_eq!(window.to_string(), "mon,sat,sun 00:00-24:00 UTC");
}

#[test]
fn unknown_does_not_spread_where_it_does_not_matter() {
    let condition = parsed("any: [\"true\", {git: clean}]");
    assert!(evaluate(&condition, &ExpressionContext::default(), &Facts::new()).holds);
    let condition = parsed("not: {all: [\"false\", {git: clean}]}");
    assert!(evaluate(&condition, &ExpressionContext::default(), &Facts::new()).holds);
    for text in [
        "all: [\"true\", {git: clean}]",
        "not: {any: [\"false\", {git: clean}]}",
        "any: [\"false\", {git: clean}]",
        "not: {all: [\"true\", {git: clean}]}",
    ] {
        let verdict = evaluate(&parsed(text), &ExpressionContext::default(), &Facts::new());
        assert!(!verdict.holds, "{text}");
    }
}

#[test]
fn each_leaf_says_what_it_asked_and_found() {
    let condition = parsed(
        "all:\n- inputs.market == 'ETH'\n- not: {git: dirty}\n- any:\n  - file: {exists: TODO.md}\n  - changed: src/**\n",
    );
    let inputs = serde_saphyr::from_str("market: ETH").unwrap();
    let context = ExpressionContext::of_run(inputs, KernelValue::Null, "manual", "");
    let questions = needs(&condition);
    assert_eq!(questions.len(), 3);
    let facts = Facts::from([
        (
            ConditionQuestion::Uncommitted,
            ProbeAnswer::Uncommitted { count: 0 },
        ),
        (
            ConditionQuestion::Changed {
                globs: vec![text("src/**")],
            },
            ProbeAnswer::Changed {
                paths: ["a", "b", "c", "d", "e"].map(text).to_vec(),
            },
        ),
    ]);
    let verdict = evaluate(&condition, &context, &facts);
    assert!(verdict.holds);
    assert_eq!(
        verdict.text().split("; ").collect::<Vec<_>>(),
        [
            "inputs.market == 'ETH': condition passed: holds",
            "git dirty: 0 changed paths: does not hold",
            "file TODO.md exists: it was not checked: does not hold, because it is unknown",
            "src/** changed since the last run's commit: a, b, c and 2 more changed: holds",
        ]
    );
}

#[test]
fn a_lone_expression_speaks_as_the_original_does() {
    let verdict = |text: &str| {
        let condition = Condition::Expr {
            expr: Expression::parse(text).unwrap(),
        };
        evaluate(&condition, &ExpressionContext::default(), &Facts::new()).text()
    };
    assert_eq!(verdict("true"), "condition passed");
    assert_eq!(verdict("false"), "condition evaluated to false");
}

#[test]
fn a_question_is_asked_once() {
    let condition = parsed("any: [{git: clean}, {not: {git: dirty}}, {command: make}]");
    assert_eq!(needs(&condition).len(), 2);
}

#[test]
fn they_are_kept_as_these_lines() {
    let line = |text: &str| serde_json::to_string(&parsed(text)).unwrap();
    for (text, kept) in [
        ("inputs.a", r#"{"kind":"expr","expr":"inputs.a"}"#),
        (
            "not: {file: {gone: a}}",
            r#"{"kind":"not","of":{"kind":"file","glob":"a","is":"gone"}}"#,
        ),
        (
            "command: make",
            r#"{"kind":"command","run":"make","timeout_ms":60000}"#,
        ),
        ("git: clean", r#"{"kind":"git","is":{"kind":"clean"}}"#),
        (
            "git: {branch: main}",
            r#"{"kind":"git","is":{"kind":"branch","name":"main"}}"#,
        ),
        (
            "time: {days: mon, from: \"9:00\", to: \"10:00\", zone: UTC}",
            r#"{"kind":"time","window":{"days":["mon"],"from":540,"to":600,"zone":"UTC"}}"#,
        ),
        (
            "last_result: {loop: a, is: [failed, none]}",
            r#"{"kind":"last_result","loop":"a","is":["failed","none"]}"#,
        ),
        (
            "all: [{any: [{changed: b}]}]",
            r#"{"kind":"all","of":[{"kind":"any","of":[{"kind":"changed","globs":["b"]}]}]}"#,
        ),
    ] {
        assert_eq!(line(text), kept);
        assert_eq!(
            serde_json::from_str::<Condition>(kept).unwrap(),
            parsed(text)
        );
    }
}
