//! A denied command changes not one byte on disk.

use kapi_core::actor::Actor;
use kapi_core::id::{EffectId, GoalId, Slug};
use kapi_core::usage::Usage;
use kapi_goal::record::error::EngineError;
use kapi_goal::rules::budget::Raise;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::event::ApprovalMeans;
use kapi_goal::rules::outcome::GoalOutcome;
use kapi_goal::rules::state::GoalStatus;

use crate::support::{Fixture, contract, failing, person, well};

/// Asks, expects a denial, and compares the disk and the count of its operations.
fn check(fixture: &Fixture, id: &GoalId, actor: &Actor, command: &GoalCommand, expected: &str) {
    let before = (fixture.disk.snapshot(), fixture.disk.ops());
    let result = fixture.project().submit(id, actor, command);
    let Err(EngineError::Denied(denied)) = result else {
        panic!("{command:?}: {result:?}")
    };
    assert_eq!(denied.to_string(), expected);
    assert_eq!(
        (fixture.disk.snapshot(), fixture.disk.ops()),
        before,
        "{command:?}"
    );
}

fn agent() -> Actor {
    Actor::Agent {
        run: "001-try.t001-agent-a1".to_owned(),
    }
}

fn approve(hash: &str) -> GoalCommand {
    GoalCommand::Approve {
        contract_hash: hash.to_owned(),
        means: ApprovalMeans::YesFlag,
    }
}

fn check_all(fixture: &Fixture, id: &GoalId, cases: &[(&Actor, GoalCommand, &str)]) {
    for (actor, command, expected) in cases {
        check(fixture, id, actor, command, expected);
    }
}

/// What an agent hears when it asks for a person's command.
const BY_AGENT: &str = "agent 001-try.t001-agent-a1";

fn raise(turns: u32) -> GoalCommand {
    GoalCommand::RaiseBudget(Raise {
        turns,
        ..Raise::default()
    })
}

#[test]
fn before_approval() {
    let fixture = Fixture::new();
    let slug = Slug::parse("try").unwrap();
    let id = fixture
        .project()
        .create_goal(&person(), &slug, &contract())
        .unwrap();
    let hash = fixture.project().load(&id).unwrap().contract_hash;
    let intend = GoalCommand::Intend {
        effect: EffectId::new(0, "workspace", 1),
    };
    let by_agent = format!("only the user may approve a contract, not {BY_AGENT}");
    let by_engine = "only the user may approve a contract, not engine";
    let other_hash = "the contract does not have the approved hash (other)";
    check_all(
        &fixture,
        &id,
        &[
            (&agent(), approve(&hash), &by_agent),
            (&Actor::Engine, approve(&hash), by_engine),
            (&person(), approve("other"), other_hash),
            (
                &person(),
                GoalCommand::Resume,
                "the goal is proposed, so it cannot be resumed",
            ),
            (
                &person(),
                GoalCommand::Interrupt,
                "the goal is proposed, so it cannot be paused",
            ),
            (
                &Actor::Engine,
                intend,
                "the goal is proposed, so it cannot be worked on",
            ),
        ],
    );
}

#[test]
fn an_agent_asks_for_what_only_a_person_may_do() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    for (command, action) in [
        (GoalCommand::Cancel { reason: None }, "cancel a goal"),
        (raise(1), "raise a budget"),
        (GoalCommand::Interrupt, "interrupt a goal"),
        (GoalCommand::Resume, "resume a goal"),
    ] {
        let expected = format!("only the user may {action}, not {BY_AGENT}");
        check(&fixture, &id, &agent(), &command, &expected);
    }
}

#[test]
fn somebody_else_reports_effects() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let effect = EffectId::new(0, "workspace", 1);
    let outcome = GoalOutcome::Waited;
    let intend = GoalCommand::Intend {
        effect: effect.clone(),
    };
    let report = GoalCommand::Report {
        effect,
        outcome,
        elapsed_ms: 1,
    };
    let by_agent = format!("only the engine may report effects, not {BY_AGENT}");
    let by_person = "only the engine may report effects, not human ada";
    check_all(
        &fixture,
        &id,
        &[
            (&agent(), intend, &by_agent),
            (&person(), report, by_person),
        ],
    );
}

#[test]
fn an_effect_that_is_not_under_way() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let effect = EffectId::new(0, "workspace", 1);
    let usage = Usage::default();
    let progress = GoalCommand::Progress {
        effect: effect.clone(),
        usage,
        elapsed_ms: 1,
    };
    let report = GoalCommand::Report {
        effect,
        outcome: GoalOutcome::Waited,
        elapsed_ms: 1,
    };
    let other = GoalCommand::Intend {
        effect: EffectId::new(1, "agent", 1),
    };
    let not_intended = "effect t000-workspace-a1 is not in progress";
    check_all(
        &fixture,
        &id,
        &[
            (&Actor::Engine, report, not_intended),
            (&Actor::Engine, progress, not_intended),
            (
                &Actor::Engine,
                other,
                "effect t001-agent-a1 is not in progress",
            ),
            (
                &person(),
                raise(0),
                "the raise is not valid: it must raise at least one limit",
            ),
        ],
    );
}

#[test]
fn when_it_has_ended() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    fixture.drive(&id, &|effect, _| well(effect));
    for (command, action) in [
        (GoalCommand::Cancel { reason: None }, "cancelled"),
        (GoalCommand::Resume, "resumed"),
    ] {
        let expected = format!("the goal is done, so it cannot be {action}");
        check(&fixture, &id, &person(), &command, &expected);
    }
    // A result that is not accepted needs room to be reopened.
    let raised = fixture.project().submit(&id, &person(), &raise(1)).unwrap();
    assert_eq!(raised.goal.status, GoalStatus::Done);
}

#[test]
fn when_its_budget_is_used_up() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    fixture.drive(&id, &|effect, _| failing(effect));
    check(
        &fixture,
        &id,
        &person(),
        &GoalCommand::Resume,
        "the turn budget is used up",
    );
}

#[test]
fn when_a_torn_tail_is_waiting_for_the_next_writer() {
    use kapi_sys::disk::Disk as _;
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let log = fixture.project().layout.goal(&id).events();
    fixture.disk.append(&log, b"{\"v\":1").unwrap();
    let only = "only the user may resume a goal, not agent 001-try.t001-agent-a1";
    check(&fixture, &id, &agent(), &GoalCommand::Resume, only);
}

#[test]
fn a_denied_proposal_leaves_no_trace_at_all() {
    let fixture = Fixture::new();
    let slug = Slug::parse("try").unwrap();
    let mut empty = contract();
    empty.intent = " ".to_owned();
    for (actor, contract) in [
        (Actor::Engine, contract()),
        (agent(), empty.clone()),
        (person(), empty),
    ] {
        let denied = fixture.project().create_goal(&actor, &slug, &contract);
        assert!(matches!(denied, Err(EngineError::Denied(_))), "{denied:?}");
        assert_eq!((fixture.disk.snapshot().len(), fixture.disk.ops()), (0, 0));
    }
}

#[test]
fn what_an_agent_proposes_waits_for_a_person() {
    let fixture = Fixture::new();
    let slug = Slug::parse("try").unwrap();
    let project = fixture.project();
    let id = project.create_goal(&agent(), &slug, &contract()).unwrap();
    let goal = project.load(&id).unwrap();
    assert_eq!(goal.status, GoalStatus::Proposed);
    let begun = project.begin_setup(&agent(), &slug, &contract());
    assert!(matches!(begun, Err(EngineError::Denied(_))), "{begun:?}");
}

#[test]
fn a_goal_that_does_not_exist_is_not_found_and_not_made() {
    let fixture = Fixture::new();
    let id = GoalId::parse("007-nothing").unwrap();
    let result = fixture
        .project()
        .submit(&id, &person(), &GoalCommand::Resume);
    assert!(
        matches!(result, Err(EngineError::NotFound { .. })),
        "{result:?}"
    );
    assert_eq!(fixture.disk.ops(), 0);
}
