//! What each key of a definition may hold.

use kapi_core::value::KernelValue;

use super::read;
use crate::rules::definition::eval::{Better, EvalCheck, Expect, Millionths, NumberBound};
use crate::rules::definition::trigger::{Ending, EventSource, LoopTrigger, Misfire};
use crate::rules::definition::{Learn, WorkspaceMode};
use crate::rules::task_terms::{Priority, Retry, TaskBudget};

#[test]
fn every_trigger_can_be_written() {
    let event = |source| LoopTrigger::Event { source };
    let cron = |misfire, zone: &str, jitter_ms| LoopTrigger::Cron {
        schedule: "0 15 * * 1-5".to_owned(),
        zone: zone.to_owned(),
        misfire,
        jitter_ms,
    };
    let at = "trigger:\n  type: cron\n  schedule: '0 15 * * 1-5'\n";
    let globs = |globs: &[&str]| EventSource::Files {
        globs: globs.iter().map(|glob| (*glob).to_owned()).collect(),
    };
    let other = kapi_core::task_id::LoopName::parse("b").unwrap();
    for (keys, expected) in [
        (at.to_owned(), cron(Misfire::Skip, "UTC", 0)),
        (
            format!("{at}  zone: Europe/Berlin\n  misfire: once\n  jitter: 5m"),
            cron(Misfire::Once, "Europe/Berlin", 300_000),
        ),
        (
            format!("{at}  timezone: UTC\n  misfire: all\n  misfire_max: 3"),
            cron(Misfire::All { max: 3 }, "UTC", 0),
        ),
        (
            "trigger: {type: event, files: ['src/**', Cargo.toml]}".to_owned(),
            event(globs(&["src/**", "Cargo.toml"])),
        ),
        (
            "trigger: {type: event, files: src/**}".to_owned(),
            event(globs(&["src/**"])),
        ),
        (
            "trigger: {type: event, git_ref: refs/heads/main}".to_owned(),
            event(EventSource::GitRef {
                name: "refs/heads/main".to_owned(),
            }),
        ),
        (
            "trigger: {type: event, loop: b, on: failed}".to_owned(),
            event(EventSource::LoopResult {
                loop_name: other.clone(),
                on: Ending::Failed,
            }),
        ),
        (
            "trigger: {type: event, webhook: b}".to_owned(),
            event(EventSource::Webhook { name: other }),
        ),
    ] {
        assert_eq!(read(&keys).trigger, expected, "{keys}");
    }
}

#[test]
fn every_check_can_be_written_alone_or_in_a_list() {
    let check = |keys: &str| read(keys).evals.remove(0).check;
    let exit_code = check("eval:\n  type: exit_code\n  pass_condition: -3");
    assert_eq!(exit_code, EvalCheck::ExitCode { pass_condition: -3 });
    let command = check("eval: {type: command, run: make test, timeout: 90s}");
    let expected = EvalCheck::Command {
        run: "make test".to_owned(),
        timeout_ms: 90_000,
    };
    assert_eq!(command, expected);
    let regex = check("eval: {type: regex, pattern: '^ok$', on: output, expect: no_match}");
    let expected = EvalCheck::Regex {
        pattern: "^ok$".to_owned(),
        expect: Expect::NoMatch,
    };
    assert_eq!(regex, expected);
    let schema = check("eval:\n  type: json_schema\n  schema:\n    type: object");
    let EvalCheck::JsonSchema { schema } = schema else {
        panic!("a schema: {schema:?}")
    };
    assert_eq!(schema.to_json(), r#"{"type":"object"}"#);
    let judge = check("eval: {type: judge, criteria: is good, agent: '@oracle'}");
    let expected = EvalCheck::Judge {
        criteria: vec!["is good".to_owned()],
        agent: Some("oracle".to_owned()),
    };
    assert_eq!(judge, expected);
    let bound = |keys: &str| match check(&format!("eval: {{type: metric, run: bench, {keys}}}")) {
        EvalCheck::Metric { better, bound, .. } => (better, bound),
        other => panic!("a metric: {other:?}"),
    };
    let good = |value| NumberBound::AsGoodAs {
        value: Millionths(value),
    };
    assert_eq!(bound("at_least: 0.5"), (Better::Higher, good(500_000)));
    assert_eq!(
        bound("at_most: 12, better: lower"),
        (Better::Lower, good(12_000_000))
    );
    let last = NumberBound::NoWorseThanLast {
        tolerance: Millionths(100_000),
    };
    let written = "compared_to: last, better: higher, tolerance: 0.1";
    assert_eq!(bound(written), (Better::Higher, last));

    let list = "eval:\n  - type: command\n    run: 'true'\n  - type: command\n    run: 'false'\n    blocking: false\n  - name: mine\n    pass_condition: 1";
    let evals = read(list).evals;
    let names: Vec<(&str, bool)> = evals
        .iter()
        .map(|eval| (eval.name.as_str(), eval.blocking))
        .collect();
    assert_eq!(
        names,
        [("command", true), ("command-2", false), ("mine", true)]
    );
}

#[test]
fn budgets_may_be_written_either_way_and_money_is_exact() {
    let camel = read("budget: {maxTokens: 5, maxCostUsd: 0.1, maxDurationSec: 7}").budget;
    let snake = read("budget: {max_tokens: 5, max_cost_usd: '0.1', max_duration_sec: 7s}").budget;
    assert_eq!(camel, snake);
    let expected = TaskBudget {
        tokens: Some(5),
        usd_micros: Some(100_000),
        time_ms: Some(7_000),
    };
    assert_eq!(camel, expected);
    assert_eq!(read("budget:").budget, TaskBudget::default());
}

#[test]
fn the_rest_can_be_written_too() {
    let keys = "version: 7\ndescription: >\n  one\n  two\nmodel: m\nlearn: true\npriority: high\n\
                workspace: read_only\nverify: [a, b]\nmax_retries: 2\nbackoff: 1m\n\
                retrigger: {on: any, depth_max: 2}\nrun_if: inputs.n > 1\ninputs: {n: 1.5}";
    let read = read(keys);
    assert_eq!((read.version, read.description.as_str()), (7, "one two"));
    assert_eq!(
        (read.model.as_deref(), read.learn),
        (Some("m"), Learn::Always)
    );
    assert_eq!(
        (read.priority, read.workspace),
        (Priority::High, WorkspaceMode::ReadOnly)
    );
    assert_eq!(read.verify, ["a", "b"]);
    let retry = Retry {
        times: 2,
        backoff_ms: 60_000,
        backoff_ms_max: 1_800_000,
    };
    assert_eq!(read.retry, retry);
    let retrigger = read.retrigger.unwrap();
    assert_eq!(
        (retrigger.loop_name.as_str(), retrigger.on),
        ("a", Ending::Any)
    );
    assert_eq!(retrigger.depth_max, 2);
    assert!(read.should_run.is_some());
    assert_eq!(read.inputs.get("n"), KernelValue::from_float(1.5).as_ref());
}
