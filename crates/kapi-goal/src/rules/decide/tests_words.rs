//! Words of a person, declarations of an agent and leave, when they cross an end or another attempt.
//!
//! Each was once a way to lose a word, to accept a stale claim, or past a limit.

use kapi_core::agent_end::Claim;
use kapi_core::judge::Judge;

use crate::rules::command::{GoalCommand, PersonCommand};
use crate::rules::contract::Contract;
use crate::rules::decide::tests::check;
use crate::rules::outcome::GoalOutcome;
use crate::rules::scenario::Step::{Begins, Calls, Ends, Person, Reports};
use crate::rules::scenario::{
    Step, cancelled, claims, committed, contract, crashed, passed, play, ready, worked,
};
use crate::rules::state::Goal;
use crate::rules::tool::ToolCall;
use crate::rules::wait::WaitFor;

fn unjudged() -> Contract {
    Contract {
        judge: Judge::None,
        ..contract()
    }
}

fn after(steps: &[Step]) -> Goal {
    let mut state = None;
    for step in steps {
        play(&mut state, step).unwrap();
    }
    state.unwrap()
}

fn person(command: PersonCommand) -> Step {
    Person(GoalCommand::Person(command))
}

fn say(text: &str) -> Step {
    person(PersonCommand::Say {
        text: text.to_owned(),
    })
}

fn complete() -> Step {
    Calls(ToolCall::Complete {
        evidence: "ok".to_owned(),
        summary: None,
    })
}

#[test]
fn words_that_come_as_a_run_ends_are_kept_for_the_next() {
    // The run that ends now began before the words: what it left is not the last word.
    let given = [ready(unjudged()), vec![Begins, say("stop")]].concat();
    check(
        &given,
        Reports(worked()),
        "cut off t001-agent-a1 after 11 tokens",
    );
    let goal = after(&[given, vec![Reports(worked())]].concat());
    assert_eq!(goal.said.as_deref(), Some("stop"));
}

#[test]
fn words_that_a_run_was_told_are_kept_while_it_only_crashes() {
    let reported = [ready(unjudged()), vec![say("stop"), Begins]].concat();
    let crash = after(&[reported.clone(), vec![Reports(crashed(3))]].concat());
    assert_eq!(crash.said.as_deref(), Some("stop"));
    let heard = after(&[reported, vec![Reports(worked())]].concat());
    assert_eq!((heard.said, heard.is_persons_turn), (None, true));
}

#[test]
fn a_branch_is_not_moved_over_words_that_nobody_heard() {
    let proved = [
        ready(unjudged()),
        vec![Ends(worked()), Ends(committed("one")), Ends(passed())],
    ]
    .concat();
    check(&proved, Begins, "intended t001-publish-a1");
    let spoken = [proved, vec![say("wait, the docs")]].concat();
    check(&spoken, Begins, "turn 1 PersonSpoke");
    check(
        &[spoken, vec![Begins]].concat(),
        Begins,
        "intended t002-agent-a1",
    );
}

#[test]
fn a_declaration_ends_with_its_attempt() {
    let declared = [ready(unjudged()), vec![Begins, complete()]].concat();
    for end in [
        vec![say("not yet")],
        vec![Person(GoalCommand::Interrupt), Reports(cancelled())],
    ] {
        let goal = after(&[declared.clone(), end].concat());
        assert_eq!(goal.journey.declared, None);
    }
    // The run whose words were cut off no longer speaks for the goal.
    let cut = [declared, vec![say("not yet")]].concat();
    check(
        &cut,
        complete(),
        "denied: wrong_run: until_done_complete is only for the current run, and the turn of agent 001-x-t001-agent-a1 \
         is over",
    );
}

#[test]
fn leave_is_not_given_by_resuming_nor_past_the_budget() {
    let ask = Calls(ToolCall::Wait {
        until: WaitFor::Approval {
            what: "deploy".to_owned(),
        },
        reason: "ask".to_owned(),
        timeout_ms: None,
    });
    let mut once = unjudged();
    once.budget.turns = 1;
    let parked = |contract: Contract| {
        [
            ready(contract),
            vec![
                Begins,
                ask.clone(),
                Reports(worked()),
                Ends(committed("one")),
            ],
        ]
        .concat()
    };
    check(
        &parked(unjudged()),
        Person(GoalCommand::Resume),
        "denied: needs_consent: it is waiting for approval; approve it with `kapi goal allow`, \
         or pause the goal",
    );
    let allow = person(PersonCommand::Allow {
        what: "deploy".to_owned(),
    });
    check(
        &parked(unjudged()),
        allow.clone(),
        "allowed deploy\nwoken 1: the user allowed \"deploy\"",
    );
    check(
        &parked(once),
        allow.clone(),
        "allowed deploy\npaused: turn budget",
    );
    let paused = [parked(unjudged()), vec![Person(GoalCommand::Interrupt)]].concat();
    check(
        &paused,
        allow,
        "denied: not_found: nothing asked for \"deploy\"",
    );
}

#[test]
fn a_result_of_the_last_turn_can_be_given_room_and_reopened() {
    let mut once = unjudged();
    once.budget.turns = 1;
    let done = [
        ready(once),
        vec![
            Ends(claims(Claim::Done)),
            Ends(committed("one")),
            Ends(passed()),
            Ends(GoalOutcome::Published {
                commit: "commit-one".to_owned(),
            }),
        ],
    ]
    .concat();
    let reopen = person(PersonCommand::Reopen {
        reason: "no docs".to_owned(),
    });
    check(&done, reopen.clone(), "denied: the turn budget is used up");
    let capacity = person(PersonCommand::SetTurns { turns: 3 });
    check(&done, capacity.clone(), "turns 3");
    check(
        &[done, vec![capacity]].concat(),
        reopen,
        "reopened: no docs",
    );
}
