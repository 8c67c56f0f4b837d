//! The machine of a build, searched to its end: every state that a small plan can lead to.
//!
//! Breadth first over every person's, agent's and engine's command and every outcome. Two states are
//! one where they differ only in what was counted on the way.

use std::collections::{BTreeMap, VecDeque};

use kapi_core::actor::Actor;
use kapi_core::id::EffectId;
use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::command::WorkflowCommand;
use crate::rules::decide::decide;
use crate::rules::effect::next;
use crate::rules::event::WorkflowEvent;
use crate::rules::evidence::Weight;
use crate::rules::evolve::evolve;
use crate::rules::model::is_in_spec;
use crate::rules::modes::ralph::command::RalphCommand;
use crate::rules::modes::ralph::fixture::{
    Build, GIVEN, agent, human, in_a_row, parallel, sha256, task_id, terms,
};
use crate::rules::modes::ralph::model::outcome::outcomes;
use crate::rules::modes::ralph::plan::RalphPlan;
use crate::rules::modes::ralph::spec::APPROVE_PLAN;
use crate::rules::modes::ralph::state::{Ralph, RalphPhase, Stand};
use crate::rules::modes::ralph::want::wants;
use crate::rules::modes::{Body, ModeCommand};
use crate::rules::next_command::next_commands;
use crate::rules::pending::Means;
use crate::rules::state::Workflow;
use crate::rules::terms::PlanApproval;

mod outcome;

/// Where everything that can go wrong does; elsewhere things go well, so that a search stays small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Focus {
    Planning,
    Running,
    Closing,
}

/// What is searched.
struct Scope {
    plan: RalphPlan,
    focus: Focus,
    /// Planning cycles after which nobody asks for another one.
    cycles_max: u32,
    approval: PlanApproval,
}

/// What was found.
struct Found {
    states: Vec<Workflow>,
    steps: Vec<Vec<usize>>,
    n_transitions: usize,
    n_denials: usize,
}

fn ralph(workflow: &Workflow) -> &Ralph {
    let Body::Ralph(ralph) = &workflow.body else {
        panic!("not a build");
    };
    ralph
}

/// Returns what makes a state another one, whatever was counted on the way.
fn key(workflow: &Workflow, cycles_max: u32) -> String {
    if workflow.status.is_terminal() {
        return format!("{:?}", workflow.status);
    }
    let ralph = ralph(workflow);
    let wanted = wants(workflow, ralph).into_iter();
    let wanted: Vec<EffectId> = wanted.map(|(id, _)| id).collect();
    let in_flight: Vec<String> = workflow
        .in_flight
        .keys()
        .map(|id| {
            format!(
                "{}{}",
                stage(id),
                if wanted.contains(id) { "" } else { "?" }
            )
        })
        .collect();
    let failures: Vec<String> = wanted
        .iter()
        .filter_map(|id| Some(format!("{}{}", stage(id), workflow.failures.get(id)?)))
        .collect();
    let tasks: Vec<String> = ralph
        .tasks
        .values()
        .filter(|state| {
            let is_fix = state.task.id.as_str().starts_with('F');
            !is_fix || !matches!(state.stand, Stand::Landed { .. })
        })
        .map(|state| {
            let stand = match &state.stand {
                Stand::Waiting => "waiting".to_owned(),
                Stand::Proved { .. } => "proved".to_owned(),
                Stand::Landed { .. } => "landed".to_owned(),
                Stand::Rested { .. } if state.strayed.is_some() => "strayed".to_owned(),
                Stand::Rested { status, .. } => format!("rested {}", status.as_str()),
            };
            let id = &state.task.id;
            let id = if id.as_str().starts_with('F') {
                "F"
            } else {
                id.as_str()
            };
            let (goal, sent_back) = (state.goal.is_some(), state.sent_back);
            format!("{id} {stand} {} {goal} {sent_back}", state.is_working)
        })
        .collect();
    let attempt = ralph
        .attempts
        .last()
        .filter(|found| found.cycle == ralph.cycle);
    let refused: Vec<(&String, usize)> = ralph.refused.iter().map(|(k, v)| (k, v.len())).collect();
    let verified = ralph.verified.as_ref().map(|(_, report)| report.passed());
    let reviewed = ralph
        .reviews
        .last()
        .map(|review| review.findings.verdict().as_str());
    let risks = workflow.pending.as_ref().map(|pending| pending.risks.len());
    let unlanded = ralph.branch.as_ref().map(|branch| branch.tree.is_none());
    format!(
        "{:?} {:?} {} {:?} {refused:?} {risks:?} {unlanded:?} {tasks:?} {in_flight:?} {failures:?} \
         {:?} {verified:?} {reviewed:?} {} {} {}",
        workflow.status,
        ralph.phase,
        ralph.cycle.min(cycles_max + 1),
        attempt.map(|found| found.number),
        ralph.unverified.is_some(),
        ralph.mends,
        ralph.must_ask,
        ralph.account.is_some(),
    )
}

/// Returns the stage in an effect's name, with its task.
fn stage(id: &EffectId) -> &str {
    let text = id.as_str();
    let start = text.find('-').map_or(0, |at| at + 1);
    let end = text.rfind("-a").unwrap_or(text.len());
    &text[start..end]
}

/// Returns what anybody could ask for.
fn commands(workflow: &Workflow, scope: &Scope) -> Vec<(Actor, WorkflowCommand)> {
    let mut all = Vec::new();
    for effect in next(workflow) {
        if !workflow.in_flight.contains_key(&effect.id) {
            let effect = effect.id;
            all.push((Actor::Engine, WorkflowCommand::Intend { effect }));
        }
    }
    for effect in workflow.in_flight.keys() {
        let (effect, goal) = (effect.clone(), workflow.id.clone());
        let task = kapi_core::task_id::KernelTaskId::new(1);
        let queue = WorkflowCommand::QueueWork { effect, goal, task };
        all.push((Actor::Engine, queue));
    }
    for effect in workflow.in_flight.keys() {
        for outcome in outcomes(workflow, effect, scope) {
            let effect = effect.clone();
            let outcome = Box::new(outcome);
            all.push((Actor::Engine, WorkflowCommand::Report { effect, outcome }));
        }
    }
    for command in persons(workflow, scope) {
        all.push((human(), command));
    }
    all
}

fn persons(workflow: &Workflow, scope: &Scope) -> Vec<WorkflowCommand> {
    let pending = workflow.pending.as_ref();
    let sha256 = pending.map_or_else(String::new, |pending| pending.sha256.clone());
    let approve = |accepts_risks| WorkflowCommand::Approve {
        found: sha256.clone(),
        sha256: sha256.clone(),
        means: Means::Terminal,
        accepts_risks,
    };
    let retry = |id| {
        WorkflowCommand::Mode(ModeCommand::Ralph(RalphCommand::Retry {
            task: task_id(id),
        }))
    };
    let mut all = vec![
        approve(true),
        approve(false),
        WorkflowCommand::Unblock {},
        retry("T-001"),
        retry("T-002"),
        WorkflowCommand::Mode(ModeCommand::Ralph(RalphCommand::AllowPaths)),
        WorkflowCommand::Abandon {
            reason: "Not wanted any more.".to_owned(),
        },
    ];
    let focus = match ralph(workflow).phase {
        RalphPhase::Thesis
        | RalphPhase::Antithesis
        | RalphPhase::Synthesis
        | RalphPhase::Approval => Focus::Planning,
        RalphPhase::Run => Focus::Running,
        RalphPhase::Review | RalphPhase::Closeout => Focus::Closing,
    };
    if ralph(workflow).cycle < scope.cycles_max && scope.focus == focus {
        all.push(WorkflowCommand::Revise {
            text: "In another way.".to_owned(),
        });
        all.push(WorkflowCommand::Mode(ModeCommand::Ralph(
            RalphCommand::ReopenPlan {
                reason: "It is wrong.".to_owned(),
            },
        )));
    }
    all
}

fn search(scope: &Scope) -> Found {
    let mut own = terms();
    own.plan_approval = scope.approval;
    let start = Build::start(own).workflow;
    let mut seen = BTreeMap::from([(key(&start, scope.cycles_max), 0_usize)]);
    let mut found = Found {
        states: vec![start],
        steps: vec![Vec::new()],
        n_transitions: 0,
        n_denials: 0,
    };
    let mut queue = VecDeque::from([0_usize]);
    while let Some(at) = queue.pop_front() {
        let workflow = found.states[at].clone();
        check_state(&workflow);
        if at % 16 == 0 {
            found.n_denials += check_authority(&workflow, scope);
        }
        for (actor, command) in commands(&workflow, scope) {
            let Some(after) = step(&workflow, &actor, &command) else {
                found.n_denials += 1;
                continue;
            };
            found.n_transitions += 1;
            let n = found.states.len();
            let location = *seen.entry(key(&after, scope.cycles_max)).or_insert(n);
            found.steps[at].push(location);
            if location == n {
                found.states.push(after);
                found.steps.push(Vec::new());
                queue.push_back(n);
            }
        }
        assert!(found.states.len() < 60_000, "the search does not end");
    }
    found
}

/// Takes one step; `None` where it is denied, and then nothing may have changed.
fn step(workflow: &Workflow, actor: &Actor, command: &WorkflowCommand) -> Option<Workflow> {
    let before = workflow.clone();
    let decided = decide(Some(workflow), actor, command, &GIVEN);
    assert_eq!(*workflow, before);
    match decided {
        Ok(events) => {
            let mut after = Some(before);
            for event in &events {
                evolve(&mut after, event);
            }
            let after = after.unwrap();
            check_end(workflow, &after, &events);
            Some(after)
        }
        Err(denied) => {
            assert!(!denied.next_commands.is_empty(), "{denied} leads nowhere");
            None
        }
    }
}

/// What only a person may do is denied to everybody else, in every state.
fn check_authority(workflow: &Workflow, scope: &Scope) -> usize {
    let mut n = 0;
    for command in persons(workflow, scope) {
        for actor in [agent(), Actor::Engine] {
            let denied = decide(Some(workflow), &actor, &command, &GIVEN);
            assert!(denied.is_err(), "{actor} may {command:?}");
            n += 1;
        }
    }
    n
}

fn check_state(workflow: &Workflow) {
    assert!(is_in_spec(workflow), "{:?}", workflow.phase());
    assert!(!next_commands(workflow).is_empty());
    match workflow.status {
        WorkflowStatus::Active => {
            let goes_on = !next(workflow).is_empty() || !workflow.in_flight.is_empty();
            assert!(
                goes_on || workflow.pending.is_some(),
                "stuck: {}",
                key(workflow, 9)
            );
        }
        WorkflowStatus::Blocked => {
            let blocked = workflow.blocked.as_ref().unwrap();
            assert!(!blocked.reason.is_empty() && !blocked.unblock.is_empty());
        }
        WorkflowStatus::Completed => check_completed(workflow),
        WorkflowStatus::Abandoned => {}
        WorkflowStatus::Failed | WorkflowStatus::Linked | WorkflowStatus::Integrated => {
            panic!("{}", key(workflow, 9))
        }
    }
    let has_ended = workflow.status == WorkflowStatus::Completed;
    assert!(!has_ended || workflow.in_flight.is_empty());
}

/// Nothing is completed that no person approved, or that was not verified as it stands.
fn check_completed(workflow: &Workflow) {
    let build = ralph(workflow);
    let approval = workflow.approvals.last().unwrap();
    assert_eq!(approval.decision, APPROVE_PLAN);
    let documents = crate::rules::documents::documents(workflow);
    let plan = documents
        .iter()
        .find(|found| found.name == "plan.md")
        .unwrap();
    assert_eq!(approval.sha256, sha256(plan.text.as_bytes()));
    let at_head = format!("git:{}", build.branch.as_ref().unwrap().head);
    let proofs = workflow.evidence.iter().filter(|found| {
        found.weight == Weight::Validation
            && found.reference == at_head
            && found.exit_code == Some(0)
    });
    let ran: Vec<&String> = proofs.filter_map(|found| found.command.as_ref()).collect();
    for command in ["sh works.sh", "sh all.sh", "sh lint.sh"] {
        assert!(
            ran.iter().any(|found| *found == command),
            "{command} did not run"
        );
    }
    let review = build.reviews.last().unwrap();
    assert_eq!(at_head, format!("git:{}", review.commit));
    let accepted = &build.account.as_ref().unwrap().acceptance;
    assert_eq!(accepted.len(), 2);
    assert!(
        accepted
            .iter()
            .all(|accepted| !accepted.evidence.is_empty())
    );
}

/// What has ended stays ended; work and landings need an approved plan.
fn check_end(before: &Workflow, after: &Workflow, events: &[WorkflowEvent]) {
    if before.status.is_terminal() {
        assert_eq!(before.status, after.status);
        assert_eq!(ralph(before), ralph(after));
    }
    let has_run = matches!(
        ralph(after).phase,
        RalphPhase::Run | RalphPhase::Review | RalphPhase::Closeout
    );
    assert!(!has_run || !after.approvals.is_empty(), "{events:?}");
    if after.status == WorkflowStatus::Completed && before.status != WorkflowStatus::Completed {
        check_completed(after);
    }
    let overlapping: Vec<_> = ralph(after)
        .tasks
        .values()
        .filter(|t| t.is_working)
        .collect();
    for (at, one) in overlapping.iter().enumerate() {
        for other in &overlapping[at + 1..] {
            assert!(!super::graph::collide(&one.task, &other.task));
        }
    }
}

/// Every state that has not ended can still be completed.
fn check_way_out(found: &Found) {
    let mut before = vec![Vec::new(); found.states.len()];
    for (from, steps) in found.steps.iter().enumerate() {
        for to in steps {
            before[*to].push(from);
        }
    }
    let is_end = |at: &usize| found.states[*at].status == WorkflowStatus::Completed;
    let mut queue: VecDeque<usize> = (0..found.states.len()).filter(is_end).collect();
    let mut can_complete = vec![false; found.states.len()];
    while let Some(at) = queue.pop_front() {
        if !std::mem::replace(&mut can_complete[at], true) {
            queue.extend(&before[at]);
        }
    }
    for (at, workflow) in found.states.iter().enumerate() {
        let has_way_out = can_complete[at] || workflow.status.is_terminal();
        assert!(has_way_out, "no way out of {}", key(workflow, 9));
    }
}

fn check(name: &str, scope: &Scope) {
    let found = search(scope);
    check_way_out(&found);
    let n_completed = found
        .states
        .iter()
        .filter(|workflow| workflow.status == WorkflowStatus::Completed)
        .count();
    assert!(n_completed > 0);
    println!(
        "ralph, {name}: {} states ({n_completed} completed), {} transitions, {} denials",
        found.states.len(),
        found.n_transitions,
        found.n_denials
    );
}

#[test]
fn planning_with_a_second_plan() {
    let scope = Scope {
        plan: in_a_row(),
        focus: Focus::Planning,
        cycles_max: 2,
        approval: PlanApproval::Ask,
    };
    check("planning", &scope);
}

#[test]
fn planning_that_was_approved_in_advance() {
    let scope = Scope {
        plan: in_a_row(),
        focus: Focus::Planning,
        cycles_max: 1,
        approval: PlanApproval::InAdvance,
    };
    check("planning, approved in advance", &scope);
}

#[test]
fn two_tasks_in_a_row() {
    let scope = Scope {
        plan: in_a_row(),
        focus: Focus::Running,
        cycles_max: 2,
        approval: PlanApproval::Ask,
    };
    check("two tasks in a row", &scope);
}

#[test]
fn two_tasks_at_once() {
    let scope = Scope {
        plan: parallel(),
        focus: Focus::Running,
        cycles_max: 1,
        approval: PlanApproval::Ask,
    };
    check("two tasks at once", &scope);
}

#[test]
fn reviews_fixes_and_the_closeout() {
    let scope = Scope {
        plan: in_a_row(),
        focus: Focus::Closing,
        cycles_max: 2,
        approval: PlanApproval::InAdvance,
    };
    check("reviews, fixes and closeout", &scope);
}
