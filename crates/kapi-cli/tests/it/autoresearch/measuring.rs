//! What holds while it is measured: processors, warm-ups, metrics that Kapi takes, held-back inputs.

use std::fs;

use kapi_sandbox::benchmark::{check_counter, processors};
use kapi_sandbox::counter::KernelCounter;

use super::{Machine, decided};
use crate::environment::write;

/// Knows the sum of the benchmark's input, and sums everything else as before; then sums by a formula.
const SPECIAL_CASE: &str = r#"turns: []
roles:
  researcher:
    - steps:
        - bash: "cat src/sum.sh | sed 's/^sum()/slow()/' > src/new.sh; printf 'sum() { if [ \"$1\" = 20 ]; then r=210; else slow \"$1\"; fi; }\\n' >> src/new.sh; mv src/new.sh src/sum.sh"
        - answer: {hypothesis: The sum of twenty is known., description: the sum of twenty}
    - steps:
        - write: {path: src/sum.sh, content: "sum() { add \"$1\" 1; mul \"$1\" \"$r\"; half \"$r\"; }\n"}
        - answer: {hypothesis: A formula needs no loop., description: sum by a formula}
    - steps: [{answer: {exhausted: true}}]
"#;

/// Nothing is tried.
const IDLE: &str = "turns: []\nroles: {researcher: [{steps: [{answer: {exhausted: true}}]}]}\n";

/// Prints the number of processors that it may use, and claims a metric that is Kapi's.
const COUNT: &str = "echo METRIC ops=$(nproc); echo METRIC kapi.page_faults=1";

impl Machine {
    /// Starts with a contract whose benchmark is a line.
    fn counting(&self, metric: &str, options: &[&str]) -> crate::program::Output {
        let contract = [
            "--metric",
            metric,
            "--benchmark",
            COUNT,
            "--checks",
            "true",
            "--scope",
            "src",
            "--off-limits",
            "bench",
        ];
        self.search(&[&contract[..], options].concat())
    }

    /// Returns the names of what the runs of an effect kept.
    fn kept_files(&self, stage: &str) -> Vec<String> {
        let runs = self.env.repository().join(".ilchul/runs");
        let dirs = fs::read_dir(runs).unwrap().map(|dir| dir.unwrap().path());
        let mut of_stage = dirs.filter(|dir| dir.to_string_lossy().contains(stage));
        super::entries(&of_stage.next().unwrap())
    }
}

#[test]
fn a_benchmark_runs_on_its_processors_after_its_warm_ups() {
    let machine = Machine::with_agent(IDLE);
    let last = processors().unwrap().last().unwrap().to_string();
    let options = ["--pin", &last, "--warmups", "2"];
    let proposed = machine.counting("ops", &options);
    assert_eq!(proposed.code, 5, "{proposed:?}");
    let contract = machine.document("contract.md");
    assert!(
        contract.contains(&format!(
            "Before each measurement it is run 2 times without counting. It runs on processors {last}."
        )),
        "{contract}"
    );
    machine.approve();
    let done = machine.resume(&[]);
    assert_eq!(done.code, 0, "{done:?}");
    let runs = machine.runs();
    assert_eq!(runs[0].1, Some(1.0), "{runs:?}");
    let files = machine.kept_files("baseline");
    let logs: Vec<&str> = files
        .iter()
        .map(String::as_str)
        .filter(|name| name.starts_with("benchmark"))
        .collect();
    assert_eq!(
        logs,
        [
            "benchmark-1.log",
            "benchmark-2.log",
            "benchmark-3.log",
            "benchmark-warmup-1.log",
            "benchmark-warmup-2.log"
        ]
    );
}

#[test]
fn a_metric_that_kapi_takes_is_no_line_of_the_benchmark() {
    let machine = Machine::with_agent(IDLE);
    let proposed = machine.counting("kapi.page_faults", &["--secondary", "kapi.wall_ms"]);
    assert_eq!(proposed.code, 5, "{proposed:?}");
    machine.approve();
    let done = machine.resume(&[]);
    assert_eq!(done.code, 0, "{done:?}");
    let runs = machine.runs();
    assert!(runs[0].1.unwrap() > 50.0, "{runs:?}");
    let ledger = machine.document("ledger.jsonl");
    assert!(ledger.contains("\"kapi.wall_ms\":"), "{ledger}");
}

#[test]
fn what_this_machine_cannot_measure_is_refused_before_anything_begins() {
    let machine = Machine::with_agent(IDLE);
    let refused = machine.counting("ops", &["--pin", "1000"]);
    refused.assert_error(
        3,
        &["processor 1000 is not there", "this process may use 0"],
    );
    let refused = machine.counting("kapi.cycles", &[]);
    refused.assert_error(2, &["kapi.instructions", "not kapi.cycles"]);
    let counted = machine.counting("kapi.instructions", &[]);
    if check_counter(KernelCounter::Instructions).is_ok() {
        assert_eq!(counted.code, 5, "{counted:?}");
    } else {
        counted.assert_error(3, &["kapi.instructions cannot be counted", "valgrind"]);
    }
}

#[test]
fn inputs_that_no_agent_sees_confirm_each_gain() {
    let machine = Machine::with_agent(SPECIAL_CASE);
    let env = &machine.env;
    let visible = env.repository().join("bench");
    let refused = machine.contracted(&["--held-back", &visible.display().to_string()]);
    refused.assert_error(
        2,
        &["bench/input is in the repository", "outside the files"],
    );
    let held_back = env.root().join("held-back");
    write(&held_back.join("bench/input"), "30\n");
    let held_back = held_back.display().to_string();
    let proposed = machine.contracted(&["--held-back", &held_back]);
    assert_eq!(proposed.code, 5, "{proposed:?}");
    machine.approve();
    // What was approved is what is used, whatever becomes of the directory.
    fs::remove_dir_all(&held_back).unwrap();
    let done = machine.resume(&[]);
    assert_eq!(done.code, 0, "{done:?}");
    let runs = machine.runs();
    let found = decided(&runs);
    assert_eq!(
        found,
        [
            ("keep", Some(44.0)),
            ("discard", Some(4.0)),
            ("keep", Some(7.0)),
        ],
        "{runs:#?}"
    );
    assert_eq!(
        runs[1].2,
        "plain: 4 is better than 44, but on the held-back inputs it is equal to its parent in one pair"
    );
    assert!(
        runs[2].2.contains("on the held-back inputs it is better"),
        "{}",
        runs[2].2
    );
}

/// Drafts a contract, and then tries what knows the input.
fn drafting() -> String {
    let drafter = r#"
  drafter:
    - steps:
        - answer:
            objective: fewer operations
            metric: {name: ops, direction: lower}
            benchmark: "sh bench/run.sh"
            checks: "sh tests/check.sh"
            scope: [src]
            off_limits: [bench, tests]
            constraints: []
"#;
    SPECIAL_CASE.replace("roles:\n", &format!("roles:{drafter}"))
}

#[test]
fn inputs_are_held_back_from_a_contract_that_an_agent_drafted() {
    let machine = Machine::with_agent(&drafting());
    let env = &machine.env;
    let dir = env.root().join("held-back");
    write(&dir.join("bench/input"), "30\n");
    let dir = dir.display().to_string();
    let refused = machine.search(&["--held-back", &dir]);
    refused.assert_error(2, &["no contract yet", "resume N --held-back"]);
    let proposed = machine.search(&[]);
    assert_eq!(proposed.code, 5, "{proposed:?}");
    let held = machine.resume(&["--held-back", &dir, "--no-drive"]);
    assert_eq!(held.code, 0, "{held:?}");
    let contract = machine.document("contract.md");
    assert!(contract.contains(&dir), "{contract}");
    machine.approve();
    let late = machine.resume(&["--held-back", &dir, "--no-drive"]);
    late.assert_error(3, &["no contract waits", "--revise"]);
    let done = machine.resume(&[]);
    assert_eq!(done.code, 0, "{done:?}");
    let runs = machine.runs();
    let found = decided(&runs);
    assert_eq!(
        found,
        [
            ("keep", Some(44.0)),
            ("discard", Some(4.0)),
            ("keep", Some(7.0)),
        ],
        "{runs:#?}"
    );
    assert!(runs[1].2.contains("held-back inputs"), "{}", runs[1].2);
}
