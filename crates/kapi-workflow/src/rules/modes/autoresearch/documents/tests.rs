//! What stands in the artifacts.

use crate::rules::documents::documents;
use crate::rules::modes::autoresearch::command::AutoresearchCommand;
use crate::rules::modes::autoresearch::fixture::{Search, contract, start};
use crate::rules::scenario::{WorkflowTestScenario, human, terms};

fn document(scenario: &WorkflowTestScenario, name: &str) -> String {
    let all = documents(scenario.workflow());
    let found = all.into_iter().find(|document| document.name == name);
    found.unwrap().text
}

#[test]
fn the_contract_says_everything_that_an_approval_fixes() {
    let mut limited = terms();
    limited.wall_ms = Some(90 * 60_000);
    limited.usd_micros = Some(2_500_000);
    limited.protect = vec!["Cargo.lock".to_owned()];
    let mut scenario = WorkflowTestScenario::begin(&start(limited));
    let contract = Box::new(contract());
    scenario.send(&human(), &AutoresearchCommand::Draft { contract }.into());
    assert_eq!(
        document(&scenario, "contract.md"),
        "# Experiment contract 003-sort-faster

## Objective

> Sort with fewer operations.

## Metrics

Primary, which alone decides: `ops` in ops, lower is better.

Nothing else is watched.

## How a run is kept

Plain: one sample is strictly better than the last kept one.

## How it is measured

`sh benchmark.sh`, at most 10 s, at the top of a clean checkout, in a new sandbox for each sample, \
without network. Then `sh checks.sh`, at most 10 s, in the same way.

## Files in scope

- `src/**`

## Off limits

- `bench/**`
- `Cargo.lock`

## Constraints

- No new dependency.

## Limits

- Runs: 19
- Discards and crashes in a row: 20
- Time at work: 90 min
- Tokens: no limit
- Money: 2.50 USD

What is worse or equal is discarded, whatever else speaks for it; what crashes, runs into its time \
limit or breaks a check is put back. Another contract needs another approval and is measured from a \
baseline of its own.
"
    );
    assert_eq!(document(&scenario, "benchmark.sh"), "sh bench/run.sh\n");
    assert_eq!(document(&scenario, "checks.sh"), "sh tests/run.sh\n");
}

#[test]
fn a_contract_without_checks_leaves_no_script_of_another() {
    let mut scenario = WorkflowTestScenario::begin(&start(terms()));
    let mut unchecked = contract();
    unchecked.checks = None;
    unchecked.no_checks = Some("It only\nprints.".to_owned());
    let contract = Box::new(unchecked);
    scenario.send(&human(), &AutoresearchCommand::Draft { contract }.into());
    assert_eq!(
        document(&scenario, "checks.sh"),
        "# There are no checks: It only prints.\n"
    );
    let risks = &scenario.workflow().pending.as_ref().unwrap().risks;
    assert_eq!(
        risks,
        &["nothing but the metric is checked: It only\nprints"]
    );
}

#[test]
fn the_ledger_has_the_fields_that_its_readers_read() {
    let mut search = Search::at_propose();
    search.experiment("a", "src/a.rs", 90.5);
    let ledger = document(&search.0, "ledger.jsonl");
    let lines: Vec<serde_json::Value> = ledger
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        lines[0],
        serde_json::json!({
            "type": "config", "name": "Sort faster", "metricName": "ops", "metricUnit": "ops",
            "bestDirection": "lower",
        })
    );
    let run = &lines[2];
    for (name, expected) in [
        ("run", serde_json::json!(2)),
        ("commit", serde_json::json!("kept-a")),
        ("metric", serde_json::json!(90.5)),
        ("metrics", serde_json::json!({})),
        ("status", serde_json::json!("keep")),
        ("description", serde_json::json!("try a")),
        ("segment", serde_json::json!(0)),
        ("confidence", serde_json::Value::Null),
        (
            "asi",
            serde_json::json!({"hypothesis": "It is done twice."}),
        ),
    ] {
        assert_eq!(run[name], expected, "{name}");
    }
    assert!(run["timestamp"].is_i64());
}

#[test]
fn the_verification_names_every_run_with_its_reason() {
    let mut search = Search::at_propose();
    search.experiment("a|b", "src/a.rs", 110.0);
    let verify = document(&search.0, "verify.md");
    assert!(
        verify.contains("| 2 | a\\|b | discard | 110 | 1 | plain: 110ops is worse than 100ops |"),
        "{verify}"
    );
}
