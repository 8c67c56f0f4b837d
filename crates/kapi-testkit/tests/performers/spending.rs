//! What tasks use is booked in the ledger of the machine, and its caps hold them.

use std::sync::Mutex;

use kapi_agent::agent::AgentKind;
use kapi_core::actor::Actor;
use kapi_core::usage::Usage;
use kapi_machine::watch::{Activity, EffectWatch, unlimited};
use kapi_run::spending::BookedResult;
use kapi_run::spending::turn::{BookedTurn, TurnKey};
use kapi_spend::rules::account::ModelRole;
use kapi_spend::rules::caps::Caps;
use kapi_sys::cancel::Cancel;
use kapi_task::record::queue::Queue;
use kapi_task::rules::command::{Hold, KernelCommand};
use kapi_task::rules::decide::KernelReply;
use kapi_task::rules::task::{End, FailureKind, KernelTask};
use kapi_task::rules::task_state::KernelTaskState;
use kapi_task::rules::task_terms::TaskBudget;

use crate::asks::{Ask, failure, human, shell};
use crate::machine::Machine;

/// A script agent that spends a quarter of a dollar and does its work.
const QUARTER: &str = "
turns:
  - steps:
      - write: {path: answer.txt, content: right}
      - usage: {input_tokens: 5, output_tokens: 4, usd: 0.25}
      - say: done
";

/// One that spends a dollar and would go on for long.
const DEAR: &str = "
turns:
  - steps:
      - write: {path: answer.txt, content: half}
      - usage: {input_tokens: 5, output_tokens: 4, usd: 1.0}
      - bash: sleep 600
      - say: never
";

fn capped(usd_micros: u64) -> Machine {
    let mut machine = Machine::new();
    machine.caps = Caps {
        machine_per_day: Some(usd_micros),
        ask_at_percent: 100,
        ..Caps::none()
    };
    machine
}

fn ask(machine: &Machine, script: &str) -> Ask {
    Ask {
        backend: Some(machine.script(script)),
        ..shell("true")
    }
}

#[test]
fn what_a_task_used_stands_in_the_ledger_of_the_machine() {
    let machine = Machine::new();
    let task = machine.run(&ask(&machine, QUARTER));
    assert_eq!(task.state, KernelTaskState::Completed, "{task:#?}");
    let totals = machine.spending().ledger.unwrap().totals().unwrap();
    assert!(totals.open.is_empty(), "{totals:?}");
    assert_eq!(
        totals.dearest_turn("script:agent.yaml", "script"),
        Some(250_000),
        "{totals:?}"
    );
}

/// Begins a task as a worker that is gone the moment somebody looks, used 50 tokens and told of 20.
fn lose(machine: &Machine, queue: &mut Queue<'_>) {
    let used = |input_tokens, usd_micros| Usage {
        input_tokens,
        output_tokens: 0,
        usd_micros: Some(usd_micros),
        ..Usage::ZERO
    };
    let claim = KernelCommand::Claim {
        holder: queue.enlist().unwrap().holder,
        ttl_ms: 0,
        capacity: machine.terms.capacity(),
        only: None,
        reach: None,
    };
    let claimed = queue.submit(&Actor::Engine, &claim).unwrap();
    let KernelReply::Claimed(task, fence) = claimed else {
        panic!("it was not claimed: {claimed:?}");
    };
    let hold = Hold { task, fence };
    for command in [
        KernelCommand::Begin(hold),
        KernelCommand::Beat {
            hold,
            ttl_ms: 0,
            usage: used(20, 200_000),
        },
    ] {
        queue.submit(&Actor::Engine, &command).unwrap();
    }
    // The books know what was used after that, too.
    let key = TurnKey {
        goal: task.to_string(),
        effect: format!("attempt-{fence}"),
    };
    let kind = AgentKind::parse(&machine.script(QUARTER)).unwrap();
    let turn = BookedTurn::of_agent(key, &kind, ModelRole::Executor, &machine.grants());
    let watch = EffectWatch {
        cancel: &Cancel::new(),
        notice: &|_| {},
        room: &unlimited,
    };
    let booked = machine.spending().booked(&turn, &watch, |_| BookedResult {
        rest: used(50, 500_000),
        has_run: true,
        value: (),
    });
    booked.unwrap();
}

/// Has workers lost one after the other; then one works.
fn after_losses(machine: &Machine, losses: u64) -> KernelTask {
    machine.work(&|_, _| {}, |queue, admission| {
        let let_in = machine.submit(queue, admission, &ask(machine, QUARTER));
        for _ in 0..losses {
            lose(machine, queue);
        }
        let_in
    })
}

/// Has a worker lost, which somebody sees before the task is cancelled or afterwards; then one works.
fn after_a_loss_and_a_cancel(machine: &Machine, sees_the_loss: bool) -> KernelTask {
    machine.work(&|_, _| {}, |queue, admission| {
        let let_in = machine.submit(queue, admission, &ask(machine, QUARTER));
        let KernelReply::Submitted(task) = let_in else {
            panic!("it was not let in: {let_in:?}");
        };
        lose(machine, queue);
        if sees_the_loss {
            drop(queue.enlist().unwrap());
        }
        let why = "not wanted".to_owned();
        let cancel = KernelCommand::Cancel { task, why };
        queue.submit(&human(), &cancel).unwrap();
        let_in
    })
}

#[test]
fn what_a_lost_worker_had_not_told_is_taken_from_the_books() {
    let task = after_losses(&Machine::new(), 1);
    assert_eq!(task.state, KernelTaskState::Completed, "{task:#?}");
    assert_eq!(task.losses, 1, "{task:#?}");
    assert_eq!((task.usage.input_tokens, task.usage.output_tokens), (55, 4));
    assert_eq!(task.usage.usd_micros, Some(750_000));
}

#[test]
fn a_task_that_took_too_many_workers_with_it_is_settled_and_not_run_again() {
    let task = after_losses(&Machine::new(), 11);
    assert_eq!(task.state, KernelTaskState::Failed, "{task:#?}");
    let Some(End::Failed(failure)) = task.report.as_deref().map(|report| &report.end) else {
        panic!("it has failed: {task:#?}");
    };
    assert_eq!(failure.kind, FailureKind::Lost);
    assert_eq!(failure.message, "its worker died 11 times");
    // All that the eleven used, and nothing of a twelfth.
    assert_eq!(
        (task.usage.input_tokens, task.usage.output_tokens),
        (11 * 50, 0)
    );
    assert_eq!(task.usage.usd_micros, Some(11 * 500_000));
}

#[test]
fn a_task_that_is_cancelled_when_its_worker_is_lost_is_settled_and_not_run_again() {
    for sees_the_loss in [false, true] {
        // What runs nothing waits for no cap either.
        let mut machine = Machine::new();
        machine.terms.usd_micros_per_day = Some(1);
        let task = after_a_loss_and_a_cancel(&machine, sees_the_loss);
        assert_eq!(task.state, KernelTaskState::Cancelled, "{task:#?}");
        assert_eq!(
            (task.usage.input_tokens, task.usage.output_tokens),
            (50, 0),
            "{task:#?}"
        );
        assert_eq!(task.usage.usd_micros, Some(500_000));
        assert_eq!(machine.git(&["branch", "--list", "kapi/*"]), "");
    }
}

#[test]
fn a_cap_that_is_used_up_makes_a_task_wait_and_says_for_what() {
    let machine = capped(250_000);
    let task = machine.run(&ask(&machine, QUARTER));
    assert_eq!(task.state, KernelTaskState::Completed, "{task:#?}");
    let said = Mutex::new(String::new());
    let task = machine.run_watched(&ask(&machine, QUARTER), &|activity, cancel| {
        if let Activity::Note { text } = activity
            && text.contains("waits for: spend")
        {
            said.lock().unwrap().clone_from(text);
            cancel();
        }
    });
    assert_eq!(task.state, KernelTaskState::Cancelled, "{task:#?}");
    let said = said.into_inner().unwrap();
    assert!(
        said.starts_with("task_2 waits for: spend: ") && said.contains("has spent $0.25 of $0.25"),
        "{said}"
    );
    assert_eq!(task.usage.usd_micros, None);
    assert_eq!(machine.git(&["branch", "--list", "kapi/*"]), "kapi/task_1");
}

#[test]
fn waiting_for_a_cap_takes_nothing_of_the_budget_of_time() {
    let mut machine = capped(250_000);
    machine.run(&ask(&machine, QUARTER));
    let mut second = ask(&machine, QUARTER);
    second.budget = TaskBudget {
        time_ms: Some(8_000),
        ..TaskBudget::default()
    };
    // The cap is raised by whoever asks anew, so this one is called off and asked again.
    let waited = machine.run_watched(&second, &|activity, cancel| {
        if matches!(activity, Activity::Note { text } if text.contains("waits for: spend")) {
            cancel();
        }
    });
    assert!(matches!(
        waited.report.as_ref().map(|report| &report.end),
        Some(End::Cancelled) | None
    ));
    machine.caps = Caps {
        machine_per_day: Some(5_000_000),
        ..machine.caps
    };
    let task = machine.run(&second);
    assert_eq!(task.state, KernelTaskState::Completed, "{task:#?}");
}

#[test]
fn a_cap_that_is_exceeded_ends_the_agent_and_keeps_its_work() {
    let machine = capped(600_000);
    let task = machine.run(&ask(&machine, DEAR));
    let why = failure(&task);
    assert_eq!(why.kind, FailureKind::BudgetSpent, "{why:?}");
    assert!(
        why.message.contains("a spending cap is reached: ")
            && why.message.contains("running turns reserve $1.00")
            && why.message.contains("is at refs/kapi/held/"),
        "{why:?}"
    );
    assert_eq!(machine.at(&machine.held_back(&task), "answer.txt"), "half");
}
