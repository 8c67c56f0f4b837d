//! What every mode shares: who may do what, approvals, ends, effects, workers, evidence.

use kapi_core::actor::Actor;
use kapi_core::failure::Failure;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::mode::Mode;
use kapi_core::task_id::KernelTaskId;
use kapi_core::usage::Usage;
use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::command::WorkflowCommand;
use crate::rules::decide::effects::FAILURES_MAX;
use crate::rules::decide::{decide, worker};
use crate::rules::denied::WorkflowRule;
use crate::rules::effect::next;
use crate::rules::event::WorkflowEvent;
use crate::rules::evidence::{Weight, WorkflowEvidence};
use crate::rules::evolve::evolve;
use crate::rules::limits::LimitRaises;
use crate::rules::modes::interview::command::InterviewCommand;
use crate::rules::modes::interview::scenario::{drafted, interview, says, talk, to_interview};
use crate::rules::next_command::next_commands;
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::pending::Means;
use crate::rules::scenario::{
    NOW_MS, WorkflowTestScenario, agent, approve, given, human, identity, start_interview, terms,
};
use crate::rules::state::Workflow;
use crate::rules::worker::{Capability, NOTES_MAX, WorkerId, WorkerStatus};

fn denied(
    scenario: &mut WorkflowTestScenario,
    actor: &Actor,
    command: &WorkflowCommand,
) -> WorkflowRule {
    let before = scenario.clone();
    let denied = scenario.ask(actor, command).unwrap_err();
    assert_eq!(scenario.workflow, before.workflow);
    assert!(!denied.next_commands.is_empty(), "{denied:?}");
    denied.why
}

fn code(
    scenario: &mut WorkflowTestScenario,
    actor: &Actor,
    command: &WorkflowCommand,
) -> &'static str {
    denied(scenario, actor, command).code()
}

fn abandon() -> WorkflowCommand {
    WorkflowCommand::Abandon {
        reason: "no more".to_owned(),
    }
}

fn revise(text: &str) -> WorkflowCommand {
    WorkflowCommand::Revise {
        text: text.to_owned(),
    }
}

fn branch() -> WorkflowCommand {
    to_interview(InterviewCommand::Branch {
        mode: Mode::Ralph,
        workflow: GoalId::parse("002-build").unwrap(),
    })
}

#[test]
fn only_a_person_begins_and_only_with_terms_that_can_be_kept() {
    let start = start_interview(terms(), None);
    for actor in [agent(), Actor::Engine] {
        let denied = decide(None, &actor, &start, &given()).unwrap_err();
        assert_eq!(denied.why.code(), "not_human");
        assert_eq!(denied.next_commands, ["kapi status"]);
    }
    let denied = decide(None, &human(), &abandon(), &given()).unwrap_err();
    assert_eq!(denied.why, WorkflowRule::NotStarted);
    let mut broken = [terms(), terms(), terms(), terms(), terms()];
    broken[0].jobs = 0;
    broken[1].agent = " ".to_owned();
    broken[2].tokens = Some(0);
    broken[3].verify = vec![String::new()];
    broken[4].question_timeout_ms = 0;
    for terms in broken {
        let denied = decide(None, &human(), &start_interview(terms, None), &given());
        assert_eq!(denied.unwrap_err().why.code(), "malformed");
    }
    assert_eq!(
        code(&mut WorkflowTestScenario::begin(&start), &human(), &start),
        "already_started"
    );
}

#[test]
fn an_approval_is_of_the_bytes_that_were_shown_and_stand_in_the_file() {
    let mut scenario = drafted();
    let hash = scenario.workflow().pending.as_ref().unwrap().sha256.clone();
    let why = denied(&mut scenario, &human(), &approve("0ther", &hash, true));
    assert!(
        matches!(&why, WorkflowRule::SubjectChanged { shown, .. } if &**shown == "0ther"),
        "{why}"
    );
    assert_eq!(
        code(&mut scenario, &human(), &approve(&hash, "0ther", true)),
        "subject_changed"
    );
    let refused = denied(&mut scenario, &human(), &approve(&hash, &hash, false));
    assert!(
        matches!(&refused, WorkflowRule::RisksNotAccepted { risks, .. } if risks.contains("scored"))
    );
    for actor in [agent(), Actor::Engine] {
        assert_eq!(
            code(&mut scenario, &actor, &approve(&hash, &hash, true)),
            "not_human"
        );
    }
    let in_advance = WorkflowCommand::Approve {
        sha256: hash.clone(),
        found: hash.clone(),
        means: Means::InAdvance,
        accepts_risks: true,
    };
    assert_eq!(code(&mut scenario, &human(), &in_advance), "malformed");
    scenario.approve();
    let approval = &scenario.workflow().approvals[0];
    assert_eq!(
        (approval.by.as_str(), &approval.sha256),
        ("somebody", &hash)
    );
    assert_eq!(approval.accepted.len(), 1);
    assert_eq!(
        code(&mut scenario, &human(), &approve(&hash, &hash, true)),
        "no_pending_decision"
    );
}

#[test]
fn a_revision_ends_what_was_pending() {
    let mut scenario = drafted();
    let hash = scenario.workflow().pending.as_ref().unwrap().sha256.clone();
    assert_eq!(code(&mut scenario, &agent(), &revise("More.")), "not_human");
    assert_eq!(code(&mut scenario, &human(), &revise(" ")), "malformed");
    scenario.send(&human(), &revise("Windows, too."));
    assert_eq!(scenario.workflow().pending, None);
    assert_eq!(scenario.workflow().revisions[0].phase, "spec");
    assert_eq!(
        code(&mut scenario, &human(), &approve(&hash, &hash, true)),
        "no_pending_decision"
    );
}

#[test]
fn what_has_ended_stays_ended() {
    let mut linked = drafted();
    linked.approve();
    linked.send(&Actor::Engine, &branch());
    let mut abandoned = interview();
    abandoned.send(&human(), &abandon());
    for (scenario, status) in [
        (&mut linked, WorkflowStatus::Linked),
        (&mut abandoned, WorkflowStatus::Abandoned),
    ] {
        assert_eq!(scenario.workflow().status, status);
        for command in [
            abandon(),
            revise("More."),
            WorkflowCommand::Unblock {},
            approve("a", "a", true),
            says(1, "because"),
            to_interview(InterviewCommand::Enough {}),
            branch(),
        ] {
            assert_eq!(
                code(scenario, &human(), &command),
                "already_terminal",
                "{command:?}"
            );
        }
        let by = GoalId::parse("009-integration").unwrap();
        let mark = WorkflowCommand::MarkIntegrated { by };
        assert_eq!(code(scenario, &Actor::Engine, &mark), "wrong_mode");
        assert!(next(scenario.workflow()).is_empty());
    }
    let commands = next_commands(linked.workflow());
    assert_eq!(commands[0], "kapi ralph resume 002");
}

#[test]
fn an_effect_begins_once_and_only_when_it_is_wanted() {
    let mut scenario = interview();
    let effect = next(scenario.workflow())[0].id.clone();
    let intend = WorkflowCommand::Intend { effect };
    assert_eq!(code(&mut scenario, &human(), &intend), "not_engine");
    assert_eq!(scenario.send(&Actor::Engine, &intend).len(), 1);
    assert_eq!(scenario.send(&Actor::Engine, &intend), []);
    let stray = EffectId::new(9, "interviewer", 1);
    let other = WorkflowCommand::Intend {
        effect: stray.clone(),
    };
    assert_eq!(code(&mut scenario, &Actor::Engine, &other), "malformed");
    let usage = Usage::default();
    let report = WorkflowCommand::Report {
        effect: stray,
        outcome: Box::new(WorkflowOutcome::Cancelled { usage }),
    };
    assert_eq!(
        code(&mut scenario, &Actor::Engine, &report),
        "not_in_flight"
    );
    assert_eq!(code(&mut scenario, &agent(), &report), "not_engine");
}

fn failed(may_pass: bool, hint: Option<&str>) -> WorkflowOutcome {
    WorkflowOutcome::Failed {
        failure: Failure {
            message: "reach the model".to_owned(),
            hint: hint.map(str::to_owned),
        },
        may_pass,
        usage: Usage::default(),
    }
}

#[test]
fn what_fails_again_and_again_holds_it_up_until_a_person_lets_it_go_on() {
    let mut scenario = interview();
    let first = next(scenario.workflow())[0].id.clone();
    for times in 1..FAILURES_MAX {
        scenario.perform(failed(true, None));
        assert_eq!(scenario.workflow().failures.get(&first), Some(&times));
        assert_eq!(scenario.workflow().status, WorkflowStatus::Active);
    }
    scenario.perform(failed(true, Some("pay the bill")));
    let blocked = scenario.workflow().blocked.clone().unwrap();
    assert_eq!(blocked.reason, "failed to reach the model");
    assert_eq!(blocked.unblock, "pay the bill");
    assert_eq!(
        next_commands(scenario.workflow())[0],
        "kapi deep-interview resume 001"
    );
    for actor in [agent(), Actor::Engine] {
        assert_eq!(
            code(&mut scenario, &actor, &WorkflowCommand::Unblock {}),
            "not_human"
        );
    }
    scenario.send(&human(), &WorkflowCommand::Unblock {});
    assert_eq!(scenario.send(&human(), &WorkflowCommand::Unblock {}), []);
    assert_eq!(next(scenario.workflow())[0].id, first);
    scenario.perform(failed(false, None));
    assert_eq!(scenario.workflow().status, WorkflowStatus::Blocked);
}

#[test]
fn what_is_stopped_is_asked_for_again_under_the_same_name() {
    let mut scenario = interview();
    let first = next(scenario.workflow())[0].id.clone();
    let usage = Usage {
        input_tokens: 5,
        output_tokens: 2,
        usd_micros: Some(3),
        ..Usage::ZERO
    };
    let events = scenario.perform(WorkflowOutcome::Cancelled { usage });
    assert_eq!(events.len(), 1);
    assert_eq!(scenario.workflow().used, usage);
    assert_eq!(next(scenario.workflow())[0].id, first);
}

#[test]
fn a_used_up_budget_holds_up_whoever_would_ask_next_and_no_one_else() {
    let mut limited = terms();
    limited.tokens = Some(100);
    let mut scenario = WorkflowTestScenario::begin(&start_interview(limited, None));
    let much = Usage {
        input_tokens: 100,
        output_tokens: 0,
        usd_micros: None,
        ..Usage::ZERO
    };
    let unreadable = || WorkflowOutcome::Unreadable {
        by: identity("r1"),
        why: "answer in JSON".to_owned(),
        usage: much,
    };
    scenario.perform(unreadable());
    let blocked = scenario.workflow().blocked.clone().unwrap();
    assert_eq!(blocked.reason, "the workflow has used up its token limit");
    let more = LimitRaises {
        tokens: 50,
        usd_micros: 0,
        wall_ms: 0,
    };
    scenario.send(&human(), &WorkflowCommand::RaiseLimits { more });
    scenario.send(&human(), &WorkflowCommand::Unblock {});
    assert_eq!(scenario.workflow().status, WorkflowStatus::Active);
    talk(&mut scenario, "What hurts?", "Lost sign-ins.");
    assert_eq!(scenario.workflow().status, WorkflowStatus::Active);
    let effect = next(scenario.workflow())[0].id.clone();
    scenario.send(
        &Actor::Engine,
        &WorkflowCommand::Intend {
            effect: effect.clone(),
        },
    );
    scenario.send(
        &Actor::Engine,
        &WorkflowCommand::Progress {
            effect,
            usage: much,
        },
    );
    assert_eq!(scenario.workflow().status, WorkflowStatus::Blocked);
}

#[test]
fn only_the_engine_records_validation_and_every_reference_can_be_followed() {
    let mut scenario = interview();
    let evidence = |weight, reference: &str| {
        WorkflowCommand::RecordEvidence(Box::new(WorkflowEvidence {
            weight,
            kind: "note".to_owned(),
            summary: "seen".to_owned(),
            reference: reference.to_owned(),
            command: None,
            exit_code: None,
            role: None,
            verdict: None,
            phase: None,
            artifacts: Vec::new(),
            worker: None,
            verifier: None,
            at_ms: NOW_MS,
        }))
    };
    let validation = evidence(Weight::Validation, "git:c0ffee");
    for actor in [human(), agent()] {
        assert_eq!(code(&mut scenario, &actor, &validation), "not_engine");
        scenario.send(&actor, &evidence(Weight::Narrative, "file:notes.md"));
    }
    scenario.send(&Actor::Engine, &validation);
    for reference in ["", "notes.md", "file:", "git: ", "ftp:x"] {
        let narrative = evidence(Weight::Narrative, reference);
        assert_eq!(
            code(&mut scenario, &human(), &narrative),
            "malformed",
            "{reference}"
        );
    }
    assert_eq!(scenario.workflow().evidence.len(), 3);
}

fn fold(workflow: &mut Workflow, events: &[WorkflowEvent]) {
    let mut location = Some(workflow.clone());
    for event in events {
        evolve(&mut location, event);
    }
    *workflow = location.unwrap();
}

#[test]
fn workers_are_prepared_given_work_and_closed_with_the_workflow() {
    let mut scenario = interview();
    let mut workflow = scenario.workflow().clone();
    let effect = |number| EffectId::new(1, "work", number);
    let given = given();
    for (number, task) in [(1, "T-001"), (2, "T-002")] {
        let events = worker::dispatch(&workflow, &effect(number), task, &given);
        assert_eq!(events.len(), 2, "a new worker and its work");
        fold(&mut workflow, &events);
    }
    let goal = GoalId::parse("005-first").unwrap();
    let rested = |commit: Option<&str>| WorkflowOutcome::Rested {
        goal: goal.clone(),
        worktree: Some("/worktrees/003-x".to_owned()),
        status: kapi_goal::rules::state::GoalStatus::Done,
        commit: commit.map(str::to_owned),
        reason: None,
    };
    let done = worker::rested(&workflow, &effect(1), &rested(Some("abc")));
    fold(&mut workflow, &done);
    let waiting = worker::rested(&workflow, &effect(2), &rested(None));
    fold(&mut workflow, &waiting);
    let states: Vec<_> = workflow
        .workers
        .iter()
        .map(|worker| worker.status)
        .collect();
    assert_eq!(states, [WorkerStatus::Idle, WorkerStatus::Waiting]);
    assert_eq!(workflow.workers[0].dispatches[0].goal, Some(goal.clone()));
    let isolated = workflow.workers[0].isolated.as_deref();
    assert_eq!(isolated, Some("/worktrees/003-x"));
    let ended = workflow.workers[0].dispatches[0].ended.as_deref();
    assert_eq!(ended, Some("proved abc in goal 005-first"));
    let again = worker::dispatch(&workflow, &effect(3), "T-002", &given);
    let WorkflowEvent::WorkerDispatched { worker, .. } = &again[0] else {
        panic!("{again:?}");
    };
    assert_eq!(worker.0, "w2", "who had the work goes on with it");
    let third = worker::dispatch(&workflow, &effect(4), "T-003", &given);
    fold(&mut workflow, &third);
    queued(&mut workflow, &effect(4));
    assert_eq!(workflow.workers.len(), 2, "who is idle takes the next");
    assert_eq!(workflow.workers[0].capability, Capability::Goal);
    scenario.workflow = Some(workflow);
    for number in 0..NOTES_MAX + 5 {
        let heard = WorkflowCommand::RefreshWorker {
            worker: WorkerId("w1".to_owned()),
            note: Some(format!("line {number}\nand more")),
            terminal: Some("kapi-001:1".to_owned()),
            isolated: None,
        };
        assert_eq!(code(&mut scenario, &agent(), &heard), "not_engine");
        scenario.send(&Actor::Engine, &heard);
    }
    let first = &scenario.workflow().workers[0];
    assert_eq!(first.notes.len(), NOTES_MAX);
    assert_eq!(first.notes.last().unwrap(), "line 24 and more");
    assert_eq!(first.terminal.as_deref(), Some("kapi-001:1"));
    let events = scenario.send(&human(), &abandon());
    assert!(
        matches!(events[0], WorkflowEvent::WorkerClosed { .. }) && events.len() == 3,
        "{events:?}"
    );
    let closed =
        |worker: &crate::rules::worker::WorkflowWorker| worker.status == WorkerStatus::Closed;
    assert!(scenario.workflow().workers.iter().all(closed));
}

/// Records which task of the kernel has a piece of work, which is said once and by the engine only.
fn queued(workflow: &mut Workflow, effect: &EffectId) {
    let goal = GoalId::parse("006-third").unwrap();
    let task = KernelTaskId::new(7);
    let said = |actor: &Actor, effect: &EffectId, workflow: &Workflow| {
        worker::queue(workflow, actor, effect, &goal, task)
    };
    let strange = EffectId::new(9, "work", 9);
    assert!(said(&Actor::Engine, &strange, workflow).is_err());
    assert!(said(&agent(), effect, workflow).is_err());
    let events = said(&Actor::Engine, effect, workflow).unwrap();
    fold(workflow, &events);
    assert_eq!(said(&Actor::Engine, effect, workflow).unwrap(), []);
    let has_it = |worker: &&crate::rules::worker::WorkflowWorker| {
        let last = worker.dispatches.last().unwrap();
        last.effect == *effect && last.task == Some(task) && last.goal.as_ref() == Some(&goal)
    };
    let worker = workflow.workers.iter().find(has_it).unwrap();
    assert_eq!(worker.status, WorkerStatus::Dispatched);
}

#[test]
fn what_to_type_next_names_the_workflow() {
    let check = |scenario: &WorkflowTestScenario, expected: &[&str]| {
        assert_eq!(next_commands(scenario.workflow()), expected);
    };
    check(
        &interview(),
        &["kapi deep-interview resume 001", "kapi status 001"],
    );
    let mut scenario = drafted();
    check(
        &scenario,
        &[
            "kapi deep-interview approve 001",
            "kapi deep-interview resume 001 --revise 'what should change'",
            "kapi inbox",
        ],
    );
    scenario.approve();
    check(
        &scenario,
        &[
            "kapi ralph --from 001",
            "kapi autoresearch --from 001",
            "kapi deep-interview resume 001 --reopen 'what is not clear yet'",
        ],
    );
}
