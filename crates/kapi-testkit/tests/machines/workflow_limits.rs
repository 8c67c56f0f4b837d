//! What goals use counts for the whole, and what the whole may use is its person's word.

use std::sync::Mutex;

use kapi_core::actor::Actor;
use kapi_core::id::{GoalId, Slug};
use kapi_core::usage::Usage;
use kapi_core::workflow_key::WorkflowKey;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_goal::record::project::Project;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::contract::{Contract, OfWorkflow, Working};
use kapi_goal::rules::effect::next;
use kapi_goal::rules::event::ApprovalMeans;
use kapi_goal::rules::state::GoalStatus;
use kapi_workflow::record::error::WorkflowLack;
use kapi_workflow::record::requests::Approving;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::changed::LandedPaths;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::effect::{GoalWork, WorkflowAction, WorkflowEffect};
use kapi_workflow::rules::event::WorkflowEvent;
use kapi_workflow::rules::limits::LimitRaises;
use kapi_workflow::rules::outcome::WorkflowOutcome;
use kapi_workflow::rules::pending::Means;
use kapi_workflow::rules::spent::left;
use kapi_workflow::rules::state::Workflow;

use crate::support::{contract, person, usage};
use crate::workflow_driving::{argued, built, nothing_yet};
use crate::workflow_support::{Governed, until_cancelled};

const TOKENS: u64 = 1_000;

fn raise(tokens: u64) -> WorkflowCommand {
    let usd_micros = 0;
    WorkflowCommand::RaiseLimits {
        more: LimitRaises {
            tokens,
            usd_micros,
            wall_ms: 0,
        },
    }
}

/// Makes the goal of a task as the world does, approved with its plan.
fn made(project: &Project<'_>, effect: &WorkflowEffect, work: &GoalWork) -> GoalId {
    let contract = Contract {
        budget: work.budget,
        branch: format!("feat/goal-{}", work.task),
        working: Working {
            workflow: Some(OfWorkflow {
                id: effect.workflow.clone(),
                task: work.task.clone(),
                attempt: work.attempt,
                plan_sha256: "5f0c".to_owned(),
            }),
            ..Working::default()
        },
        ..contract()
    };
    let slug = Slug::parse("work").unwrap();
    let id = project.create_goal(&person(), &slug, &contract).unwrap();
    let contract_hash = project.load(&id).unwrap().contract_hash;
    let approve = GoalCommand::Approve {
        contract_hash,
        means: ApprovalMeans::Plan,
    };
    project.submit(&id, &person(), &approve).unwrap();
    id
}

/// Lets a goal's own account grow.
fn uses(project: &Project<'_>, id: &GoalId, tokens: u64) {
    let effect = next(&project.load(id).unwrap()).unwrap().id;
    let intend = GoalCommand::Intend {
        effect: effect.clone(),
    };
    project.submit(id, &Actor::Engine, &intend).unwrap();
    let progress = GoalCommand::Progress {
        effect,
        usage: usage(tokens),
        elapsed_ms: 1,
    };
    project.submit(id, &Actor::Engine, &progress).unwrap();
}

/// Drives a build whose first goal uses everything there is, and stops at its review.
fn drive(governed: &Governed, key: &WorkflowKey, budgets: &Mutex<Vec<Option<u64>>>) -> Workflow {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "what nobody asks for here ends as the last arm says, whatever verbs there are"
    )]
    let act =
        |effect: &WorkflowEffect, _: &kapi_machine::watch::EffectWatch<'_>| match &effect.action {
            WorkflowAction::Ask(question) => argued(effect, question.role),
            WorkflowAction::Verify(asked) if asked.commit == asked.base => nothing_yet(asked),
            WorkflowAction::Prepare { branch, .. } => WorkflowOutcome::Prepared {
                branch: branch.clone(),
                worktree: "/worktrees/it".to_owned(),
                baseline: None,
            },
            WorkflowAction::Work(work) => {
                let project = governed.project();
                let id = match &work.goal {
                    Some(id) => id.clone(),
                    None => made(&project, effect, work),
                };
                let goal = project.load(&id).unwrap();
                budgets.lock().unwrap().push(goal.budget.tokens);
                let is_first = work.goal.is_none() && work.task.as_str() == "T-001";
                let (status, commit) = if is_first {
                    uses(&project, &id, TOKENS);
                    (GoalStatus::Paused, None)
                } else {
                    (GoalStatus::Done, Some("c".repeat(40)))
                };
                WorkflowOutcome::Rested {
                    goal: id,
                    worktree: None,
                    status,
                    commit,
                    reason: None,
                }
            }
            WorkflowAction::Land(landing) => WorkflowOutcome::Landed {
                head: landing.commit.clone(),
                tree: "d".repeat(40),
                merged: false,
                changed: LandedPaths::default(),
            },
            _ => WorkflowOutcome::Cancelled {
                usage: Usage::default(),
            },
        };
    governed.drive(key, &act).unwrap()
}

#[test]
fn what_goals_use_counts_and_only_a_person_allows_more() {
    let governed = Governed::new();
    let project = governed.project();
    let key = built(&project, |terms| {
        terms.jobs = 1;
        terms.tokens = Some(TOKENS);
        terms.budget.tokens = Some(TOKENS);
    });
    let budgets = Mutex::new(Vec::new());
    let planned = drive(&governed, &key, &budgets);
    let approving = Approving {
        shown: planned.pending.unwrap().sha256,
        means: Means::NamedHash,
        accepts_risks: true,
    };
    Workflows::of(&project)
        .approve_workflow(&key, &person(), &approving)
        .unwrap();

    let held_up = drive(&governed, &key, &budgets);
    assert_eq!(held_up.status, WorkflowStatus::Blocked);
    let blocked = held_up.blocked.clone().unwrap();
    assert!(
        blocked
            .reason
            .contains("the workflow has used up its token limit"),
        "{blocked:?}"
    );
    let accounts: Vec<_> = held_up.goals.values().collect();
    assert_eq!(
        accounts.len(),
        1,
        "the next task did not begin: {accounts:?}"
    );
    assert_eq!(accounts[0].used.tokens(), TOKENS);
    assert_eq!(left(&held_up).tokens, Some(0));
    let refused =
        Workflows::of(&project).submit_workflow(&key, &person(), &WorkflowCommand::Unblock {});
    assert_eq!(refused.unwrap_err().denied_code(), Some("not_ready"));

    Workflows::of(&project)
        .submit_workflow(&key, &person(), &raise(600))
        .unwrap();
    Workflows::of(&project)
        .submit_workflow(&key, &person(), &WorkflowCommand::Unblock {})
        .unwrap();
    drive(&governed, &key, &budgets);
    let budgets = budgets.into_inner().unwrap();
    let expected = [TOKENS, TOKENS + 600, 600, 600].map(Some);
    assert_eq!(budgets, expected, "what was set aside for each");
}

#[test]
fn limits_that_nobody_here_raised_are_not_gone_on_with() {
    let governed = Governed::new();
    let project = governed.project();
    let key = built(&project, |terms| terms.tokens = Some(TOKENS));
    let raised = Workflows::of(&project)
        .submit_workflow(&key, &person(), &raise(5))
        .unwrap();
    let lack = Workflows::of(&project)
        .unapproved_workflow(&raised.workflow)
        .unwrap();
    assert_eq!(lack, None, "their home says so, too");
    let mut widened = raised.workflow.clone();
    widened.raised.tokens += 1;
    let lack = Workflows::of(&project)
        .unapproved_workflow(&widened)
        .unwrap();
    assert_eq!(lack, Some(WorkflowLack::Limits));
    for actor in [
        Actor::Engine,
        Actor::Agent {
            run: "r".to_owned(),
        },
    ] {
        let refused = Workflows::of(&project).submit_workflow(&key, &actor, &raise(5));
        assert_eq!(refused.unwrap_err().denied_code(), Some("not_human"));
    }
}

#[test]
fn time_at_work_is_counted_and_stopped_at_its_limit() {
    let governed = Governed::new();
    let project = governed.project();
    let key = built(&project, |terms| terms.wall_ms = Some(40_000));
    let stopped = governed
        .drive(&key, &|_, watch| until_cancelled(watch))
        .unwrap();
    assert_eq!(stopped.status, WorkflowStatus::Blocked);
    let blocked = stopped.blocked.clone().unwrap();
    assert!(
        blocked
            .reason
            .contains("the workflow has used up its working-time limit"),
        "{blocked:?}"
    );
    assert!(blocked.unblock.ends_with("--wall +30m"), "{blocked:?}");
    assert!(stopped.wall_used_ms >= 40_000 && stopped.in_flight.is_empty());
    let reports = Workflows::of(&project).workflow_log(&key).unwrap();
    let reports = reports
        .iter()
        .filter(|it| matches!(it.event, WorkflowEvent::TimeUsed { .. }));
    assert!(
        reports.count() >= 2,
        "a crash would forget half a minute at most"
    );

    let more = LimitRaises {
        tokens: 0,
        usd_micros: 0,
        wall_ms: 3_600_000,
    };
    for command in [
        WorkflowCommand::RaiseLimits { more },
        WorkflowCommand::Unblock {},
    ] {
        Workflows::of(&project)
            .submit_workflow(&key, &person(), &command)
            .unwrap();
    }
    let planned = drive(&governed, &key, &Mutex::new(Vec::new()));
    assert!(planned.pending.is_some());
    assert!(planned.wall_used_ms > stopped.wall_used_ms);

    let unlimited = built(&project, |_| {});
    let planned = drive(&governed, &unlimited, &Mutex::new(Vec::new()));
    assert_eq!(planned.wall_used_ms, 0, "nobody counts what is not limited");
}
