//! What the engine tells of effects: that one begins, what it uses, how it ended.
//!
//! What an outcome means is the mode's affair; that it ended, failed too often or was stopped is
//! not.

use kapi_core::actor::Actor;
use kapi_core::evidence::EvidenceFile;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::usage::Usage;

use crate::rules::decide::{engine, going_on, worker, wrong_mode};
use crate::rules::decision_context::DecisionContext;
use crate::rules::denied::WorkflowRule;
use crate::rules::effect::next;
use crate::rules::event::WorkflowEvent;
use crate::rules::limits::GoalAccount;
use crate::rules::mode_spec::GoalNames;
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::state::Workflow;

/// The most failures of one effect in a row; the last one holds the workflow up.
pub(super) const FAILURES_MAX: u32 = 4;

pub(super) fn intend(
    workflow: &Workflow,
    actor: &Actor,
    effect: &EffectId,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    engine(actor, "start an effect")?;
    going_on(workflow, "start an effect")?;
    let wanted = next(workflow);
    let Some(wanted) = wanted.iter().find(|wanted| wanted.id == *effect) else {
        return Err(WorkflowRule::Malformed {
            rule: format!("start {effect}, which is not expected"),
        });
    };
    if workflow.in_flight.contains_key(effect) {
        return Ok(Vec::new());
    }
    let task = wanted.action.worker_task();
    let mut events = task.map_or_else(Vec::new, |task| {
        worker::dispatch(workflow, effect, task.as_str(), given)
    });
    events.push(WorkflowEvent::EffectIntended {
        effect: effect.clone(),
        at_ms: given.now_ms,
    });
    Ok(events)
}

pub(super) fn progress(
    workflow: &Workflow,
    actor: &Actor,
    effect: &EffectId,
    usage: Usage,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    engine(actor, "report what an effect uses")?;
    in_flight(workflow, effect)?;
    if usage.is_zero() {
        return Ok(Vec::new());
    }
    let effect = effect.clone();
    Ok(vec![WorkflowEvent::EffectUsed { effect, usage }])
}

/// Takes the time that somebody was at work, where that is limited.
pub(super) fn use_time(
    workflow: &Workflow,
    actor: &Actor,
    ms: u64,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    engine(actor, "report working time")?;
    if ms == 0 || workflow.terms.wall_ms.is_none() {
        return Ok(Vec::new());
    }
    Ok(vec![WorkflowEvent::TimeUsed { ms }])
}

pub(super) fn record_run(
    workflow: &Workflow,
    actor: &Actor,
    effect: &EffectId,
    files: &[EvidenceFile],
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    engine(actor, "record what a run wrote")?;
    in_flight(workflow, effect)?;
    Ok(vec![WorkflowEvent::RunRecorded {
        effect: effect.clone(),
        files: files.to_vec(),
    }])
}

/// Takes what a goal's own account says; whoever says it again changes nothing.
pub(super) fn goal_use(
    workflow: &Workflow,
    actor: &Actor,
    goal: &GoalId,
    account: &GoalAccount,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    engine(actor, "record what a goal used")?;
    match workflow.body.rules().spec().goals {
        GoalNames::None => return Err(wrong_mode(workflow, "record what a goal used")),
        GoalNames::OfWorkflow => {}
    }
    let is_known = workflow.goals.get(goal) == Some(account);
    if is_known || (account.used.is_zero() && !workflow.goals.contains_key(goal)) {
        return Ok(Vec::new());
    }
    Ok(vec![WorkflowEvent::GoalUsed {
        goal: goal.clone(),
        account: account.clone(),
    }])
}

pub(super) fn report(
    workflow: &Workflow,
    effect: &EffectId,
    outcome: &WorkflowOutcome,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    in_flight(workflow, effect)?;
    let mut events = worker::rested(workflow, effect, outcome);
    events.push(WorkflowEvent::EffectEnded {
        effect: effect.clone(),
        usage: outcome.usage(),
        failed: outcome.failure().map(|failure| failure.message.clone()),
    });
    if workflow.status.is_terminal() || outcome.is_cancelled() {
        return Ok(events);
    }
    events.extend(if outcome.failure().is_some() {
        held_up(workflow, effect, outcome)
    } else {
        let mode = workflow.body.rules();
        mode.report(workflow, effect, outcome, given)?
    });
    Ok(events)
}

fn in_flight(workflow: &Workflow, effect: &EffectId) -> Result<(), WorkflowRule> {
    if workflow.in_flight.contains_key(effect) {
        return Ok(());
    }
    Err(WorkflowRule::NotInFlight {
        effect: effect.to_string(),
    })
}

/// A failure that cannot pass, or came too often, holds the workflow up; one of an effect that
/// nobody wants any more does not.
fn held_up(
    workflow: &Workflow,
    effect: &EffectId,
    outcome: &WorkflowOutcome,
) -> Vec<WorkflowEvent> {
    let WorkflowOutcome::Failed {
        failure, may_pass, ..
    } = outcome
    else {
        return Vec::new();
    };
    let is_wanted = next(workflow).iter().any(|wanted| wanted.id == *effect);
    let before = workflow.failures.get(effect).copied().unwrap_or(0);
    if !is_wanted || (*may_pass && before.saturating_add(1) < FAILURES_MAX) {
        return Vec::new();
    }
    let hint = failure.hint.clone();
    vec![WorkflowEvent::Blocked {
        reason: format!("failed to {}", failure.message),
        unblock: hint.unwrap_or_else(|| "fix the reported problem, then resume".to_owned()),
    }]
}
