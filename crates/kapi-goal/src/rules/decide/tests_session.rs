//! A goal whose turns a session takes: nothing is checked before it is claimed, a person's turn is
//! theirs, and everything else is decided as for any goal.

use kapi_core::agent_end::{AgentRun, Claim};

use crate::rules::command::{GoalCommand, PersonCommand};
use crate::rules::contract::{Contract, WorkPlace};
use crate::rules::decide::tests::check;
use crate::rules::decide::tests_spec::{after, unjudged};
use crate::rules::effect::{AgentPurpose, GoalAction, next};
use crate::rules::outcome::GoalOutcome;
use crate::rules::prompt::session;
use crate::rules::scenario::Step::{Begins, Ends, Person, Reports};
use crate::rules::scenario::{Step, claims, committed, goal_of, passed, ready, worked};
use crate::rules::state::GoalStatus;

fn of_session() -> Contract {
    let mut contract = unjudged();
    contract.working.place = WorkPlace::Session;
    contract
}

fn steps(more: &[Step]) -> Vec<Step> {
    [ready(of_session()), more.to_vec()].concat()
}

fn say() -> Step {
    let text = "and the docs?".to_owned();
    Person(GoalCommand::Person(PersonCommand::Say { text }))
}

/// A run in which no tool was used.
fn idle() -> GoalOutcome {
    let GoalOutcome::Agent(run) = worked() else {
        panic!("it is a run")
    };
    let score = Some(0);
    GoalOutcome::Agent(AgentRun { score, ..run })
}

#[test]
fn a_turn_that_nobody_claims_is_not_checked() {
    check(
        &steps(&[Ends(worked())]),
        Ends(committed("one")),
        "intended t001-commit-a1\ncommitted one\nturn 1 Unfinished",
    );
}

#[test]
fn a_claim_is_checked_like_any_other() {
    let claimed = steps(&[Ends(claims(Claim::Done)), Ends(committed("one"))]);
    let goal = after(&claimed);
    assert!(matches!(next(&goal).unwrap().action, GoalAction::Verify(_)));
    let published = after(&[claimed, vec![Ends(passed())]].concat());
    assert!(matches!(
        next(&published).unwrap().action,
        GoalAction::Publish { .. }
    ));
}

#[test]
fn a_turn_in_which_the_person_spoke_is_theirs() {
    let spoken = steps(&[say(), Begins, Reports(worked())]);
    check(
        &spoken,
        Ends(committed("one")),
        "intended t001-commit-a1\ncommitted one\nturn 1 PersonSpoke",
    );
    // Answering them without a tool is no spinning.
    let idle = steps(&[say(), Begins, Reports(idle()), Ends(committed("base-tree"))]);
    assert_eq!(after(&idle).status, GoalStatus::Active);
}

#[test]
fn a_turn_without_any_work_blocks_it() {
    let idle = after(&steps(&[Ends(idle()), Ends(committed("base-tree"))]));
    assert_eq!(idle.status, GoalStatus::Blocked, "{:?}", idle.stop);
}

#[test]
fn the_block_is_the_same_from_turn_to_turn_and_the_message_is_not() {
    let first = after(&steps(&[]));
    let second = after(&steps(&[Ends(worked()), Ends(committed("one"))]));
    let block = session::block(&first).unwrap();
    assert_eq!(session::block(&second).unwrap(), block);
    for part in ["make it work", "it works", "all must exit 0:\n- test"] {
        assert!(block.contains(part), "{part} in {block}");
    }
    let (first, second) = (session::message(&first), session::message(&second));
    assert!(first.contains("The contract is approved."), "{first}");
    assert!(
        second.contains("Go on. When the goal is reached"),
        "{second}"
    );
    assert!(second.contains("turn 2 of at most 3"), "{second}");
}

#[test]
fn what_nobody_approved_is_only_set_up() {
    let proposed = goal_of(of_session());
    let block = session::block(&proposed).unwrap();
    assert!(block.contains("not approved"), "{block}");
    let task = after(&steps(&[]));
    let Some(GoalAction::RunAgent(task)) = next(&task).map(|effect| effect.action) else {
        panic!("the session's turn is next")
    };
    assert_eq!(task.purpose, AgentPurpose::Work);
    assert_eq!(task.prompt, session::message(&after(&steps(&[]))));
}
