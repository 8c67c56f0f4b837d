//! The loop that keeps a workflow going: interrupts, failures, overtaking, several at once.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Barrier, Mutex};

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_check::rules::proof::verify_run::{Checks, VerifyRun};
use kapi_core::failure::Failure;
use kapi_core::id::GoalId;
use kapi_core::usage::Usage;
use kapi_core::workflow_key::WorkflowKey;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_goal::record::project::Project;
use kapi_goal::rules::state::GoalStatus;
use kapi_machine::watch::Activity;
use kapi_sys::disk::Disk as _;
use kapi_workflow::record::drive::{WorkflowDriveError, WorkflowObservation};
use kapi_workflow::record::requests::Approving;
use kapi_workflow::record::start::NewWorkflow;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::branch::BranchType;
use kapi_workflow::rules::changed::LandedPaths;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::context_begin::ContextBegin;
use kapi_workflow::rules::effect::{Verification, WorkflowAction, WorkflowEffect};
use kapi_workflow::rules::identity::ReviewerIdentity;
use kapi_workflow::rules::modes::interview::command::InterviewCommand;
use kapi_workflow::rules::modes::ralph::answer::RalphAnswer;
use kapi_workflow::rules::modes::ralph::plan::{
    Alternative, Consensus, Criterion, Isolation, Objections, PlanTask, RalphPlan, Synthesis,
};
use kapi_workflow::rules::modes::ralph::role::RalphRole;
use kapi_workflow::rules::modes::{Begin, Body, ModeAnswer, ModeCommand};
use kapi_workflow::rules::outcome::WorkflowOutcome;
use kapi_workflow::rules::pending::Means;
use kapi_workflow::rules::role::RoleSpec;
use kapi_workflow::rules::terms::WorkflowTerms;

use crate::support::{person, usage};
use crate::workflow_support::{Governed, answered, ask, asked, draft, terms, until_cancelled};

fn failed(may_pass: bool) -> WorkflowOutcome {
    WorkflowOutcome::Failed {
        failure: Failure {
            message: "reach the model".to_owned(),
            hint: None,
        },
        may_pass,
        usage: usage(1),
    }
}

#[test]
fn it_goes_on_until_its_person_is_asked() {
    let governed = Governed::new();
    let key = governed.interview("Keep sessions");
    let workflow = governed.drive(&key, &|effect, watch| {
        (watch.notice)(Activity::Used(usage(7)));
        answered(effect, ask("Which one?"))
    });
    let workflow = workflow.unwrap();
    let Body::Interview(interview) = &workflow.body else {
        panic!("{workflow:?}")
    };
    assert_eq!(interview.open().unwrap().number, 1);
    assert_eq!(workflow.used.tokens(), 7);
    assert_eq!(workflow.in_flight.len(), 0);
    let again = governed.drive(&key, &|effect, _| panic!("{} was performed", effect.id));
    assert_eq!(again.unwrap(), workflow);
}

#[test]
fn an_interrupt_stops_what_is_under_way_and_leaves_it_active() {
    let governed = Governed::new();
    let key = governed.interview("Keep sessions");
    let is_interrupted = AtomicBool::new(false);
    let workflow = governed.drive_with(
        &key,
        &|_, watch| {
            is_interrupted.store(true, Ordering::SeqCst);
            until_cancelled(watch)
        },
        &|| is_interrupted.load(Ordering::SeqCst),
        &mut |_| {},
    );
    let workflow = workflow.unwrap();
    assert_eq!(
        (workflow.status, workflow.in_flight.len()),
        (WorkflowStatus::Active, 0)
    );
    // The same is asked for again, and nothing was counted as a failure.
    assert!(workflow.failures.is_empty());
    let next = governed.drive(&key, &|effect, _| answered(effect, ask("Which one?")));
    assert!(next.unwrap().failures.is_empty());
}

#[test]
fn what_failed_is_left_alone_for_a_while_and_then_blocks() {
    let governed = Governed::new();
    let key = governed.interview("Keep sessions");
    let tries = AtomicU32::new(0);
    let mut delays = Vec::new();
    let workflow = governed.drive_with(
        &key,
        &|_, _| {
            tries.fetch_add(1, Ordering::SeqCst);
            failed(true)
        },
        &|| false,
        &mut |observed| {
            if let WorkflowObservation::Delayed { ms, .. } = observed {
                delays.push(ms);
            }
        },
    );
    assert_eq!(workflow.unwrap().status, WorkflowStatus::Blocked);
    assert_eq!(tries.load(Ordering::SeqCst), 4);
    assert_eq!(delays, [5_000, 15_000, 45_000]);
    let project = governed.project();
    Workflows::of(&project)
        .submit_workflow(&key, &person(), &WorkflowCommand::Unblock {})
        .unwrap();
    let workflow = governed.drive(&key, &|effect, _| answered(effect, ask("Which one?")));
    assert_eq!(workflow.unwrap().status, WorkflowStatus::Active);
}

#[test]
fn an_effect_whose_thread_panics_blocks_and_says_so() {
    let governed = Governed::new();
    let key = governed.interview("Keep sessions");
    let workflow = governed.drive(&key, &|_, _| panic!("a defect"));
    let blocked = workflow.unwrap().blocked.unwrap();
    assert!(
        blocked.reason.ends_with("its thread panicked"),
        "{blocked:?}"
    );
}

#[test]
fn an_effect_that_somebody_elses_request_makes_unwanted_is_stopped() {
    let governed = Governed::new();
    let key = governed.interview("Keep sessions");
    let begun = Mutex::new(BTreeSet::new());
    let workflow = governed.drive(&key, &|effect, watch| {
        let is_first = begun.lock().unwrap().is_empty();
        begun.lock().unwrap().insert(effect.id.to_string());
        if !is_first {
            return answered(effect, draft());
        }
        // Another process: what was being thought of is not wanted any more.
        let enough = WorkflowCommand::Mode(ModeCommand::Interview(InterviewCommand::Enough {}));
        let project = governed.project();
        Workflows::of(&project)
            .submit_workflow(&key, &person(), &enough)
            .unwrap();
        until_cancelled(watch)
    });
    assert!(workflow.unwrap().pending.is_some());
    assert_eq!(begun.lock().unwrap().len(), 2, "under two names");
}

#[test]
fn only_one_process_drives() {
    let governed = Governed::new();
    let key = governed.interview("Keep sessions");
    let lock = governed
        .project()
        .layout
        .workflow(key.mode, &key.id)
        .drive_lock();
    let held = governed.disk.lock(&lock, "somebody", 0).unwrap();
    let refused = governed.drive(&key, &|effect, _| panic!("{} was performed", effect.id));
    let Err(WorkflowDriveError::Driven { owner, .. }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(owner, "somebody");
    drop(held);
    assert!(
        governed
            .drive(&key, &|effect, _| answered(effect, draft()))
            .is_ok()
    );
}

#[test]
fn what_nobody_gave_leave_for_is_not_driven() {
    let governed = Governed::new();
    let key = governed.interview("Keep sessions");
    let home = governed.project().home.unwrap();
    let files = governed.disk.snapshot();
    let record = files.keys().find(|path| {
        path.starts_with(&home) && path.extension().is_some_and(|ending| ending == "json")
    });
    let record = record.unwrap();
    governed
        .disk
        .rename(record, &record.with_extension("gone"))
        .unwrap();
    let refused = governed.drive(&key, &|effect, _| panic!("{} was performed", effect.id));
    let error = refused.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("your home directory has no record"),
        "{error}"
    );
}

fn task(id: &str, touches: &str) -> PlanTask {
    PlanTask {
        id: kapi_goal::rules::plan::task::PlanTaskId::parse(id).unwrap(),
        title: format!("Do {id}"),
        description: "As the plan says.".to_owned(),
        depends_on: Vec::new(),
        touches: vec![touches.to_owned()],
        isolation: Isolation::Own,
        verify: vec!["sh check.sh".to_owned()],
        criteria: Vec::new(),
    }
}

fn plan() -> RalphPlan {
    let considered = |name: &str, rejected: Option<&str>| Alternative {
        name: name.to_owned(),
        summary: name.to_owned(),
        rejected: rejected.map(str::to_owned),
    };
    RalphPlan {
        summary: "Write it down first.".to_owned(),
        branch_type: BranchType::Feat,
        context: "There is a store.".to_owned(),
        options: vec![considered("log", None), considered("copy", Some("Slow."))],
        tasks: vec![
            task("T-001", "a/**"),
            task("T-002", "b/**"),
            task("T-003", "c/**"),
        ],
        criteria: vec![Criterion {
            id: "AC-1".to_owned(),
            text: "It holds.".to_owned(),
            verify: Some("sh check.sh".to_owned()),
            exempt: None,
        }],
        excluded: Vec::new(),
        risks: Vec::new(),
        verify: vec!["sh check.sh".to_owned()],
    }
}

/// Starts a build with terms of its own.
pub(crate) fn built(project: &Project<'_>, change: impl FnOnce(&mut WorkflowTerms)) -> WorkflowKey {
    let mut terms = terms();
    change(&mut terms);
    let new = NewWorkflow {
        begin: Begin::Ralph(ContextBegin {
            base: "b".repeat(40),
            interview: None,
            spec: None,
        }),
        terms,
        ..asked("Build the store")
    };
    Workflows::of(project)
        .start_workflow(&person(), &new)
        .unwrap()
        .key()
}

/// Returns that nothing of what a plan wants is there before the work.
pub(crate) fn nothing_yet(asked: &Verification) -> WorkflowOutcome {
    let run = |command: &String| VerifyRun {
        command: command.clone(),
        checks: Checks::Visible,
        exit_code: Some(1),
        timed_out: false,
        duration_ms: 1,
        output_tail: String::new(),
        output_bytes: 0,
        tally: None,
    };
    WorkflowOutcome::Verified(VerifyReport {
        commit: asked.commit.clone(),
        tree: "b".repeat(40),
        tampered: Vec::new(),
        runs: asked.commands.iter().map(run).collect(),
        inspection: Box::default(),
    })
}

pub(crate) fn argued(effect: &WorkflowEffect, role: &RoleSpec) -> WorkflowOutcome {
    let answer = match RalphRole::of(role).unwrap() {
        RalphRole::Antithesis => RalphAnswer::Antithesis(Objections {
            strongest: "None.".to_owned(),
            tension: "Safety or speed.".to_owned(),
            objections: Vec::new(),
        }),
        RalphRole::Synthesis => RalphAnswer::Synthesis(Synthesis {
            verdict: Consensus::Consensus,
            answers: Vec::new(),
            dissent: Vec::new(),
            plan: plan(),
        }),
        RalphRole::Thesis | RalphRole::Reviewer | RalphRole::Accountant => {
            RalphAnswer::Thesis(plan())
        }
    };
    WorkflowOutcome::Answered {
        by: ReviewerIdentity {
            agent: "script:worker.yaml".to_owned(),
            run: effect.id.to_string(),
        },
        answer: Box::new(ModeAnswer::Ralph(answer)),
        usage: Usage::default(),
    }
}

/// Two of three independent tasks are at work at the same moment, and never three; the plan allows
/// all of them, the terms two.
#[test]
fn independent_tasks_are_worked_on_at_once_as_far_as_the_terms_allow() {
    let governed = Governed::new();
    let project = governed.project();
    let key = built(&project, |_| {});
    let (at_work, most) = (AtomicU32::new(0), AtomicU32::new(0));
    // Nobody passes alone: two have to be there at once.
    let meeting = Barrier::new(2);
    let first = AtomicU32::new(0);
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "what nobody asks for here ends as the last arm says, whatever verbs there are"
    )]
    let act =
        |effect: &WorkflowEffect, _: &kapi_machine::watch::EffectWatch<'_>| match &effect.action {
            WorkflowAction::Ask(question) if question.role == RalphRole::Reviewer.spec() => {
                failed(false)
            }
            WorkflowAction::Ask(question) => argued(effect, question.role),
            WorkflowAction::Verify(asked) if asked.commit == asked.base => nothing_yet(asked),
            WorkflowAction::Prepare { branch, .. } => WorkflowOutcome::Prepared {
                branch: branch.clone(),
                worktree: "/worktrees/it".to_owned(),
                baseline: None,
            },
            WorkflowAction::Work(work) => {
                let now = at_work.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                if first.fetch_add(1, Ordering::SeqCst) < 2 {
                    meeting.wait();
                }
                at_work.fetch_sub(1, Ordering::SeqCst);
                let index = 10 + work.task.as_str().as_bytes()[4] - b'0';
                WorkflowOutcome::Rested {
                    goal: GoalId::parse(&format!("0{index}-work")).unwrap(),
                    worktree: None,
                    status: GoalStatus::Done,
                    commit: Some(format!("{index:040}")),
                    reason: None,
                }
            }
            WorkflowAction::Land(landing) => WorkflowOutcome::Landed {
                head: format!("{}{}", &landing.commit[20..], &landing.head[20..]),
                tree: "c".repeat(40),
                merged: false,
                changed: LandedPaths::default(),
            },
            _ => failed(false),
        };
    governed.drive(&key, &act).unwrap();
    let shown = Workflows::of(&project)
        .workflow(&key)
        .unwrap()
        .pending
        .unwrap()
        .sha256;
    let approving = Approving {
        shown,
        means: Means::NamedHash,
        accepts_risks: true,
    };
    Workflows::of(&project)
        .approve_workflow(&key, &person(), &approving)
        .unwrap();
    let workflow = governed.drive(&key, &act).unwrap();
    let Body::Ralph(ralph) = &workflow.body else {
        panic!("{workflow:?}")
    };
    assert_eq!(ralph.landed.len(), 3, "{:?}", workflow.blocked);
    assert_eq!(most.load(Ordering::SeqCst), 2);
    assert_eq!(workflow.workers.len(), 2);
}
