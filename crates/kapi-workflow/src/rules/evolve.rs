//! The fold of a workflow's events: total, without rules.
//!
//! What was recorded is true; an event that fits nothing changes nothing.

use std::collections::BTreeMap;

use kapi_core::id::GoalId;
use kapi_core::link::{Link, Relation};
use kapi_core::mode::Mode;
use kapi_core::usage::Usage;
use kapi_core::workflow_status::Status;

use crate::rules::conflict::{CONFLICTS_MAX, Conflict};
use crate::rules::event::Event;
use crate::rules::limits::Raised;
use crate::rules::mode_rules::After;
use crate::rules::state::{Blocked, Revision, Workflow};
use crate::rules::worker::{DISPATCHES_MAX, Dispatch, NOTES_MAX, WorkerStatus};

/// Applies one event.
pub fn evolve(workflow: &mut Option<Workflow>, event: &Event) {
    match (workflow, event) {
        (place @ None, Event::Started { .. }) => *place = begin(event),
        (None, _) => {}
        (Some(workflow), event) => apply(workflow, event),
    }
}

fn begin(event: &Event) -> Option<Workflow> {
    let Event::Started {
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
        status: Status::Active,
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
        raised: Raised::default(),
        wall_used_ms: 0,
        body,
    })
}

fn apply(workflow: &mut Workflow, event: &Event) {
    match event {
        Event::Started { .. } | Event::RunRecorded { .. } => {}
        Event::DecisionAsked { pending } => workflow.pending = Some(pending.clone()),
        Event::Approved { approval } => {
            workflow.pending = None;
            workflow.approvals.push(approval.clone());
            workflow.body.rules_mut().approved();
        }
        Event::Revised { text, at_ms } => {
            let (phase, _) = workflow.phase();
            workflow.pending = None;
            workflow.revisions.push(Revision {
                text: text.clone(),
                phase: phase.to_owned(),
                at_ms: *at_ms,
            });
        }
        Event::Blocked { reason, unblock } => {
            workflow.status = Status::Blocked;
            workflow.blocked = Some(Blocked {
                reason: reason.clone(),
                unblock: unblock.clone(),
            });
        }
        Event::Unblocked {} => unblocked(workflow),
        Event::LimitsRaised { more, .. } => workflow.raised.add(more),
        Event::TimeUsed { ms } => {
            workflow.wall_used_ms = workflow.wall_used_ms.saturating_add(*ms);
        }
        Event::Abandoned { .. } => end(workflow, Status::Abandoned),
        Event::Failed { .. } => end(workflow, Status::Failed),
        Event::Completed {} => end(workflow, Status::Completed),
        Event::Integrated { by, at_ms } => integrated(workflow, by, *at_ms),
        Event::EvidenceRecorded { evidence } => workflow.evidence.push((**evidence).clone()),
        Event::ConflictFound { .. } | Event::ConflictSettled { .. } => conflict(workflow, event),
        Event::WorkerPrepared { .. }
        | Event::WorkerDispatched { .. }
        | Event::WorkerRefreshed { .. }
        | Event::WorkerClosed { .. } => worker(workflow, event),
        Event::EffectIntended { effect, at_ms } => {
            workflow.in_flight.insert(effect.clone(), *at_ms);
        }
        Event::EffectUsed { usage, .. } => workflow.used.add(usage),
        Event::GoalUsed { goal, account } => {
            workflow.goals.insert(goal.clone(), account.clone());
        }
        Event::EffectEnded {
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
        Event::Mode(event) => match workflow.body.rules_mut().evolve(event) {
            After::Nothing => {}
            After::Linked(link) => {
                workflow.links.push(link);
                end(workflow, Status::Linked);
            }
        },
    }
}

/// Whoever lets a workflow go on allows as many tries and answers again; what it may use is raised
/// by a word of its own.
fn unblocked(workflow: &mut Workflow) {
    workflow.status = Status::Active;
    workflow.blocked = None;
    workflow.failures.clear();
    workflow.body.rules_mut().unblocked();
}

fn integrated(workflow: &mut Workflow, by: &GoalId, at_ms: i64) {
    end(workflow, Status::Integrated);
    workflow.links.push(Link {
        relation: Relation::IntegratedBy,
        mode: Mode::INTEGRATOR,
        workflow: by.clone(),
        at_ms,
    });
}

fn end(workflow: &mut Workflow, status: Status) {
    workflow.status = status;
    workflow.blocked = None;
    workflow.pending = None;
}

fn conflict(workflow: &mut Workflow, event: &Event) {
    if let Event::ConflictFound {
        what,
        paths,
        onto,
        at_ms,
    } = event
    {
        workflow.conflicts.push(Conflict {
            what: what.clone(),
            paths: paths.clone(),
            onto: onto.clone(),
            at_ms: *at_ms,
            settled: None,
        });
        cap(&mut workflow.conflicts, CONFLICTS_MAX);
    } else if let Event::ConflictSettled { what, settlement } = event {
        let conflicts = workflow.conflicts.iter_mut();
        for open in conflicts.filter(|conflict| conflict.is_open_of(what)) {
            open.settled = Some(settlement.clone());
        }
    }
}

fn worker(workflow: &mut Workflow, event: &Event) {
    if let Event::WorkerPrepared { worker } = event {
        workflow.workers.push(worker.clone());
        return;
    }
    let (Event::WorkerDispatched { worker: id, .. }
    | Event::WorkerRefreshed { worker: id, .. }
    | Event::WorkerClosed { worker: id }) = event
    else {
        return;
    };
    let Some(worker) = workflow.workers.iter_mut().find(|worker| worker.id == *id) else {
        return;
    };
    if let Event::WorkerDispatched {
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
    } else if let Event::WorkerRefreshed {
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
