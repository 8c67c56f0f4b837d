//! The loop: turns, effects, what is observed, and what a misbehaving world comes to.

use std::sync::Mutex;

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::agent_end::{AgentEnd, ProviderFailureKind};
use kapi_core::failure::Failure;
use kapi_core::judge::Judge;
use kapi_core::usage::Usage;
use kapi_goal::record::drive::{DriveObservation, GoalDriveError};
use kapi_goal::rules::effect::{GoalAction, GoalEffect};
use kapi_goal::rules::event::{Stop, TurnVerdict};
use kapi_goal::rules::outcome::GoalOutcome;
use kapi_goal::rules::state::GoalStatus;
use kapi_machine::watch::{Activity, EffectWatch};

use crate::support::{
    Fixture, agent, committed, contract, drive_in, failing, failure, kind, verified, well,
};

#[test]
fn a_goal_that_goes_well_is_done_in_one_turn() {
    let fixture = Fixture::new();
    let mut contract = contract();
    contract.judge = Judge::Same;
    let id = fixture.approved(&contract);
    let goal = fixture.drive(&id, &|effect, _| well(effect));
    assert_eq!(goal.status, GoalStatus::Done);
    assert_eq!(goal.result.as_deref(), Some("commit-of-tree-1"));
    assert_eq!(goal.workspace.as_deref(), Some("/worktree"));
    assert_eq!((goal.turn, goal.spent.turns), (1, 1));
    assert_eq!(
        fixture.kinds(&id),
        [
            "goal_created",
            "contract_approved",
            "effect_intended",
            "workspace_created",
            "effect_intended",
            "baseline_ended",
            "effect_intended",
            "agent_ended",
            "effect_intended",
            "candidate_committed",
            "effect_intended",
            "verify_ended",
            "effect_intended",
            "judge_ended",
            "effect_intended",
            "goal_done",
        ]
    );
    assert_eq!(fixture.project().load(&id).unwrap(), goal);
}

#[test]
fn a_liar_is_stalled() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let goal = fixture.drive(&id, &|effect, _| match &effect.action {
        GoalAction::Commit(_) => committed("base-tree"),
        _ => failing(effect),
    });
    assert_eq!(goal.status, GoalStatus::Stalled);
    assert_eq!(goal.stop, Some(Stop::NoProgress { turns: 3 }));
    assert_eq!(goal.result, None);
}

#[test]
fn a_tampered_file_is_never_done() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let goal = fixture.drive(&id, &|effect, _| match (&effect.action, well(effect)) {
        (GoalAction::Verify(_), GoalOutcome::Verified(report)) => {
            GoalOutcome::Verified(VerifyReport {
                tampered: vec!["test.sh".to_owned()],
                ..report
            })
        }
        (_, outcome) => outcome,
    });
    assert_eq!(goal.status, GoalStatus::Paused);
    assert_eq!(goal.last_verdict, Some(TurnVerdict::Tampered));
    assert!(goal.result.is_none());
}

#[test]
fn the_output_of_a_failed_check_opens_the_next_prompt() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let prompts = Mutex::new(Vec::new());
    fixture.drive(&id, &|effect, _| {
        if let GoalAction::RunAgent(task) = &effect.action {
            prompts
                .lock()
                .unwrap()
                .push((task.prompt.clone(), task.session.clone()));
        }
        match &effect.action {
            GoalAction::Verify(task) => verified(&task.tree, i32::from(task.tree == "tree-1")),
            _ => well(effect),
        }
    });
    let prompts = prompts.into_inner().unwrap();
    assert_eq!(prompts.len(), 2);
    assert!(!prompts[0].0.contains("1 test failed") && prompts[0].1.is_none());
    assert!(prompts[1].0.starts_with("Not done") && prompts[1].0.contains("1 test failed"));
    assert_eq!(prompts[1].1.as_deref(), Some("session-1"));
}

#[test]
fn a_failing_provider_costs_no_turn() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let waits = Mutex::new(Vec::new());
    let act = |effect: &GoalEffect, _: &EffectWatch<'_>| match &effect.action {
        GoalAction::RunAgent(_) if !effect.id.as_str().ends_with("a4") => agent(
            AgentEnd::Provider(failure(ProviderFailureKind::RateLimited)),
        ),
        GoalAction::Wait { until_ms } => {
            waits.lock().unwrap().push(*until_ms);
            GoalOutcome::Waited
        }
        _ => well(effect),
    };
    let goal = fixture.drive(&id, &act);
    assert_eq!((goal.status, goal.spent.turns), (GoalStatus::Done, 1));
    let waits = waits.into_inner().unwrap();
    assert_eq!(waits.len(), 3);
    assert!(
        waits[2] - waits[1] > waits[1] - waits[0],
        "each wait is longer: {waits:?}"
    );
}

#[test]
fn a_provider_that_keeps_failing_blocks_the_goal() {
    for (kind, n_attempts) in [
        (ProviderFailureKind::ServerError, 8),
        (ProviderFailureKind::Unauthorized, 1),
    ] {
        let fixture = Fixture::new();
        let id = fixture.approved(&contract());
        let attempts = Mutex::new(0);
        let goal = fixture.drive(&id, &|effect, _| match &effect.action {
            GoalAction::RunAgent(_) => {
                *attempts.lock().unwrap() += 1;
                agent(AgentEnd::Provider(failure(kind)))
            }
            _ => well(effect),
        });
        assert_eq!(goal.status, GoalStatus::Blocked);
        assert_eq!(
            goal.stop,
            Some(Stop::ProviderUnavailable {
                failure: failure(kind)
            })
        );
        assert_eq!(
            (attempts.into_inner().unwrap(), goal.spent.turns),
            (n_attempts, 0)
        );
    }
}

#[test]
fn what_happens_is_observed_in_order() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let mut seen = Vec::new();
    let act = |effect: &GoalEffect, watch: &EffectWatch<'_>| {
        if matches!(effect.action, GoalAction::Verify(_)) {
            (watch.notice)(Activity::Verifying {
                command: "sh test.sh".to_owned(),
            });
        }
        well(effect)
    };
    let project = fixture.project();
    drive_in(&project, &id, &act, &mut |observed| {
        seen.push(match observed {
            DriveObservation::Recorded(logged) => kind(&logged.event),
            DriveObservation::Performing(effect) => format!("> {}", effect.id),
            DriveObservation::Activity(activity) => format!("{activity:?}"),
        });
    })
    .unwrap();
    let verify = seen
        .iter()
        .position(|line| line == "> t001-verify-a1")
        .unwrap();
    assert_eq!(
        seen[verify - 1..verify + 3],
        [
            "effect_intended",
            "> t001-verify-a1",
            "Verifying { command: \"sh test.sh\" }",
            "verify_ended"
        ]
    );
}

#[test]
fn an_effect_that_talks_a_lot_does_not_fill_the_memory_or_block() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let goal = fixture.drive(&id, &|effect, watch| {
        for number in 0..10_000 {
            (watch.notice)(Activity::Note {
                text: number.to_string(),
            });
        }
        well(effect)
    });
    assert_eq!(goal.status, GoalStatus::Done);
}

#[test]
fn a_refusal_of_the_world_blocks_the_goal_and_can_be_resumed() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let refusal = Failure {
        message: "mount".to_owned(),
        hint: Some("try".to_owned()),
    };
    let goal = fixture.drive(&id, &|effect, _| match &effect.action {
        GoalAction::Verify(_) => GoalOutcome::Failed(refusal.clone()),
        _ => well(effect),
    });
    assert_eq!(goal.status, GoalStatus::Blocked);
    assert_eq!(
        goal.stop,
        Some(Stop::WorldFailed {
            failure: refusal.clone()
        })
    );
    let command = kapi_goal::rules::command::GoalCommand::Resume;
    fixture
        .project()
        .submit(&id, &crate::support::person(), &command)
        .unwrap();
    let goal = fixture.drive(&id, &|effect, _| {
        assert!(
            !effect.id.as_str().starts_with("t001-agent"),
            "the turn is not redone"
        );
        well(effect)
    });
    assert_eq!(goal.status, GoalStatus::Done);
}

#[test]
fn an_effect_that_is_cut_off_by_nobody_is_a_failure_and_no_endless_loop() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let goal = fixture.drive(&id, &|_, _| GoalOutcome::Cancelled {
        usage: Usage::default(),
        session: None,
    });
    assert_eq!(goal.status, GoalStatus::Blocked);
    assert!(
        matches!(goal.stop, Some(Stop::WorldFailed { .. })),
        "{:?}",
        goal.stop
    );
}

#[test]
fn a_panicking_effect_is_a_failure() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let goal = fixture.drive(&id, &|_, _| panic!("planted"));
    assert_eq!(goal.status, GoalStatus::Blocked);
    assert!(
        matches!(goal.stop, Some(Stop::WorldFailed { .. })),
        "{:?}",
        goal.stop
    );
}

#[test]
fn an_outcome_of_the_wrong_kind_is_refused() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let error = drive_in(
        &fixture.project(),
        &id,
        &|_, _| GoalOutcome::Waited,
        &mut |_| {},
    );
    let Err(GoalDriveError::Engine(error)) = error else {
        panic!("{error:?}")
    };
    assert_eq!(
        error.to_string(),
        "effect t000-workspace-a1 cannot end in a wait"
    );
}

#[test]
fn a_goal_is_driven_by_one_process_at_a_time() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let second = Mutex::new(None);
    fixture.drive(&id, &|effect, _| {
        let tried = drive_in(
            &fixture.project(),
            &id,
            &|effect, _| well(effect),
            &mut |_| {},
        );
        second.lock().unwrap().get_or_insert(tried);
        well(effect)
    });
    let Some(Err(GoalDriveError::Driven { goal, owner })) = second.into_inner().unwrap() else {
        panic!("the second drive was let in");
    };
    assert_eq!(goal, id);
    assert!(owner.contains("test"), "{owner}");
}

#[test]
fn an_interrupted_effect_goes_on_under_its_own_id() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    // A process that dies in the middle: the power fails while the agent works.
    let died = drive_in(
        &fixture.project(),
        &id,
        &|effect, _| {
            if matches!(effect.action, GoalAction::RunAgent(_)) {
                fixture
                    .disk
                    .crash_now(kapi_sys::sim_disk::Survival::Nothing);
            }
            well(effect)
        },
        &mut |_| {},
    );
    assert!(died.is_err());
    fixture.disk.reboot();
    let first = Mutex::new(None);
    let goal = fixture.drive(&id, &|effect, _| {
        first.lock().unwrap().get_or_insert(effect.id.to_string());
        well(effect)
    });
    assert_eq!(
        first.into_inner().unwrap().as_deref(),
        Some("t001-agent-a1")
    );
    assert_eq!(goal.status, GoalStatus::Done);
    let intents = fixture
        .kinds(&id)
        .iter()
        .filter(|kind| *kind == "effect_intended")
        .count();
    assert_eq!(
        intents, 6,
        "the intent that was on record is not recorded again"
    );
}
