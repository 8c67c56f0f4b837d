//! Limits: what they stop, and how they are raised.

use super::check;
use crate::rules::budget::Raise;
use crate::rules::command::GoalCommand;
use crate::rules::scenario::Step::{Begins, Ends, Person, Uses};
use crate::rules::scenario::{contract, failed, passed, ready, to_verify};

#[test]
fn limits_stop_what_would_go_on() {
    let given = [ready(contract()), vec![Begins]].concat();
    check(&given, Uses(999, 5), "used 999 tokens 5 ms");
    check(
        &given,
        Uses(1_000, 5),
        "used 1000 tokens 5 ms\npaused: token budget",
    );
    check(
        &given,
        Uses(0, 100_000),
        "used 0 tokens 100000 ms\npaused: time budget",
    );
    let mut one_turn = contract();
    one_turn.budget.turns = 1;
    let then = "intended t001-verify-a1\nnot verified\nturn 1 VerifyFailed\npaused: turn budget";
    check(&to_verify(one_turn, "tree"), Ends(failed()), then);
}

#[test]
fn tokens_used_up_by_the_work_do_not_stop_its_proof_but_time_does() {
    let mut dear = contract();
    dear.budget.tokens = Some(11);
    let given = to_verify(dear, "tree");
    let begun = [given.clone(), vec![Begins]].concat();
    check(&begun, Uses(0, 50), "used 0 tokens 50 ms");
    check(
        &begun,
        Uses(0, 100_000),
        "used 0 tokens 100000 ms\npaused: time budget",
    );
    let then = "intended t001-verify-a1\nverified\npaused: token budget";
    check(&given, Ends(passed()), then);
}

#[test]
fn a_used_up_limit_is_raised_before_resuming() {
    let given = [ready(contract()), vec![Begins, Uses(1_000, 5)]].concat();
    check(
        &given,
        Person(GoalCommand::Resume),
        "denied: the token budget is used up",
    );
    let raise = |tokens| {
        Person(GoalCommand::RaiseBudget(Raise {
            tokens,
            ..Raise::default()
        }))
    };
    check(&given, raise(10), "raised");
    check(
        &[given.clone(), vec![raise(10)]].concat(),
        Person(GoalCommand::Resume),
        "resumed",
    );
    check(
        &given,
        raise(0),
        "denied: the raise is not valid: it must raise at least one limit",
    );
    let turns = Person(GoalCommand::RaiseBudget(Raise {
        turns: 20_000,
        ..Raise::default()
    }));
    let too_many = "denied: the raise is not valid: the turn budget must stay at or below 20000";
    check(&given, turns, too_many);
}

#[test]
fn a_limit_that_there_is_not_cannot_be_raised() {
    let mut without = contract();
    without.budget.tokens = None;
    let raise = Person(GoalCommand::RaiseBudget(Raise {
        tokens: 5,
        ..Raise::default()
    }));
    let denied = "denied: the goal has no token limit to raise";
    check(&ready(without), raise, denied);
}
