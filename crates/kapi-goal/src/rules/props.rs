//! What holds for every sequence of commands, however foolish.
//!
//! Commands are drawn at random, biased to those that fit, so that long stories come about.

use kapi_core::actor::Actor;
use kapi_core::agent_end::ProviderFailureKind;
use kapi_core::failure::Failure;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::judge::{Judge, JudgeUnavailable};
use kapi_core::usage::Usage;
use kapi_core::verdict::{JudgeAnswer, JudgeVerdict};
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use proptest::test_runner::Config;

use crate::rules::budget::Raise;
use crate::rules::command::{GoalCommand, PersonCommand};
use crate::rules::decide::decide;
use crate::rules::effect::next;
use crate::rules::event::{ApprovalMeans, GoalEvent};
use crate::rules::evolve::evolve;
use crate::rules::outcome::GoalOutcome;
use crate::rules::scenario::{
    committed, contract, failed, judged, passed, provider, verdict, worked,
};
use crate::rules::state::{Goal, GoalStatus};

/// One random request; effects are chosen when it is made.
#[derive(Debug, Clone)]
enum Ask {
    Create {
        turns: u32,
        has_judge: bool,
        is_open: bool,
    },
    Approve,
    Intend,
    Progress {
        tokens: u64,
        elapsed_ms: u64,
    },
    Report(GoalOutcome),
    ReportStray(GoalOutcome),
    Interrupt,
    Resume,
    Cancel,
    ChangeJudge,
    Raise(u32),
}

fn outcome() -> impl Strategy<Value = GoalOutcome> {
    prop_oneof![
        Just(GoalOutcome::Workspace {
            path: "/w".to_owned()
        }),
        Just(worked()),
        Just(provider(ProviderFailureKind::ServerError, Some(5))),
        Just(provider(ProviderFailureKind::Unauthorized, None)),
        "[a-c]".prop_map(|tree| committed(&tree)),
        Just(passed()),
        Just(failed()),
        Just(verdict(JudgeVerdict::Done)),
        Just(verdict(JudgeVerdict::Continue)),
        Just(verdict(JudgeVerdict::Impossible)),
        Just(judged(JudgeAnswer::Malformed {
            text: String::new()
        })),
        Just(GoalOutcome::Published {
            commit: "c".to_owned()
        }),
        Just(GoalOutcome::Waited),
        Just(GoalOutcome::Cancelled {
            usage: Usage::default(),
            session: None
        }),
        Just(GoalOutcome::Failed(Failure {
            message: "x".to_owned(),
            hint: None
        })),
    ]
}

/// An outcome that fits the effect under way, so that stories get long.
fn fitting(goal: &Goal, choice: u8) -> GoalOutcome {
    use crate::rules::state::GoalStage;
    if goal.wait_until_ms.is_some() {
        return GoalOutcome::Waited;
    }
    match (goal.stage, choice % 4) {
        (GoalStage::Workspace | GoalStage::Ended, _) => GoalOutcome::Workspace {
            path: "/w".to_owned(),
        },
        (GoalStage::Setup | GoalStage::Distill, _) => worked(),
        (GoalStage::Agent, 0) => provider(ProviderFailureKind::RateLimited, None),
        (GoalStage::Agent, _) => worked(),
        (GoalStage::Commit, 0) => committed("same"),
        (GoalStage::Commit, choice) => committed(&format!("tree-{}-{choice}", goal.turn)),
        (GoalStage::Baseline | GoalStage::Verify, 0 | 1) => passed(),
        (GoalStage::Baseline | GoalStage::Verify, _) => failed(),
        (GoalStage::Judge, 0) => verdict(JudgeVerdict::Done),
        (GoalStage::Judge, 1) => judged(JudgeAnswer::Malformed {
            text: String::new(),
        }),
        (GoalStage::Judge, _) => verdict(JudgeVerdict::Continue),
        (GoalStage::Publish, _) => GoalOutcome::Published {
            commit: "c".to_owned(),
        },
    }
}

fn ask() -> impl Strategy<Value = Ask> {
    prop_oneof![
        1 => (1..4_u32, any::<bool>(), any::<bool>()).prop_map(|(turns, has_judge, is_open)| {
            Ask::Create { turns, has_judge, is_open }
        }),
        2 => Just(Ask::Approve),
        8 => Just(Ask::Intend),
        2 => (0..50_u64, 0..50_u64)
            .prop_map(|(tokens, elapsed_ms)| Ask::Progress { tokens, elapsed_ms }),
        4 => outcome().prop_map(Ask::Report),
        1 => outcome().prop_map(Ask::ReportStray),
        1 => Just(Ask::Interrupt),
        2 => Just(Ask::Resume),
        1 => Just(Ask::Cancel),
        1 => (0..3_u32).prop_map(Ask::Raise),
        1 => Just(Ask::ChangeJudge),
    ]
}

fn actor() -> impl Strategy<Value = Actor> {
    prop_oneof![
        5 => Just(None),
        1 => Just(Some(Actor::Human { user: "ada".to_owned() })),
        1 => Just(Some(Actor::Engine)),
        1 => Just(Some(Actor::Agent { run: "r".to_owned() })),
    ]
    .prop_map(|actor| {
        actor.unwrap_or(Actor::Human {
            user: "fit".to_owned(),
        })
    })
}

fn command(goal: Option<&Goal>, ask: &Ask, choice: u8) -> GoalCommand {
    let stray = EffectId::new(7, "agent", 7);
    let planned = goal
        .and_then(next)
        .map_or_else(|| stray.clone(), |effect| effect.id);
    let in_flight = goal.and_then(|goal| goal.in_flight.as_ref());
    let running = in_flight.map_or_else(|| stray.clone(), |in_flight| in_flight.effect.clone());
    match ask {
        Ask::Create {
            turns,
            has_judge,
            is_open,
        } => {
            let mut contract = contract();
            contract.budget.turns = *turns;
            contract.judge = if *has_judge { Judge::Same } else { Judge::None };
            let rule = if *is_open {
                JudgeUnavailable::Open
            } else {
                JudgeUnavailable::Closed
            };
            contract.judge_unavailable = rule;
            GoalCommand::Create {
                id: GoalId::parse("001-x").unwrap(),
                contract: Box::new(contract),
                contract_hash: "hash".to_owned(),
                setup: false,
            }
        }
        Ask::Approve => GoalCommand::Approve {
            contract_hash: "hash".to_owned(),
            means: ApprovalMeans::YesFlag,
        },
        Ask::Intend => GoalCommand::Intend { effect: planned },
        Ask::Progress { tokens, elapsed_ms } => {
            let usage = Usage {
                input_tokens: *tokens,
                ..Usage::ZERO
            };
            GoalCommand::Progress {
                effect: running,
                usage,
                elapsed_ms: *elapsed_ms,
            }
        }
        Ask::Report(outcome) => {
            // Mostly what fits, sometimes what came.
            let fits = goal
                .filter(|_| choice > 32)
                .map(|goal| fitting(goal, choice));
            let outcome = fits.unwrap_or_else(|| outcome.clone());
            GoalCommand::Report {
                effect: running,
                outcome,
                elapsed_ms: 1,
            }
        }
        Ask::ReportStray(outcome) => GoalCommand::Report {
            effect: stray,
            outcome: outcome.clone(),
            elapsed_ms: 1,
        },
        Ask::Interrupt => GoalCommand::Interrupt,
        Ask::Resume => GoalCommand::Resume,
        Ask::Cancel => GoalCommand::Cancel { reason: None },
        Ask::ChangeJudge => change_judge(),
        Ask::Raise(turns) => GoalCommand::RaiseBudget(Raise {
            turns: *turns,
            ..Raise::default()
        }),
    }
}

fn change_judge() -> GoalCommand {
    let judge = "gemini".to_owned();
    GoalCommand::Person(PersonCommand::ChangeJudge { judge })
}

/// The actor whose command it is, unless the story wants another.
fn fit_actor(actor: &Actor, command: &GoalCommand) -> Actor {
    match (actor, command) {
        (
            Actor::Human { user },
            GoalCommand::Intend { .. } | GoalCommand::Progress { .. } | GoalCommand::Report { .. },
        ) if user == "fit" => Actor::Engine,
        (actor, _) => actor.clone(),
    }
}

fn check_scenario(scenario: &[(Ask, Actor, u8)]) {
    let mut state: Option<Goal> = None;
    let mut events: Vec<GoalEvent> = Vec::new();
    for (idx, (ask, actor, choice)) in scenario.iter().enumerate() {
        let command = command(state.as_ref(), ask, *choice);
        let actor = fit_actor(actor, &command);
        let before = state.clone();
        let now_ms = i64::try_from(idx).unwrap();
        let Ok(new) = decide(state.as_ref(), &actor, &command, now_ms) else {
            continue;
        };
        let proposes = matches!(command, GoalCommand::Create { setup: false, .. });
        assert!(
            proposes || !matches!(actor, Actor::Agent { .. }),
            "an agent got {command:?} through"
        );
        if let Some(goal) = before.as_ref().filter(|goal| goal.status.is_terminal()) {
            let capacity = goal.takes_budget();
            let only_lands = new.iter().all(|event| {
                let raises = matches!(event, GoalEvent::BudgetRaised { .. });
                let lands = matches!(
                    event,
                    GoalEvent::EffectCancelled { .. } | GoalEvent::EffectProgressed { .. }
                );
                lands || (raises && capacity)
            });
            assert!(only_lands, "{} accepted {command:?}", goal.status);
        }
        for event in &new {
            evolve(&mut state, event);
        }
        events.extend(new);
        check_state(state.as_ref());
    }
    check_fold(&events, state.as_ref());
}

fn check_state(state: Option<&Goal>) {
    let Some(goal) = state else { return };
    let planned = next(goal);
    assert_eq!(
        planned.is_some(),
        goal.status == GoalStatus::Active,
        "{:?} {goal:?}",
        goal.status
    );
    assert_eq!(next(goal), planned, "asking again gives the same");
    if goal.status == GoalStatus::Done {
        assert!(
            goal.verify
                .as_ref()
                .is_some_and(kapi_check::rules::proof::verify_report::VerifyReport::passed)
        );
    }
    assert!(
        goal.spent.turns <= goal.budget.turns,
        "{:?} of {:?}",
        goal.spent,
        goal.budget
    );
    assert_eq!(
        goal.stop.is_some(),
        matches!(
            goal.status,
            GoalStatus::Blocked
                | GoalStatus::Stalled
                | GoalStatus::Paused
                | GoalStatus::Impossible
                | GoalStatus::Cancelled
        )
    );
}

/// Folding in two parts equals folding at once, wherever the cut is.
fn check_fold(events: &[GoalEvent], state: Option<&Goal>) {
    for cut in 0..=events.len() {
        let (prefix, rest) = events.split_at(cut);
        let mut folded = None;
        prefix.iter().for_each(|event| evolve(&mut folded, event));
        let mut again = folded.clone();
        rest.iter().for_each(|event| evolve(&mut again, event));
        assert_eq!(again.as_ref(), state);
    }
}

/// The most effects a goal may perform within these budgets, with room to spare.
const EFFECTS_MAX: u32 = 400;

proptest! {
    #![proptest_config(Config { cases: 1_000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn rules_hold_for_every_story(
        scenario in prop::collection::vec((ask(), actor(), any::<u8>()), 0..120)
    ) {
        check_scenario(&scenario);
    }

    #[test]
    fn budgets_end_every_run(choices in prop::collection::vec(any::<u8>(), 1..40)) {
        let mut state = None;
        let person = Actor::Human { user: "ada".to_owned() };
        let create = Ask::Create { turns: 3, has_judge: true, is_open: choices[0] > 127 };
        let opening = [create, Ask::Approve];
        for ask in &opening {
            let command = command(state.as_ref(), ask, 0);
            for event in decide(state.as_ref(), &person, &command, 0).unwrap() {
                evolve(&mut state, &event);
            }
        }
        let mut n_effects = 0;
        while let Some(effect) = state.as_ref().and_then(next) {
            n_effects += 1;
            assert!(n_effects < EFFECTS_MAX, "it goes on for ever");
            let choice = choices[n_effects as usize % choices.len()];
            let outcome = fitting(state.as_ref().unwrap(), choice);
            let intend = GoalCommand::Intend { effect: effect.id.clone() };
            let report = GoalCommand::Report { effect: effect.id, outcome, elapsed_ms: 1 };
            for command in [intend, report] {
                for event in decide(state.as_ref(), &Actor::Engine, &command, 0).unwrap() {
                    evolve(&mut state, &event);
                }
            }
        }
        assert_ne!(state.unwrap().status, GoalStatus::Active);
    }
}
