//! The fold of a workflow's events: total, without rules.
//!
//! What was recorded is true; an event that fits nothing changes nothing.

use std::collections::BTreeMap;

use kapi_core::id::GoalId;
use kapi_core::link::{Link, WorkflowRelation};
use kapi_core::mode::Mode;
use kapi_core::usage::Usage;
use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::conflict::{CONFLICTS_MAX, WorkflowConflict};
use crate::rules::event::WorkflowEvent;
use crate::rules::limits::LimitRaises;
use crate::rules::mode_rules::FactConsequence;
use crate::rules::state::{Revision, Workflow, WorkflowBlock};
use crate::rules::worker::{DISPATCHES_MAX, Dispatch, NOTES_MAX, WorkerStatus};

/// Applies one event.
pub fn evolve(workflow: &mut Option<Workflow>, event: &WorkflowEvent) {
    match (workflow, event) {
        (location @ None, WorkflowEvent::Started { .. }) => *location = begin(event),
        (None, _) => {}
        (Some(workflow), event) => apply(workflow, event),
    }
}

fn begin(event: &WorkflowEvent) -> Option<Workflow> {
    let WorkflowEvent::Started {
        id,
        purpose,
        by,
        terms,
        begin,
        at_ms,
    } = event
    else {
        return None;
    };
    let (body, links) = begin.body(*at_ms);
    Some(Workflow {
        id: id.clone(),
        purpose: purpose.clone(),
        started_by: by.clone(),
        started_at_ms: *at_ms,
        terms: (**terms).clone(),
        status: WorkflowStatus::Active,
        blocked: None,
        pending: None,
        approvals: Vec::new(),
        revisions: Vec::new(),
        links,
        evidence: Vec::new(),
        conflicts: Vec::new(),
        workers: Vec::new(),
        in_flight: BTreeMap::new(),
        failures: BTreeMap::new(),
        used: Usage::default(),
        goals: BTreeMap::new(),
        raised: LimitRaises::default(),
        wall_used_ms: 0,
        body,
    })
}

fn apply(workflow: &mut Workflow, event: &WorkflowEvent) {
    match event {
        WorkflowEvent::Started { .. } | WorkflowEvent::RunRecorded { .. } => {}
        WorkflowEvent::DecisionAsked { pending } => workflow.pending = Some(pending.clone()),
        WorkflowEvent::Approved { approval } => {
            workflow.pending = None;
            workflow.approvals.push(approval.clone());
            workflow.body.rules_mut().approved();
        }
        WorkflowEvent::Revised { text, at_ms } => {
            let (phase, _) = workflow.phase();
            workflow.pending = None;
            workflow.revisions.push(Revision {
                text: text.clone(),
                phase: phase.to_owned(),
                at_ms: *at_ms,
            });
        }
        WorkflowEvent::Blocked { reason, unblock } => {
            workflow.status = WorkflowStatus::Blocked;
            workflow.blocked = Some(WorkflowBlock {
                reason: reason.clone(),
                unblock: unblock.clone(),
            });
        }
        WorkflowEvent::Unblocked {} => unblocked(workflow),
        WorkflowEvent::LimitsRaised { more, .. } => workflow.raised.add(more),
        WorkflowEvent::TimeUsed { ms } => {
            workflow.wall_used_ms = workflow.wall_used_ms.saturating_add(*ms);
        }
        WorkflowEvent::Abandoned { .. } => end(workflow, WorkflowStatus::Abandoned),
        WorkflowEvent::Failed { .. } => end(workflow, WorkflowStatus::Failed),
        WorkflowEvent::Completed {} => end(workflow, WorkflowStatus::Completed),
        WorkflowEvent::Integrated { by, at_ms } => integrated(workflow, by, *at_ms),
        WorkflowEvent::EvidenceRecorded { evidence } => {
            workflow.evidence.push((**evidence).clone());
        }
        WorkflowEvent::ConflictFound { .. } | WorkflowEvent::ConflictSettled { .. } => {
            conflict(workflow, event);
        }
        WorkflowEvent::WorkerPrepared { .. }
        | WorkflowEvent::WorkerDispatched { .. }
        | WorkflowEvent::WorkerRefreshed { .. }
        | WorkflowEvent::WorkerClosed { .. } => worker(workflow, event),
        WorkflowEvent::EffectIntended { effect, at_ms } => {
            workflow.in_flight.insert(effect.clone(), *at_ms);
        }
        WorkflowEvent::EffectUsed { usage, .. } => workflow.used.add(usage),
        WorkflowEvent::GoalUsed { goal, account } => {
            workflow.goals.insert(goal.clone(), account.clone());
        }
        WorkflowEvent::EffectEnded {
            effect,
            usage,
            failed,
        } => {
            workflow.in_flight.remove(effect);
            workflow.used.add(usage);
            if failed.is_some() {
                let times = workflow.failures.entry(effect.clone()).or_insert(0);
                *times = times.saturating_add(1);
            }
        }
        WorkflowEvent::Mode(event) => match workflow.body.rules_mut().evolve(event) {
            FactConsequence::Nothing => {}
            FactConsequence::Linked(link) => {
                workflow.links.push(link);
                end(workflow, WorkflowStatus::Linked);
            }
        },
    }
}

/// Whoever lets a workflow go on allows as many tries and answers again; what it may use is raised
/// by a word of its own.
fn unblocked(workflow: &mut Workflow) {
    workflow.status = WorkflowStatus::Active;
    workflow.blocked = None;
    workflow.failures.clear();
    workflow.body.rules_mut().unblocked();
}

fn integrated(workflow: &mut Workflow, by: &GoalId, at_ms: i64) {
    end(workflow, WorkflowStatus::Integrated);
    workflow.links.push(Link {
        relation: WorkflowRelation::IntegratedBy,
        mode: Mode::INTEGRATOR,
        workflow: by.clone(),
        at_ms,
    });
}

fn end(workflow: &mut Workflow, status: WorkflowStatus) {
    workflow.status = status;
    workflow.blocked = None;
    workflow.pending = None;
}

fn conflict(workflow: &mut Workflow, event: &WorkflowEvent) {
    if let WorkflowEvent::ConflictFound {
        what,
        paths,
        onto,
        at_ms,
    } = event
    {
        workflow.conflicts.push(WorkflowConflict {
            what: what.clone(),
            paths: paths.clone(),
            onto: onto.clone(),
            at_ms: *at_ms,
            settled: None,
        });
        cap(&mut workflow.conflicts, CONFLICTS_MAX);
    } else if let WorkflowEvent::ConflictSettled { what, settlement } = event {
        let conflicts = workflow.conflicts.iter_mut();
        for open in conflicts.filter(|conflict| conflict.is_open_of(what)) {
            open.settled = Some(settlement.clone());
        }
    }
}

fn worker(workflow: &mut Workflow, event: &WorkflowEvent) {
    if let WorkflowEvent::WorkerPrepared { worker } = event {
        workflow.workers.push(worker.clone());
        return;
    }
    let (WorkflowEvent::WorkerDispatched { worker: id, .. }
    | WorkflowEvent::WorkerRefreshed { worker: id, .. }
    | WorkflowEvent::WorkerClosed { worker: id }) = event
    else {
        return;
    };
    let Some(worker) = workflow.workers.iter_mut().find(|worker| worker.id == *id) else {
        return;
    };
    if let WorkflowEvent::WorkerDispatched {
        effect,
        what,
        at_ms,
        ..
    } = event
    {
        worker.status = WorkerStatus::Dispatched;
        worker.dispatches.push(Dispatch {
            effect: effect.clone(),
            what: what.clone(),
            goal: None,
            task: None,
            at_ms: *at_ms,
            ended: None,
        });
        cap(&mut worker.dispatches, DISPATCHES_MAX);
    } else if let WorkflowEvent::WorkerRefreshed {
        status,
        goal,
        note,
        terminal,
        isolated,
        task,
        ..
    } = event
    {
        let rests = worker.status == WorkerStatus::Dispatched
            && matches!(status, WorkerStatus::Idle | WorkerStatus::Waiting);
        worker.status = *status;
        if let Some(last) = worker.dispatches.last_mut() {
            last.goal = goal.clone().or_else(|| last.goal.take());
            last.task = task.or(last.task);
            if rests {
                last.ended.clone_from(note);
            }
        }
        worker.notes.extend(note.clone());
        cap(&mut worker.notes, NOTES_MAX);
        worker.terminal = terminal.clone().or_else(|| worker.terminal.take());
        worker.isolated = isolated.clone().or_else(|| worker.isolated.take());
    } else {
        worker.status = WorkerStatus::Closed;
    }
}

/// Keeps the newest entries.
fn cap<T>(list: &mut Vec<T>, most: usize) {
    let surplus = list.len().saturating_sub(most);
    list.drain(..surplus);
}
