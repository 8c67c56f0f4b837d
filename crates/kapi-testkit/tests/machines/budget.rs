//! Limits end a run, survive a restart, and only a person raises them.

use kapi_core::agent_end::AgentEnd;
use kapi_core::usage::Usage;
use kapi_goal::record::error::EngineError;
use kapi_goal::rules::budget::{BudgetLimit, Raise};
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::denied::GoalDenial;
use kapi_goal::rules::effect::{GoalAction, GoalEffect};
use kapi_goal::rules::event::Stop;
use kapi_goal::rules::outcome::GoalOutcome;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_machine::watch::{Activity, EffectWatch};

use crate::support::{Fixture, agent, contract, failing, person, until_cancelled, usage, well};

fn check_paused(goal: &Goal, limit: BudgetLimit) {
    assert_eq!(goal.status, GoalStatus::Paused);
    assert_eq!(goal.stop, Some(Stop::BudgetUsedUp { limit }));
}

#[test]
fn turns_end_a_run_and_more_of_them_let_it_go_on() {
    let fixture = Fixture::new();
    let mut contract = contract();
    contract.budget.turns = 2;
    let id = fixture.approved(&contract);
    let goal = fixture.drive(&id, &|effect, _| failing(effect));
    check_paused(&goal, BudgetLimit::Turns);
    assert_eq!(goal.spent.turns, 2);

    // Another process sees the same, and neither resuming nor driving goes round it.
    let project = fixture.project();
    assert_eq!(project.load(&id).unwrap(), goal);
    let denied = project.submit(&id, &person(), &GoalCommand::Resume);
    let Err(EngineError::Denied(GoalDenial::BudgetUsedUp { limit })) = denied else {
        panic!("{denied:?}")
    };
    assert_eq!(limit, BudgetLimit::Turns);
    let driven = fixture.drive(&id, &|effect, _| panic!("{} was performed", effect.id));
    assert_eq!(driven, goal);

    let raise = Raise {
        turns: 1,
        ..Raise::default()
    };
    project
        .submit(&id, &person(), &GoalCommand::RaiseBudget(raise))
        .unwrap();
    project
        .submit(&id, &person(), &GoalCommand::Resume)
        .unwrap();
    let goal = fixture.drive(&id, &|effect, _| well(effect));
    assert_eq!((goal.status, goal.spent.turns), (GoalStatus::Done, 3));
}

#[test]
fn tokens_end_an_agent_while_it_runs() {
    let fixture = Fixture::new();
    let mut contract = contract();
    contract.budget.tokens = Some(100);
    let id = fixture.approved(&contract);
    let goal = fixture.drive(&id, &|effect, watch| match &effect.action {
        GoalAction::RunAgent(_) => {
            (watch.notice)(Activity::Used(usage(60)));
            (watch.notice)(Activity::Used(usage(60)));
            until_cancelled(watch)
        }
        _ => well(effect),
    });
    check_paused(&goal, BudgetLimit::Tokens);
    assert_eq!(goal.spent.executor.tokens(), 120);
    assert_eq!(goal.in_flight, None);
}

#[test]
fn money_in_the_outcome_counts() {
    let fixture = Fixture::new();
    let mut contract = contract();
    contract.budget.usd_micros = Some(1_000);
    let id = fixture.approved(&contract);
    let act = |effect: &GoalEffect, _: &EffectWatch<'_>| match (&effect.action, well(effect)) {
        (GoalAction::RunAgent(_), GoalOutcome::Agent(mut run)) => {
            run.usage = Usage {
                usd_micros: Some(600),
                ..usage(1)
            };
            GoalOutcome::Agent(run)
        }
        _ => failing(effect),
    };
    let goal = fixture.drive(&id, &act);
    check_paused(&goal, BudgetLimit::Usd);
    assert_eq!(goal.spent.total().usd_micros, Some(1_200));
    assert_eq!(
        goal.spent.turns, 2,
        "a turn that was paid for comes to its verdict"
    );
}

#[test]
fn time_ends_whatever_runs() {
    for is_it in [
        (|action: &GoalAction| matches!(action, GoalAction::RunAgent(_)))
            as fn(&GoalAction) -> bool,
        |action| matches!(action, GoalAction::Verify(_)),
    ] {
        let fixture = Fixture::new();
        let mut contract = contract();
        contract.budget.wall_ms = Some(2_000);
        let id = fixture.approved(&contract);
        let goal = fixture.drive(&id, &|effect, watch| {
            if is_it(&effect.action) {
                until_cancelled(watch)
            } else {
                well(effect)
            }
        });
        check_paused(&goal, BudgetLimit::Wall);
        assert!(goal.spent.wall_ms >= 2_000, "{}", goal.spent.wall_ms);
        assert!(goal.spent.wall_ms < 4_000, "{}", goal.spent.wall_ms);
    }
}

#[test]
fn waiting_costs_no_time() {
    let fixture = Fixture::new();
    let mut contract = contract();
    contract.budget.wall_ms = Some(100_000);
    let id = fixture.approved(&contract);
    let goal = fixture.drive(&id, &|effect, watch| match &effect.action {
        GoalAction::RunAgent(_) if effect.id.as_str().ends_with("a1") => {
            let kind = kapi_core::agent_end::ProviderFailureKind::RateLimited;
            agent(AgentEnd::Provider(crate::support::failure(kind)))
        }
        GoalAction::Wait { .. } => {
            // Thousands of looks at the clock go by.
            let begun = std::time::Instant::now();
            while begun.elapsed().as_millis() < 20 {
                (watch.notice)(Activity::Note {
                    text: "waiting".to_owned(),
                });
            }
            GoalOutcome::Waited
        }
        _ => well(effect),
    });
    assert_eq!(goal.status, GoalStatus::Done);
    assert!(goal.spent.wall_ms < 5_000, "{}", goal.spent.wall_ms);
}

#[test]
fn use_is_recorded_while_it_happens() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    fixture.drive(&id, &|effect, watch| match &effect.action {
        GoalAction::RunAgent(_) => {
            (watch.notice)(Activity::Used(usage(60)));
            // Until the record shows it, as after a kill it must.
            while fixture.project().load(&id).unwrap().spent.executor.tokens() == 0 {
                (watch.notice)(Activity::Note {
                    text: "working".to_owned(),
                });
            }
            (watch.notice)(Activity::Used(usage(5)));
            well(effect)
        }
        _ => well(effect),
    });
    let goal = fixture.project().load(&id).unwrap();
    assert_eq!(goal.spent.executor.tokens(), 65);
}

#[test]
fn tokens_used_up_by_the_work_do_not_stop_its_proof() {
    let fixture = Fixture::new();
    let mut contract = contract();
    contract.budget.tokens = Some(100);
    let id = fixture.approved(&contract);
    let act = |effect: &GoalEffect, _: &EffectWatch<'_>| match (&effect.action, well(effect)) {
        (GoalAction::RunAgent(_), GoalOutcome::Agent(mut run)) => {
            run.usage = usage(500);
            GoalOutcome::Agent(run)
        }
        (_, outcome) => outcome,
    };
    assert_eq!(fixture.drive(&id, &act).status, GoalStatus::Done);
}
