//! The only place where a workflow's rules say no.
//!
//! What every mode shares stands here and in the files beside it; what a mode knows alone stands
//! with the mode. Pure: the time and the hash are arguments, and a denial changes nothing.

use kapi_core::actor::Actor;
use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::command::WorkflowCommand;
use crate::rules::decision_context::DecisionContext;
use crate::rules::denied::{WorkflowDenial, WorkflowRule};
use crate::rules::documents::documents;
use crate::rules::effect::{EffectResource, WorkflowEffect, next};
use crate::rules::event::WorkflowEvent;
use crate::rules::evolve::evolve;
use crate::rules::next_command::next_commands;
use crate::rules::pending::{WaitingDecision, WorkflowDecision};
use crate::rules::spent;
use crate::rules::state::Workflow;

mod effects;
mod evidence;
mod life;
mod start;
mod worker;

/// The most bytes of a text that a person or an agent hands over: a purpose, a revision, an answer.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Decides a command: the events it leads to, none where it asks for what already holds.
///
/// # Errors
/// When a rule refuses. Nothing may be changed then.
pub fn decide(
    workflow: Option<&Workflow>,
    actor: &Actor,
    command: &WorkflowCommand,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowDenial> {
    let decided = match (workflow, command) {
        (None, WorkflowCommand::Start(start)) => start::start(start, actor, given),
        (None, _) => Err(WorkflowRule::NotStarted),
        (Some(workflow), command) => {
            request(workflow, actor, command, given).map(|events| complete(workflow, events))
        }
    };
    decided.map_err(|why| WorkflowDenial {
        why,
        phase: workflow.map(Workflow::phase),
        pending: workflow.and_then(|workflow| Some(workflow.pending.as_ref()?.decision)),
        next_commands: workflow.map_or_else(|| vec!["kapi status".to_owned()], next_commands),
    })
}

fn request(
    workflow: &Workflow,
    actor: &Actor,
    command: &WorkflowCommand,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    match command {
        WorkflowCommand::Start(_) => Err(WorkflowRule::AlreadyStarted {
            workflow: workflow.id.clone(),
        }),
        WorkflowCommand::Approve { .. } => life::approve(workflow, actor, command, given),
        WorkflowCommand::Revise { text } => life::revise(workflow, actor, text, given),
        WorkflowCommand::Pause {} => life::pause(workflow, actor),
        WorkflowCommand::Unblock {} => life::unblock(workflow, actor, given),
        WorkflowCommand::RaiseLimits { more } => life::raise(workflow, actor, *more, given),
        WorkflowCommand::Abandon { reason } => life::abandon(workflow, actor, reason),
        WorkflowCommand::MarkIntegrated { by } => life::integrated(workflow, actor, by, given),
        WorkflowCommand::RecordEvidence(evidence) => evidence::record(workflow, actor, evidence),
        WorkflowCommand::Intend { effect } => effects::intend(workflow, actor, effect, given),
        WorkflowCommand::Progress { effect, usage } => {
            effects::progress(workflow, actor, effect, *usage)
        }
        WorkflowCommand::UseTime { ms } => effects::use_time(workflow, actor, *ms),
        WorkflowCommand::RecordRun { effect, files } => {
            effects::record_run(workflow, actor, effect, files)
        }
        WorkflowCommand::RecordGoalUse { goal, account } => {
            effects::goal_use(workflow, actor, goal, account)
        }
        WorkflowCommand::Report { effect, outcome } => {
            engine(actor, "report the result of an effect")?;
            effects::report(workflow, effect, outcome, given)
        }
        WorkflowCommand::RefreshWorker { .. } => worker::refresh(workflow, actor, command),
        WorkflowCommand::QueueWork { effect, goal, task } => {
            worker::queue(workflow, actor, effect, goal, *task)
        }
        WorkflowCommand::Mode(command) => workflow.body.ask(workflow, actor, command, given),
    }
}

/// Adds what follows from events whatever the mode: workers are closed before the end, and a used-up
/// limit holds up whoever would ask an agent or go on with a goal.
fn complete(workflow: &Workflow, mut events: Vec<WorkflowEvent>) -> Vec<WorkflowEvent> {
    let after = folded(workflow, &events);
    if after.status.is_terminal() && !workflow.status.is_terminal() {
        let location = end_of(workflow, &events);
        events.splice(location..location, worker::close(&after));
    } else if let Some((reason, unblock)) = spent::used_up(&after)
        && next(&after).iter().any(uses_something)
    {
        events.push(WorkflowEvent::Blocked { reason, unblock });
    }
    events
}

/// Returns the place of the event that ends a workflow.
fn end_of(workflow: &Workflow, events: &[WorkflowEvent]) -> usize {
    let mut after = Some(workflow.clone());
    let mut ends = |event| {
        evolve(&mut after, event);
        let status = after.as_ref().map(|after| after.status);
        status.is_some_and(WorkflowStatus::is_terminal)
    };
    events.iter().position(&mut ends).unwrap_or(events.len())
}

/// Tells whether an effect uses tokens or money.
fn uses_something(effect: &WorkflowEffect) -> bool {
    effect.action.uses() != EffectResource::Nothing
}

/// Returns the workflow as it will stand after some events.
pub(crate) fn folded(workflow: &Workflow, events: &[WorkflowEvent]) -> Workflow {
    let mut after = Some(workflow.clone());
    for event in events {
        evolve(&mut after, event);
    }
    after.unwrap_or_else(|| workflow.clone())
}

/// Asks a person for a decision about an artifact as it will stand after the events before.
pub(crate) fn asked(
    workflow: &Workflow,
    before: &[WorkflowEvent],
    decision: WorkflowDecision,
    risks: Vec<String>,
    given: &DecisionContext,
) -> WorkflowEvent {
    WorkflowEvent::DecisionAsked {
        pending: WaitingDecision {
            decision,
            sha256: subject(&folded(workflow, before), decision, given),
            risks,
            since_ms: given.now_ms,
        },
    }
}

/// Returns the hash of what a decision is about, as the state tells it.
pub(crate) fn subject(
    workflow: &Workflow,
    decision: WorkflowDecision,
    given: &DecisionContext,
) -> String {
    let artifacts = documents(workflow);
    let bytes = |name: &str| {
        let artifact = artifacts.iter().find(|document| document.name == name)?;
        Some(artifact.text.as_bytes().to_vec())
    };
    decision.subject(&bytes, given.sha256)
}

/// Returns who a person is; nobody else may do this.
pub(crate) fn human<'actor>(
    actor: &'actor Actor,
    action: &'static str,
) -> Result<&'actor str, WorkflowRule> {
    match actor {
        Actor::Human { user } => Ok(user),
        Actor::Agent { .. } | Actor::Engine => Err(WorkflowRule::OnlyHuman {
            action,
            actor: actor.to_string(),
        }),
    }
}

/// Lets only the engine do this.
pub(crate) fn engine(actor: &Actor, action: &'static str) -> Result<(), WorkflowRule> {
    match actor {
        Actor::Engine => Ok(()),
        Actor::Human { .. } | Actor::Agent { .. } => Err(WorkflowRule::OnlyEngine {
            action,
            actor: actor.to_string(),
        }),
    }
}

/// Lets nothing happen to what has ended.
pub(crate) const fn going_on(
    workflow: &Workflow,
    action: &'static str,
) -> Result<(), WorkflowRule> {
    if workflow.status.is_terminal() {
        let status = workflow.status.as_str();
        return Err(WorkflowRule::AlreadyTerminal { action, status });
    }
    Ok(())
}

/// Takes a text that says something and fits.
pub(crate) fn said(text: &str, rule: &str) -> Result<String, WorkflowRule> {
    let text = text.trim();
    if text.is_empty() || text.len() > TEXT_BYTES_MAX {
        return Err(WorkflowRule::Malformed {
            rule: format!("{rule} (1 to {TEXT_BYTES_MAX} bytes, not {})", text.len()),
        });
    }
    Ok(text.to_owned())
}

/// Denies what the phase does not allow.
pub(crate) fn wrong_phase(workflow: &Workflow, action: &'static str) -> WorkflowRule {
    WorkflowRule::WrongPhase {
        action,
        phase: phase_name(workflow),
    }
}

/// Returns phase and subphase in one word: `interview/asking`.
pub(crate) fn phase_name(workflow: &Workflow) -> String {
    match workflow.phase() {
        (phase, Some(subphase)) => format!("{phase}/{subphase}"),
        (phase, None) => phase.to_owned(),
    }
}

pub(crate) fn wrong_mode(workflow: &Workflow, action: &'static str) -> WorkflowRule {
    WorkflowRule::WrongMode {
        action,
        mode: workflow.mode().as_str(),
    }
}

/// Tells whether somebody may go on by himself: it is active and no person is waited for.
pub(crate) const fn is_free(workflow: &Workflow) -> bool {
    matches!(workflow.status, WorkflowStatus::Active) && workflow.pending.is_none()
}

#[cfg(test)]
mod tests;
