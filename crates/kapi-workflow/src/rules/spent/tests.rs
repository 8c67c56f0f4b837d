//! The sum over questions and goals, and how it is raised.

use kapi_core::actor::Actor;
use kapi_core::id::GoalId;
use kapi_core::usage::Usage;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_goal::rules::plan::task::PlanTaskId;

use crate::rules::command::WorkflowCommand;
use crate::rules::limits::{Amounts, GoalAccount, LimitRaises};
use crate::rules::scenario::{
    WorkflowTestScenario, agent, human, identity, start_interview, terms,
};
use crate::rules::spent::{left, limit, time_left_ms, time_limit_ms, used, used_up};
use crate::rules::state::Workflow;

fn amounts(tokens: u64, usd_micros: u64) -> Amounts {
    Amounts {
        tokens: Some(tokens),
        usd_micros: Some(usd_micros),
    }
}

fn usage(tokens: u64, usd_micros: u64) -> Usage {
    Usage {
        input_tokens: tokens,
        output_tokens: 0,
        usd_micros: Some(usd_micros),
        ..Usage::ZERO
    }
}

fn raise(tokens: u64, usd_micros: u64) -> WorkflowCommand {
    let more = LimitRaises {
        tokens,
        usd_micros,
        wall_ms: 0,
    };
    WorkflowCommand::RaiseLimits { more }
}

fn limited() -> WorkflowTestScenario {
    let mut limited = terms();
    (limited.tokens, limited.usd_micros) = (Some(100), Some(1_000));
    WorkflowTestScenario::begin(&start_interview(limited, None))
}

#[test]
fn questions_and_goals_are_one_sum() {
    let mut workflow: Workflow = limited().workflow.unwrap();
    workflow.used = usage(10, 100);
    for (id, tokens) in [("002-a", 30), ("003-b", 20)] {
        let account = GoalAccount {
            task: PlanTaskId::parse("T-001").unwrap(),
            attempt: 1,
            used: usage(tokens, 200),
        };
        workflow.goals.insert(GoalId::parse(id).unwrap(), account);
    }
    assert_eq!(used(&workflow), usage(60, 500));
    assert_eq!(left(&workflow), amounts(40, 500));
    assert_eq!(used_up(&workflow), None);
    workflow.used = usage(10, 900);
    let (reason, unblock) = used_up(&workflow).unwrap();
    assert_eq!(reason, "the workflow has used up its cost limit");
    assert_eq!(
        unblock,
        "raise the limit and resume: kapi deep-interview resume 001 --usd +5"
    );
    workflow.raised.usd_micros = 1;
    assert_eq!(limit(&workflow), amounts(100, 1_001));
    workflow.raised.usd_micros = 500;
    assert_eq!(used_up(&workflow), None);
}

#[test]
fn amounts_are_shared_out_and_never_less_than_nothing() {
    let ten = amounts(10, 7);
    assert_eq!(ten.part(3), amounts(3, 2));
    assert_eq!(ten.part(100), amounts(1, 1), "something stays something");
    assert_eq!(amounts(0, 7).part(2), amounts(0, 3));
    assert_eq!(ten.less(&usage(11, 3)), amounts(0, 4));
    let aside = Amounts {
        tokens: Some(4),
        usd_micros: None,
    };
    assert_eq!(ten.without(&aside), amounts(6, 7));
    assert_eq!(ten.beyond(&usage(5, 5)), amounts(15, 12));
    assert!(Amounts::default().is_unlimited() && !Amounts::default().is_used_up());
    assert_eq!(Amounts::default().less(&usage(9, 9)), Amounts::default());
}

#[test]
fn only_a_person_raises_and_only_what_is_limited() {
    let mut scenario = limited();
    for actor in [agent(), Actor::Engine] {
        let denied = scenario.ask(&actor, &raise(1, 0)).unwrap_err();
        assert_eq!(denied.why.code(), "not_human");
    }
    let denied = scenario.ask(&human(), &raise(0, 0)).unwrap_err();
    assert_eq!(denied.why.code(), "malformed");
    scenario.send(&human(), &raise(5, 0));
    scenario.send(&human(), &raise(5, 1));
    assert_eq!(limit(scenario.workflow()), amounts(110, 1_001));
    let mut scenario = WorkflowTestScenario::begin(&start_interview(terms(), None));
    for more in [raise(1, 0), raise(0, 1)] {
        let denied = scenario.ask(&human(), &more).unwrap_err();
        assert_eq!(denied.why.code(), "malformed", "there is no limit");
    }
}

#[test]
fn going_on_alone_allows_nothing_more() {
    let mut scenario = limited();
    scenario.perform(crate::rules::outcome::WorkflowOutcome::Unreadable {
        by: identity("r1"),
        why: "answer in JSON".to_owned(),
        usage: usage(100, 1),
    });
    assert_eq!(scenario.workflow().status, WorkflowStatus::Blocked);
    let denied = scenario
        .ask(&human(), &WorkflowCommand::Unblock {})
        .unwrap_err();
    assert_eq!(denied.why.code(), "not_ready");
    let said = denied.why.to_string();
    assert!(said.contains("--tokens +1000000"), "{said}");
    assert_eq!(
        denied.next_commands[0],
        "kapi deep-interview resume 001 --tokens +1000000"
    );
    scenario.send(&human(), &raise(10, 0));
    assert_eq!(
        scenario.workflow().status,
        WorkflowStatus::Blocked,
        "raising begins nothing"
    );
    scenario.send(&human(), &WorkflowCommand::Unblock {});
    assert_eq!(scenario.workflow().status, WorkflowStatus::Active);
}

#[test]
fn time_at_work_is_limited_and_raised_like_the_rest() {
    let mut limited = terms();
    limited.wall_ms = Some(60_000);
    let mut scenario = WorkflowTestScenario::begin(&start_interview(limited, None));
    let used = |ms| WorkflowCommand::UseTime { ms };
    let denied = scenario.ask(&human(), &used(1)).unwrap_err();
    assert_eq!(denied.why.code(), "not_engine");
    scenario.send(&Actor::Engine, &used(59_999));
    assert_eq!(scenario.workflow().status, WorkflowStatus::Active);
    assert_eq!(time_left_ms(scenario.workflow()), Some(1));
    scenario.send(&Actor::Engine, &used(30_001));
    assert_eq!(scenario.workflow().status, WorkflowStatus::Blocked);
    let denied = scenario
        .ask(&human(), &WorkflowCommand::Unblock {})
        .unwrap_err();
    assert_eq!(denied.why.code(), "not_ready");
    assert_eq!(
        denied.next_commands[0],
        "kapi deep-interview resume 001 --wall +30m"
    );
    let text = serde_json::to_string(scenario.workflow()).unwrap();
    assert!(text.contains(r#""wall_used_ms":90000"#), "{text}");
    assert_eq!(
        &serde_json::from_str::<Workflow>(&text).unwrap(),
        scenario.workflow()
    );
    let more = |wall_ms| WorkflowCommand::RaiseLimits {
        more: LimitRaises {
            tokens: 0,
            usd_micros: 0,
            wall_ms,
        },
    };
    scenario.send(&human(), &more(60_000));
    scenario.send(&human(), &WorkflowCommand::Unblock {});
    assert_eq!(time_limit_ms(scenario.workflow()), Some(120_000));
    assert_eq!(time_left_ms(scenario.workflow()), Some(30_000));

    let mut unlimited = WorkflowTestScenario::begin(&start_interview(terms(), None));
    let events = unlimited.ask(&Actor::Engine, &used(1)).unwrap();
    assert_eq!(events, [], "nobody counts what is not limited");
    let denied = unlimited.ask(&human(), &more(1)).unwrap_err();
    assert_eq!(denied.why.code(), "malformed");
}
