//! A contract from its proposal to its approval.

use kapi_core::id::{EffectId, GoalId};

use super::check;
use crate::rules::budget::Raise;
use crate::rules::command::GoalCommand;
use crate::rules::contract::{Contract, OfWorkflow};
use crate::rules::event::ApprovalMeans;
use crate::rules::plan::task::PlanTaskId;
use crate::rules::scenario::Step::{Agent, Engine, Person};
use crate::rules::scenario::{approve, contract, create, ready};

#[test]
fn a_contract_is_proposed_and_approved_by_its_hash() {
    check(&[], create(contract()), "created 001-x");
    check(&[create(contract())], approve(), "approved");
    check(
        &[create(contract())],
        create(contract()),
        "denied: the goal already exists",
    );
    check(&[], approve(), "denied: there is no such goal");
    let means = ApprovalMeans::YesFlag;
    let wrong = Person(GoalCommand::Approve {
        contract_hash: "other".to_owned(),
        means,
    });
    let denied = "denied: the contract does not have the approved hash (other)";
    check(&[create(contract())], wrong, denied);
    let again = "denied: the goal is active, so it cannot be approved";
    check(&[create(contract()), approve()], approve(), again);
}

#[test]
fn only_a_contract_that_names_a_plan_is_approved_with_one() {
    let by_plan = Person(GoalCommand::Approve {
        contract_hash: "hash".to_owned(),
        means: ApprovalMeans::Plan,
    });
    let denied = "denied: no_plan: the contract does not name an approved plan";
    check(&[create(contract())], by_plan.clone(), denied);
    let mut of_plan = contract();
    of_plan.working.workflow = Some(OfWorkflow {
        id: GoalId::parse("002-y").unwrap(),
        task: PlanTaskId::parse("T-001").unwrap(),
        attempt: 1,
        plan_sha256: "p".repeat(64),
    });
    check(&[create(of_plan)], by_plan, "approved");
}

#[test]
fn a_contract_that_breaks_a_rule_is_denied() {
    let break_it = |change: &dyn Fn(&mut Contract), then: &str| {
        let mut broken = contract();
        change(&mut broken);
        check(
            &[],
            create(broken),
            &format!("denied: the contract's {then}"),
        );
    };
    break_it(&|it| it.version = 2, "version is not valid: it must be 1");
    break_it(
        &|it| it.budget.turns = 0,
        "budget.turns is not valid: it must be 1 to 20000",
    );
    break_it(
        &|it| it.stall_after = 1,
        "stall_after is not valid: it must be 2 or more",
    );
    break_it(
        &|it| it.intent = "\n".to_owned(),
        "intent is not valid: it must not be empty or longer than 64 KiB",
    );
    break_it(
        &|it| it.done_criteria = "x".repeat(70_000),
        "done_criteria is not valid: it must not be empty or longer than 64 KiB",
    );
}

#[test]
fn only_a_person_decides_and_only_the_engine_reports() {
    let given = ready(contract());
    let denied = |action: &str, by: &str| format!("denied: only the user may {action}, not {by}");
    check(
        &given,
        Agent(GoalCommand::Resume),
        &denied("resume a goal", "agent r"),
    );
    check(
        &given,
        Agent(GoalCommand::Interrupt),
        &denied("interrupt a goal", "agent r"),
    );
    check(
        &given,
        Engine(GoalCommand::Cancel { reason: None }),
        &denied("cancel a goal", "engine"),
    );
    let raise = GoalCommand::RaiseBudget(Raise {
        turns: 9,
        ..Raise::default()
    });
    check(&given, Agent(raise), &denied("raise a budget", "agent r"));
    let intend = GoalCommand::Intend {
        effect: EffectId::new(1, "agent", 1),
    };
    let denied = "denied: only the engine may report effects, not agent r";
    check(&given, Agent(intend), denied);
}
