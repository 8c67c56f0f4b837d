//! A search with a real CLI: a no-op, a cheat on the benchmark, a broken check, a crash and a real gain.
//!
//! The program counts its own operations, so that chance decides nothing.

use std::fs;

use kapi_testkit::agent_tools::Cli;
use kapi_testkit::model_server::scenario::{AssistantTurn, ModelScenario, Route};
use serde_json::{Value, json};

use crate::environment::write;
use crate::machine::Machine;

const ID: &str = "001-sum-fewer-operations";
const BRANCH: &str = "perf/autoresearch-sum-fewer-operations";
/// Counts every operation; off limits.
const COUNTER: &str = "ops=0\nadd() { ops=$((ops + 1)); r=$(($1 + $2)); }\n\
    mul() { ops=$((ops + 1)); r=$(($1 * $2)); }\n";
const SUM: &str = "sum() {\n  s=0; i=1\n  while [ \"$i\" -le \"$1\" ]; do\n    add \"$s\" \"$i\"; s=$r\n    \
    add \"$i\" 1; i=$r\n  done\n  r=$s\n}\n";
const BENCH: &str = "set -eu\n. ./bench/counter.sh\n. ./src/sum.sh\nsum 20\n[ \"$r\" = 210 ] || exit 1\n\
    echo \"METRIC ops=$ops\"\n";
const CHECK: &str = "set -eu\n. ./bench/counter.sh\n. ./src/sum.sh\n\
    for n in 0 1 7; do sum $n; [ \"$r\" = $((n * (n + 1) / 2)) ] || exit 1; done\n";
const FORMULA: &str = "sum() { add \"$1\" 1; mul \"$1\" \"$r\"; r=$((r / 2)); }\n";

/// One experiment: what is done, and what is said of it. Prompts differ in how many runs are left.
fn experiment(runs_left: u32, deed: AssistantTurn, description: &str) -> Route {
    let answer = json!({ "hypothesis": "It may help.", "description": description });
    Route::new(
        &format!("{runs_left} runs are left"),
        vec![
            deed,
            AssistantTurn::text(&format!("I changed it.\n\n```json\n{answer:#}\n```\n")),
        ],
    )
}

/// Replaces the program; by a command, because some CLIs write over no file that they have not read.
fn sum_is(content: &str) -> AssistantTurn {
    AssistantTurn::bash(&format!("printf '%s' '{content}' > src/sum.sh"))
}

fn scenario() -> ModelScenario {
    let mut scenario = ModelScenario::new(vec![AssistantTurn::text("I do not know.")]);
    scenario.routes = vec![
        experiment(
            5,
            AssistantTurn::bash("echo '# sums' >> src/sum.sh"),
            "a comment",
        ),
        experiment(
            4,
            AssistantTurn::bash("echo ops=0 >> bench/counter.sh; echo 1 > bench/more"),
            "a smaller count",
        ),
        experiment(3, sum_is("sum() { r=210; }\n"), "the answer"),
        experiment(2, sum_is("sum() { exit 3; }\n"), "an exit"),
        experiment(1, sum_is(FORMULA), "a formula"),
    ];
    scenario
}

fn search(cli: Cli) {
    let machine = Machine::new(scenario());
    let env = &machine.env;
    for (name, content) in [
        ("bench/counter.sh", COUNTER),
        ("bench/run.sh", BENCH),
        ("src/sum.sh", SUM),
        ("tests/check.sh", CHECK),
    ] {
        write(&env.repository().join(name), content);
    }
    env.commit_all("a program");
    let proposed = env.kapi(&[
        "autoresearch",
        "sum with fewer operations",
        "--unlinked",
        "--agent",
        cli.name(),
        "--metric",
        "ops",
        "--benchmark",
        "sh bench/run.sh",
        "--checks",
        "sh tests/check.sh",
        "--scope",
        "src",
        "--off-limits",
        "bench",
        "--off-limits",
        "tests",
        "--runs",
        "5",
    ]);
    assert_eq!(proposed.code, 5, "{proposed:?}");
    assert_eq!(env.kapi(&["autoresearch", "approve", "1", "--yes"]).code, 0);
    let done = env.kapi(&["autoresearch", "resume", "1"]);
    assert_eq!(done.code, 0, "{done:?}");
    let ledger = env
        .repository()
        .join(".ilchul/workflows/autoresearch")
        .join(ID)
        .join("ledger.jsonl");
    let ledger = fs::read_to_string(ledger).unwrap();
    let runs: Vec<Value> = ledger
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let found: Vec<(&str, Option<f64>)> = runs
        .iter()
        .map(|run| (run["status"].as_str().unwrap(), run["metric"].as_f64()))
        .collect();
    assert_eq!(
        found,
        [
            ("keep", Some(40.0)),
            ("discard", Some(40.0)),
            ("discard", None),
            ("checks_failed", Some(0.0)),
            ("crash", None),
            ("keep", Some(2.0)),
        ],
        "{ledger}"
    );
    assert_eq!(machine.commits_on(BRANCH), ["perf: a formula"]);
    machine.assert_key_is_in_no_file();
}

#[test]
fn a_mixed_bag_of_ideas_of_claude_ends_with_the_real_gain() {
    search(Cli::Claude);
}

#[test]
fn a_mixed_bag_of_ideas_of_pi_ends_with_the_real_gain() {
    search(Cli::Pi);
}
