//! Limits of an attempt: its time, its tokens, its money; each ends the process tree and keeps the
//! work.

use kapi_core::kernel::request::TaskBudget;
use kapi_core::kernel::task::{FailureKind, State};

use crate::machine::{Ask, Machine, failure, shell};

/// A script agent that works, reports what it used, and would go on for long.
const SPENDER: &str = "
turns:
  - steps:
      - write: {path: answer.txt, content: half}
      - usage: {input_tokens: 600, output_tokens: 300, usd: 0.5}
      - bash: sleep 0.1
      - usage: {input_tokens: 600, output_tokens: 300, usd: 0.75}
      - bash: sleep 600
      - write: {path: answer.txt, content: all}
";

fn spender(machine: &Machine, budget: TaskBudget) -> Ask {
    Ask {
        backend: Some(machine.script(SPENDER)),
        budget,
        ..shell("true")
    }
}

#[test]
fn tokens_beyond_the_budget_end_it() {
    let machine = Machine::new();
    let budget = TaskBudget {
        tokens: Some(1_000),
        ..TaskBudget::default()
    };
    let task = machine.run(&spender(&machine, budget));
    let why = failure(&task);
    assert_eq!(why.kind, FailureKind::BudgetSpent);
    let text = "it used 1800 of 1000 tokens, 800 over its budget; its work until then (1 file) is on branch kapi/task_1";
    assert!(why.message.contains(text), "{why:?}");
    assert_eq!(machine.at("kapi/task_1", "answer.txt"), "half");
    assert_eq!(
        (task.usage.tokens(), task.usage.usd_micros),
        (1_800, Some(1_250_000))
    );
}

#[test]
fn money_beyond_the_budget_ends_it() {
    let machine = Machine::new();
    let budget = TaskBudget {
        usd_micros: Some(1_000_000),
        ..TaskBudget::default()
    };
    let task = machine.run(&spender(&machine, budget));
    let why = failure(&task);
    assert_eq!(why.kind, FailureKind::BudgetSpent);
    assert!(
        why.message.contains("$1.25 of $1.00, $0.25 over"),
        "{why:?}"
    );
}

#[test]
fn a_timeout_ends_it_with_the_code_of_timeout() {
    let machine = Machine::new();
    let mut ask = shell("echo half > answer.txt; sleep 600");
    ask.timeout_ms = 1_500;
    let task = machine.run(&ask);
    let why = failure(&task);
    assert_eq!(
        (why.kind, why.exit_code),
        (FailureKind::TimedOut, Some(124))
    );
    assert!(why.message.contains("after 1.500 s"), "{why:?}");
    assert_eq!(machine.at("kapi/task_1", "answer.txt"), "half");
}

#[test]
fn a_budget_of_time_is_a_budget() {
    let machine = Machine::new();
    let mut ask = shell("sleep 600");
    ask.budget.time_ms = Some(1_000);
    let task = machine.run(&ask);
    assert_eq!(failure(&task).kind, FailureKind::BudgetSpent);
}

#[test]
fn within_its_budget_it_completes_and_its_use_is_told() {
    let machine = Machine::new();
    let script = "
turns:
  - steps:
      - usage: {input_tokens: 5, output_tokens: 4, usd: 0.25}
      - say: done
";
    let ask = Ask {
        backend: Some(machine.script(script)),
        budget: TaskBudget {
            tokens: Some(9),
            usd_micros: Some(250_000),
            time_ms: Some(60_000),
        },
        ..shell("true")
    };
    let task = machine.run(&ask);
    assert_eq!(task.state, State::Completed, "{task:#?}");
    assert_eq!(
        (task.usage.tokens(), task.usage.usd_micros),
        (9, Some(250_000))
    );
    assert_eq!(task.report.as_ref().unwrap().output, "done");
}
