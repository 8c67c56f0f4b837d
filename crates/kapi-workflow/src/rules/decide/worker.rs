//! Workers as they follow from the work: prepared and given something with the intent, idle with
//! the report, closed at the end.
//!
//! Records only what Kapi itself created.

use kapi_core::actor::Actor;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::task_id::KernelTaskId;
use kapi_core::text::one_line;

use crate::rules::command::WorkflowCommand;
use crate::rules::decide::{engine, going_on, wrong_phase};
use crate::rules::decision_context::DecisionContext;
use crate::rules::denied::WorkflowRule;
use crate::rules::event::WorkflowEvent;
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::state::Workflow;
use crate::rules::worker::{Capability, Closeout, WorkerId, WorkerStatus, WorkflowWorker};

/// The most characters of one note.
const NOTE_CHARS_MAX: usize = 400;

/// Gives a piece of work to the worker that had it, else to one without work, else to a new one.
pub(super) fn dispatch(
    workflow: &Workflow,
    effect: &EffectId,
    what: &str,
    given: &DecisionContext,
) -> Vec<WorkflowEvent> {
    let had_it = |worker: &&WorkflowWorker| {
        worker.status == WorkerStatus::Waiting
            && worker
                .dispatches
                .last()
                .is_some_and(|last| last.what == what)
    };
    let is_idle = |worker: &&WorkflowWorker| {
        matches!(worker.status, WorkerStatus::Idle | WorkerStatus::Prepared)
            && worker.capability == Capability::Goal
    };
    let workers = &workflow.workers;
    let free = workers
        .iter()
        .find(had_it)
        .or_else(|| workers.iter().find(is_idle));
    let mut events = Vec::new();
    let id = match free {
        Some(worker) => worker.id.clone(),
        None => {
            let id = WorkerId(format!("w{}", workers.len() + 1));
            let worker = prepared(&id, workflow);
            events.push(WorkflowEvent::WorkerPrepared { worker });
            id
        }
    };
    events.push(WorkflowEvent::WorkerDispatched {
        worker: id,
        effect: effect.clone(),
        what: what.to_owned(),
        at_ms: given.now_ms,
    });
    events
}

fn prepared(id: &WorkerId, workflow: &Workflow) -> WorkflowWorker {
    let branch = workflow.body.rules().branch();
    WorkflowWorker {
        id: id.clone(),
        capability: Capability::Goal,
        workspace: branch.map(|branch| branch.worktree.clone()),
        terminal: None,
        isolated: None,
        status: WorkerStatus::Prepared,
        notes: Vec::new(),
        dispatches: Vec::new(),
        closeout: Closeout::KeepWorktree,
    }
}

/// Records how the work of the worker that had this effect ended.
pub(super) fn rested(
    workflow: &Workflow,
    effect: &EffectId,
    outcome: &WorkflowOutcome,
) -> Vec<WorkflowEvent> {
    let Some(worker) = at_work(workflow, effect) else {
        return Vec::new();
    };
    let (status, goal, note) = match rest(outcome) {
        Some((goal, Some(commit), _)) => {
            let note = format!("proved {commit} in goal {goal}");
            (WorkerStatus::Idle, Some(goal.clone()), note)
        }
        Some((goal, None, reason)) => {
            let why = reason.unwrap_or("without a proof");
            let note = format!("goal {goal} stopped: {why}");
            (WorkerStatus::Waiting, Some(goal.clone()), note)
        }
        None => (WorkerStatus::Idle, None, without_a_goal(outcome)),
    };
    vec![WorkflowEvent::WorkerRefreshed {
        worker: worker.id.clone(),
        status,
        goal,
        note: Some(note_line(&note)),
        terminal: None,
        isolated: worktree_of(outcome),
        task: None,
    }]
}

/// Returns the goal that came to rest, its proof, or why there is none.
fn rest(outcome: &WorkflowOutcome) -> Option<(&GoalId, Option<&str>, Option<&str>)> {
    if let WorkflowOutcome::Rested {
        goal,
        commit,
        reason,
        ..
    } = outcome
    {
        Some((goal, commit.as_deref(), reason.as_deref()))
    } else {
        None
    }
}

/// Returns how an effect ended that brought no goal to rest.
fn without_a_goal(outcome: &WorkflowOutcome) -> String {
    match outcome.failure() {
        Some(failure) => format!("failed to {}", failure.message),
        None if outcome.is_cancelled() => "stopped".to_owned(),
        None => "ended".to_owned(),
    }
}

/// Returns the worker that has this effect.
fn at_work<'a>(workflow: &'a Workflow, effect: &EffectId) -> Option<&'a WorkflowWorker> {
    let has_it = |worker: &&WorkflowWorker| {
        let last = worker.dispatches.last();
        worker.status == WorkerStatus::Dispatched && last.is_some_and(|last| last.effect == *effect)
    };
    workflow.workers.iter().find(has_it)
}

/// Records the kernel's task that does a worker's work; nothing where that is known.
pub(super) fn queue(
    workflow: &Workflow,
    actor: &Actor,
    effect: &EffectId,
    goal: &GoalId,
    task: KernelTaskId,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    let action = "report a worker's task";
    engine(actor, action)?;
    going_on(workflow, action)?;
    let Some(worker) = at_work(workflow, effect) else {
        let effect = effect.to_string();
        return Err(WorkflowRule::NotInFlight { effect });
    };
    let last = worker.dispatches.last();
    if last.is_some_and(|last| last.task == Some(task) && last.goal.as_ref() == Some(goal)) {
        return Ok(Vec::new());
    }
    Ok(vec![WorkflowEvent::WorkerRefreshed {
        worker: worker.id.clone(),
        status: worker.status,
        goal: Some(goal.clone()),
        note: Some(format!("{task} drives goal {goal}")),
        terminal: None,
        isolated: None,
        task: Some(task),
    }])
}

/// Returns what a goal worked in.
fn worktree_of(outcome: &WorkflowOutcome) -> Option<String> {
    if let WorkflowOutcome::Rested { worktree, .. } = outcome {
        worktree.clone()
    } else {
        None
    }
}

/// Records what was heard of a worker meanwhile.
pub(super) fn refresh(
    workflow: &Workflow,
    actor: &Actor,
    command: &WorkflowCommand,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    let action = "report a worker";
    let WorkflowCommand::RefreshWorker {
        worker: id,
        note,
        terminal,
        isolated,
    } = command
    else {
        return Err(wrong_phase(workflow, action));
    };
    engine(actor, action)?;
    going_on(workflow, action)?;
    let Some(worker) = workflow.workers.iter().find(|worker| worker.id == *id) else {
        let rule = format!("report worker {id}, which this workflow does not have");
        return Err(WorkflowRule::Malformed { rule });
    };
    if note.is_none() && terminal.is_none() && isolated.is_none() {
        return Ok(Vec::new());
    }
    Ok(vec![WorkflowEvent::WorkerRefreshed {
        worker: id.clone(),
        status: worker.status,
        goal: None,
        note: note.as_deref().map(one_line),
        terminal: terminal.clone(),
        isolated: isolated.clone(),
        task: None,
    }])
}

/// Closes every worker that is not closed.
pub(super) fn close(workflow: &Workflow) -> Vec<WorkflowEvent> {
    let open = workflow
        .workers
        .iter()
        .filter(|worker| worker.status != WorkerStatus::Closed);
    open.map(|worker| WorkflowEvent::WorkerClosed {
        worker: worker.id.clone(),
    })
    .collect()
}

fn note_line(text: &str) -> String {
    one_line(text).chars().take(NOTE_CHARS_MAX).collect()
}
