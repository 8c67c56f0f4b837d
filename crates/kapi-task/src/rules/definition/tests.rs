//! Tests of a definition as data: its line in the log, and what follows from it.

use std::collections::BTreeMap;

use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::task_id::LoopName;
use kapi_core::value::KernelValue;

use super::eval::{Better, Eval, EvalCheck, Expect, Millionths, NumberBound};
use super::trigger::{Ending, EventSource, LoopTrigger, Misfire};
use super::{Definition, DefinitionSource, InputError, Learn, Retrigger, WorkspaceMode};
use crate::rules::task_state::KernelTaskState;
use crate::rules::task_terms::{Priority, Retry, TaskBudget};

fn name(text: &str) -> LoopName {
    LoopName::parse(text).unwrap()
}

fn smallest() -> Definition {
    Definition {
        name: name("a"),
        version: 1,
        description: "Loop: a".to_owned(),
        trigger: LoopTrigger::Manual,
        agent: "sisyphus".to_owned(),
        backend: None,
        model: None,
        timeout_ms: 120_000,
        max_concurrent: 1,
        cooldown_ms: 0,
        coalesce: false,
        retry: Retry::default(),
        evals: Vec::new(),
        inputs: BTreeMap::new(),
        budget: TaskBudget::default(),
        should_run: None,
        retrigger: None,
        learn: Learn::OnFailure,
        priority: Priority::Normal,
        verify: Vec::new(),
        protect: Vec::new(),
        checks: CheckPolicy::default(),
        keep_commits: false,
        workspace: WorkspaceMode::Branch,
        body: "Do it.".to_owned(),
        source: DefinitionSource {
            file: ".pi/loops/a.md".to_owned(),
            sha256: "00".to_owned(),
            is_tracked: false,
        },
    }
}

fn check_line(definition: &Definition, line: &str) {
    let written = serde_json::to_string(definition).unwrap();
    assert_eq!(written, line);
    let read: Definition = serde_json::from_str(&written).unwrap();
    assert_eq!(read, *definition);
}

#[test]
fn a_small_definition_has_a_short_line() {
    check_line(
        &smallest(),
        concat!(
            r#"{"name":"a","version":1,"description":"Loop: a","trigger":{"type":"manual"},"#,
            r#""agent":"sisyphus","timeout_ms":120000,"max_concurrent":1,"cooldown_ms":0,"#,
            r#""retry":{"times":0,"backoff_ms":0,"backoff_ms_max":0},"learn":"on_failure","#,
            r#""priority":"normal","workspace":"branch","body":"Do it.","#,
            r#""source":{"file":".pi/loops/a.md","sha256":"00"}}"#
        ),
    );
}

fn eval(name: &str, check: EvalCheck) -> Eval {
    Eval {
        name: name.to_owned(),
        blocking: true,
        check,
    }
}

/// Returns a definition that says everything.
fn fullest() -> Definition {
    Definition {
        trigger: LoopTrigger::Cron {
            schedule: "0 6 * * 1".to_owned(),
            zone: "Europe/Berlin".to_owned(),
            misfire: Misfire::All { max: 3 },
            jitter_ms: 1,
        },
        backend: Some("claude".to_owned()),
        model: Some("m".to_owned()),
        evals: vec![
            eval("e", EvalCheck::ExitCode { pass_condition: -1 }),
            eval(
                "r",
                EvalCheck::Regex {
                    pattern: "x".to_owned(),
                    expect: Expect::NoMatch,
                },
            ),
            eval(
                "j",
                EvalCheck::Judge {
                    criteria: vec!["good".to_owned()],
                    agent: None,
                },
            ),
            eval(
                "m",
                EvalCheck::Metric {
                    run: "bench".to_owned(),
                    timeout_ms: 1,
                    better: Better::Lower,
                    bound: NumberBound::NoWorseThanLast {
                        tolerance: Millionths(500_000),
                    },
                },
            ),
        ],
        inputs: BTreeMap::from([("n".to_owned(), KernelValue::Integer(1))]),
        budget: TaskBudget {
            tokens: Some(5),
            usd_micros: Some(500_000),
            time_ms: None,
        },
        retrigger: Some(Retrigger {
            loop_name: name("b"),
            on: Ending::Any,
            depth_max: 3,
        }),
        verify: vec!["true".to_owned()],
        protect: Vec::new(),
        checks: CheckPolicy::default(),
        keep_commits: true,
        workspace: WorkspaceMode::ReadOnly,
        ..smallest()
    }
}

#[test]
fn everything_that_can_be_said_has_its_place_in_the_line() {
    check_line(
        &fullest(),
        concat!(
            r#"{"name":"a","version":1,"description":"Loop: a","trigger":{"type":"cron","#,
            r#""schedule":"0 6 * * 1","zone":"Europe/Berlin","misfire":{"policy":"all","max":3},"#,
            r#""jitter_ms":1},"agent":"sisyphus","backend":"claude","model":"m","#,
            r#""timeout_ms":120000,"max_concurrent":1,"cooldown_ms":0,"#,
            r#""retry":{"times":0,"backoff_ms":0,"backoff_ms_max":0},"evals":["#,
            r#"{"name":"e","blocking":true,"check":{"type":"exit_code","pass_condition":-1}},"#,
            r#"{"name":"r","blocking":true,"check":{"type":"regex","pattern":"x","expect":"no_match"}},"#,
            r#"{"name":"j","blocking":true,"check":{"type":"judge","criteria":["good"]}},"#,
            r#"{"name":"m","blocking":true,"check":{"type":"metric","run":"bench","timeout_ms":1,"#,
            r#""better":"lower","bound":{"is":"no_worse_than_last","tolerance":500000}}}],"#,
            r#""inputs":{"n":1},"budget":{"tokens":5,"usd_micros":500000},"#,
            r#""retrigger":{"loop":"b","on":"any","depth_max":3},"learn":"on_failure","#,
            r#""priority":"normal","verify":["true"],"keep_commits":true,"workspace":"read_only","body":"Do it.","#,
            r#""source":{"file":".pi/loops/a.md","sha256":"00"}}"#
        ),
    );
}

#[test]
fn every_event_has_its_line() {
    for (source, line) in [
        (
            EventSource::Files {
                globs: vec!["src/**".to_owned()],
            },
            r#"{"type":"event","source":{"kind":"files","globs":["src/**"]}}"#,
        ),
        (
            EventSource::GitRef {
                name: "refs/heads/main".to_owned(),
            },
            r#"{"type":"event","source":{"kind":"git_ref","name":"refs/heads/main"}}"#,
        ),
        (
            EventSource::LoopResult {
                loop_name: name("b"),
                on: Ending::Failed,
            },
            r#"{"type":"event","source":{"kind":"loop_result","loop":"b","on":"failed"}}"#,
        ),
        (
            EventSource::Webhook { name: name("hook") },
            r#"{"type":"event","source":{"kind":"webhook","name":"hook"}}"#,
        ),
    ] {
        let trigger = LoopTrigger::Event { source };
        assert_eq!(serde_json::to_string(&trigger).unwrap(), line);
        assert_eq!(serde_json::from_str::<LoopTrigger>(line).unwrap(), trigger);
    }
}

#[test]
fn a_line_with_something_else_in_it_is_refused() {
    let line = serde_json::to_string(&smallest()).unwrap();
    let more = line.replacen("\"version\":1", "\"version\":1,\"colour\":\"red\"", 1);
    assert!(serde_json::from_str::<Definition>(&more).is_err());
}

#[test]
fn what_is_given_stands_instead_of_what_the_definition_says() {
    let text = |text: &str| KernelValue::Text(text.to_owned());
    let definition = Definition {
        inputs: BTreeMap::from([
            ("market".to_owned(), text("ETH")),
            ("report".to_owned(), KernelValue::Null),
        ]),
        ..smallest()
    };
    let given = |pairs: &[(&str, KernelValue)]| -> BTreeMap<String, KernelValue> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect()
    };
    let both = given(&[("market", text("BTC")), ("report", text("r"))]);
    assert_eq!(definition.inputs_with(&both), Ok(both));
    let one = definition.inputs_with(&given(&[("report", text("r"))]));
    assert_eq!(one.unwrap().get("market"), Some(&text("ETH")));
    let error = definition.inputs_with(&given(&[])).unwrap_err();
    assert!(matches!(error, InputError::Missing { .. }));
    assert_eq!(
        error.to_string(),
        "run a: its input \"report\" has no value"
    );
    let error = definition.inputs_with(&given(&[("reprot", text("r"))]));
    assert_eq!(
        error.unwrap_err().to_string(),
        "give a the input \"reprot\": it declares market, report"
    );
}

#[test]
fn ends_are_met_by_the_states_they_name() {
    use KernelTaskState::{Cancelled, Completed, Failed, Leased, Pending, Running};
    let met = |ending: Ending| -> Vec<KernelTaskState> {
        [Pending, Leased, Running, Completed, Failed, Cancelled]
            .into_iter()
            .filter(|state| ending.is_met_by(*state))
            .collect()
    };
    assert_eq!(met(Ending::Completed), [Completed]);
    assert_eq!(met(Ending::Failed), [Failed]);
    assert_eq!(met(Ending::Any), [Completed, Failed]);
}

#[test]
fn numbers_are_exact_to_six_places() {
    for (text, millionths, shown) in [
        ("0.50", 500_000, "0.5"),
        ("12", 12_000_000, "12"),
        ("-0.000001", -1, "-0.000001"),
        ("+3.25", 3_250_000, "3.25"),
    ] {
        let number = Millionths::parse(text).unwrap();
        assert_eq!(number, Millionths(millionths), "{text}");
        assert_eq!(number.to_string(), shown);
    }
    for text in [
        "",
        ".",
        "1.",
        ".5",
        "1.0000001",
        "1e3",
        "--1",
        "99999999999999",
        "1,5",
        "NaN",
    ] {
        assert!(Millionths::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_bound_is_met_in_the_better_direction() {
    let is = |value| NumberBound::AsGoodAs {
        value: Millionths(value),
    };
    let last = |tolerance| NumberBound::NoWorseThanLast {
        tolerance: Millionths(tolerance),
    };
    for (bound, better, number, before, expected) in [
        (is(10), Better::Higher, 10, None, true),
        (is(10), Better::Higher, 9, None, false),
        (is(10), Better::Lower, 10, None, true),
        (is(10), Better::Lower, 11, None, false),
        (last(0), Better::Higher, 1, None, true),
        (last(0), Better::Higher, 9, Some(10), false),
        (last(1), Better::Higher, 9, Some(10), true),
        (last(1), Better::Lower, 11, Some(10), true),
        (last(1), Better::Lower, 12, Some(10), false),
    ] {
        let met = bound.is_met(better, Millionths(number), before.map(Millionths));
        assert_eq!(met, expected, "{bound:?} {better:?} {number} {before:?}");
    }
}
