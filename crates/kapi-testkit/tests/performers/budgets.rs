//! Limits of an attempt: its time, its tokens, its money; each ends the process tree and keeps the
//! work.

use kapi_task::rules::definition::Definition;
use kapi_task::rules::task::{FailureKind, LoopPhase};
use kapi_task::rules::task_state::KernelTaskState;
use kapi_task::rules::task_terms::TaskBudget;

use crate::asks::{Ask, failure, shell};
use crate::conditions::with;
use crate::machine::Machine;

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

/// Does it within three seconds, and within twice as many until it gives something: on a busy
/// machine a limit of time may end what comes before that which it is to end.
fn in_time<T>(attempt: impl FnMut(u64) -> Option<T>) -> T {
    let mut limits = (0..6).map(|doublings| 3 << doublings);
    limits.find_map(attempt).unwrap()
}

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
    let held = machine.held_back(&task);
    let text = format!(
        "it used 1800 of 1000 tokens, 800 over its budget; its work so far (1 file) is at {held}"
    );
    assert!(why.message.contains(&text), "{why:?}");
    assert_eq!(machine.at(&held, "answer.txt"), "half");
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
    let (machine, task) = in_time(|seconds| {
        let machine = Machine::new();
        let mut ask = shell("echo half > answer.txt; sleep 600");
        ask.timeout_ms = 1_000 * seconds + 500;
        let task = machine.run(&ask);
        let why = failure(&task);
        assert_eq!(
            (why.kind, why.exit_code),
            (FailureKind::TimedOut, Some(124))
        );
        let text = format!("after {seconds}.500 s");
        assert!(why.message.contains(&text), "{why:?}");
        let is_kept = task.report.as_ref().unwrap().work.branch.is_some();
        is_kept.then_some((machine, task))
    });
    assert_eq!(machine.at(&machine.held_back(&task), "answer.txt"), "half");
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
    assert_eq!(task.state, KernelTaskState::Completed, "{task:#?}");
    assert_eq!(
        (task.usage.tokens(), task.usage.usd_micros),
        (9, Some(250_000))
    );
    assert_eq!(task.report.as_ref().unwrap().output, "done");
}

#[test]
fn a_budget_of_time_binds_the_verify_commands_and_keeps_the_work() {
    let (machine, task, message, seconds) = in_time(|seconds| {
        let machine = Machine::new();
        let mut ask = shell("echo right > answer.txt");
        ask.budget.time_ms = Some(1_000 * seconds);
        ask.verify = vec!["true".to_owned(), "sleep 600".to_owned()];
        let task = machine.run(&ask);
        let why = failure(&task);
        assert_eq!(
            (why.kind, why.exit_code),
            (FailureKind::BudgetSpent, Some(124)),
            "{why:?}"
        );
        let message = why.message.clone();
        let during = message.contains("while `sleep");
        during.then_some((machine, task, message, seconds))
    });
    let held = machine.held_back(&task);
    let text = format!(
        "the budget is spent: it took longer than {seconds} s, while `sleep 600` was running; its \
         work so far (1 file) is at {held}"
    );
    assert_eq!(message, text);
    assert_eq!(machine.at(&held, "answer.txt"), "right");
}

/// A loop whose agent is quick, with more lines of its front matter.
fn looped(machine: &mut Machine, more: &str) -> Definition {
    let settings = format!("workspace: branch\n{more}");
    machine.define("bound", &settings, "echo right > answer.txt")
}

#[test]
fn a_budget_of_time_binds_conditions() {
    let (machine, task) = in_time(|seconds| {
        let mut machine = Machine::new();
        let definition = looped(
            &mut machine,
            &format!("budget: {{maxDurationSec: {seconds}}}"),
        );
        let definition = with(&definition, "{command: {run: sleep 600, timeout: 300}}");
        let task = machine.trigger(&definition);
        let why = failure(&task);
        assert_eq!(why.kind, FailureKind::BudgetSpent, "{why:?}");
        let text = format!("took longer than {seconds} s, while its condition was running");
        why.message.contains(&text).then_some((machine, task))
    });
    assert_eq!(task.phases.get(1).unwrap().phase, LoopPhase::ShouldRun);
    assert_eq!(machine.git(&["branch", "--list", "kapi/*"]), "");
}

#[test]
fn a_budget_of_time_binds_evals() {
    let (machine, task) = in_time(|seconds| {
        let mut machine = Machine::new();
        let more = format!(
            "budget: {{maxDurationSec: {seconds}}}\neval:\n  - {{name: slow, type: command, run: sleep 600}}"
        );
        let definition = looped(&mut machine, &more);
        let task = machine.trigger(&definition);
        let why = failure(&task);
        assert_eq!(why.kind, FailureKind::BudgetSpent, "{why:?}");
        let text = format!(
            "took longer than {seconds} s, while eval slow was running; its work so far (1 file)"
        );
        let is_told = why.message.contains(&text);
        is_told.then_some((machine, task))
    });
    assert_eq!(machine.at(&machine.held_back(&task), "answer.txt"), "right");
}

/// A judge that reports what it used, says `done` in the end, and in between waits for long.
const DEAR_JUDGE: &str = "
turns:
  - steps:
      - usage: {input_tokens: 700, output_tokens: 100, usd: 0.75}
      - bash: sleep 600
      - say: never
";

#[test]
fn what_a_judge_uses_counts_and_ends_it_when_the_budget_is_spent() {
    let mut machine = Machine::new();
    machine.setting.judge = Some(machine.script(DEAR_JUDGE));
    for (budget, expected) in [
        (
            "{maxTokens: 500}",
            "it used 800 of 500 tokens, 300 over its budget",
        ),
        (
            "{maxCostUsd: 0.5}",
            "it used $0.75 of $0.50, $0.25 over its budget",
        ),
    ] {
        let more = format!(
            "budget: {budget}\neval:\n  - {{name: good, type: judge, criteria: [it is right]}}"
        );
        let definition = looped(&mut machine, &more);
        let task = machine.trigger(&definition);
        let why = failure(&task);
        assert_eq!(why.kind, FailureKind::BudgetSpent, "{why:?}");
        assert!(why.message.contains(expected), "{why:?}");
        let left = format!(
            "; its work so far (1 file) is at {}",
            machine.held_back(&task)
        );
        assert!(why.message.contains(&left), "{why:?}");
        assert_eq!(task.usage.tokens(), 800);
    }
}

#[test]
fn a_budget_of_time_binds_a_judge() {
    let judge = DEAR_JUDGE.replace(
        "      - usage: {input_tokens: 700, output_tokens: 100, usd: 0.75}\n",
        "",
    );
    in_time(|seconds| {
        let mut machine = Machine::new();
        machine.setting.judge = Some(machine.script(&judge));
        let more = format!(
            "budget: {{maxDurationSec: {seconds}}}\neval:\n  - {{name: good, type: judge, criteria: [it is right]}}"
        );
        let definition = looped(&mut machine, &more);
        let task = machine.trigger(&definition);
        let why = failure(&task);
        assert_eq!(why.kind, FailureKind::BudgetSpent, "{why:?}");
        let text = format!("took longer than {seconds} s, while judge script:");
        why.message.contains(&text).then_some(())
    });
}
