//! Every command that is printed as what to type next can be typed as it stands.

use clap::Parser as _;
use kapi_core::actor::Actor;
use kapi_core::id::GoalId;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::judge::Judge;
use kapi_core::link::{Link, WorkflowRelation};
use kapi_core::mode::Mode;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_goal::rules::budget::Budget;
use kapi_workflow::rules::command::{WorkflowCommand, WorkflowStart};
use kapi_workflow::rules::context_begin::ContextBegin;
use kapi_workflow::rules::decide::decide;
use kapi_workflow::rules::decision_context::DecisionContext;
use kapi_workflow::rules::evolve::evolve;
use kapi_workflow::rules::modes::interview::begin::InterviewBegin;
use kapi_workflow::rules::modes::interview::state::InterviewPhase;
use kapi_workflow::rules::modes::ralph::spec::APPROVE_PLAN;
use kapi_workflow::rules::modes::{Begin, Body};
use kapi_workflow::rules::next_command::next_commands;
use kapi_workflow::rules::pending::WaitingDecision;
use kapi_workflow::rules::state::Workflow;
use kapi_workflow::rules::target::TargetError;
use kapi_workflow::rules::terms::{PlanApproval, WorkflowTerms};

use super::Args;

const STATUSES: [WorkflowStatus; 7] = [
    WorkflowStatus::Active,
    WorkflowStatus::Blocked,
    WorkflowStatus::Completed,
    WorkflowStatus::Failed,
    WorkflowStatus::Abandoned,
    WorkflowStatus::Linked,
    WorkflowStatus::Integrated,
];

/// Splits a line as a shell does where it has but plain words and words in single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (location, part) in line.split('\'').enumerate() {
        if location % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

fn check(line: &str) {
    assert!(!line.contains(['<', '…', '"', '`']), "{line}");
    if let Err(error) = Args::try_parse_from(words(line)) {
        panic!("{line}: {error}");
    }
}

fn id(name: &str) -> GoalId {
    GoalId::parse(name).unwrap()
}

fn begun(begin: Begin) -> Workflow {
    let start = WorkflowCommand::Start(Box::new(WorkflowStart {
        id: id("001-greet"),
        purpose: "greet 'em all".to_owned(),
        terms: WorkflowTerms {
            agent: "claude".to_owned(),
            reviewer: None,
            models: Vec::new(),
            judge: Judge::None,
            sandbox: SandboxLevel::Native,
            network: NetworkMode::None,
            budget: Budget {
                turns: 3,
                tokens: None,
                usd_micros: None,
                wall_ms: None,
            },
            tokens: None,
            usd_micros: None,
            wall_ms: None,
            jobs: 2,
            verify_timeout_ms: 60_000,
            question_timeout_ms: 60_000,
            protect: Vec::new(),
            verify: Vec::new(),
            delivery: None,
            plan_approval: PlanApproval::Ask,
        },
        begin,
    }));
    let person = Actor::Human {
        user: "somebody".to_owned(),
    };
    let given = DecisionContext {
        now_ms: 0,
        sha256: |_| String::new(),
    };
    let mut workflow = None;
    for event in decide(None, &person, &start, &given).unwrap() {
        evolve(&mut workflow, &event);
    }
    workflow.unwrap()
}

/// Returns what is named next where a workflow stands so, with and without a decision that waits.
fn at(workflow: &Workflow, status: WorkflowStatus) -> Vec<String> {
    let mut workflow = workflow.clone();
    workflow.status = status;
    workflow.links.push(Link {
        relation: WorkflowRelation::Successor,
        mode: Mode::Ralph,
        workflow: id("002-greet-2"),
        at_ms: 0,
    });
    let mut lines = next_commands(&workflow);
    workflow.pending = Some(WaitingDecision {
        decision: APPROVE_PLAN,
        sha256: "4f1c".to_owned(),
        risks: Vec::new(),
        since_ms: 0,
    });
    lines.extend(next_commands(&workflow));
    lines
}

#[test]
fn what_a_workflow_names_next_can_be_typed() {
    let interview = begun(Begin::Interview(InterviewBegin { commit: None }));
    let mut approved = interview.clone();
    if let Body::Interview(interview) = &mut approved.body {
        interview.phase = InterviewPhase::Branch;
    }
    let ralph = begun(Begin::Ralph(ContextBegin {
        base: "c0ffee".to_owned(),
        interview: None,
        spec: None,
    }));
    assert_eq!(next_commands(&approved)[0], "kapi ralph --from 001");
    let mut n_checked = 0;
    for workflow in [interview, approved, ralph] {
        for line in STATUSES
            .into_iter()
            .flat_map(|status| at(&workflow, status))
        {
            check(&line);
            n_checked += 1;
        }
    }
    assert!(n_checked > 60, "{n_checked}");
}

#[test]
fn what_is_named_instead_of_a_wrong_reference_can_be_typed() {
    let interview = || id("001-greet");
    for error in [
        TargetError::NotLinked {
            context: interview(),
            asked: Mode::Ralph,
        },
        TargetError::NotApproved {
            context: interview(),
        },
    ] {
        for line in error.next_commands() {
            check(&line);
        }
    }
}
