//! What a person decides about a workflow, whatever its mode.
//!
//! An approval needs three equal hashes: of what was shown, of the file, and of what is pending.

use kapi_core::actor::Actor;
use kapi_core::id::GoalId;
use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::command::WorkflowCommand;
use crate::rules::decide::{
    engine, folded, going_on, human, said, subject, wrong_mode, wrong_phase,
};
use crate::rules::decision_context::DecisionContext;
use crate::rules::denied::WorkflowRule;
use crate::rules::effect::next;
use crate::rules::event::WorkflowEvent;
use crate::rules::limits::LimitRaises;
use crate::rules::mode_spec::Integration;
use crate::rules::pending::{DecisionApproval, Means, WaitingDecision};
use crate::rules::spent;
use crate::rules::state::Workflow;

pub(super) fn approve(
    workflow: &Workflow,
    actor: &Actor,
    command: &WorkflowCommand,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    let WorkflowCommand::Approve {
        sha256,
        found,
        means,
        accepts_risks,
    } = command
    else {
        return Err(wrong_phase(workflow, "approve"));
    };
    let by = human(actor, "approve")?;
    going_on(workflow, "approve")?;
    let pending = workflow
        .pending
        .as_ref()
        .ok_or(WorkflowRule::NoPendingDecision)?;
    if *means == Means::InAdvance {
        let rule = "approve in advance what is pending already".to_owned();
        return Err(WorkflowRule::Malformed { rule });
    }
    is_subject(workflow, pending, [sha256, found], given)?;
    if !pending.risks.is_empty() && !accepts_risks {
        return Err(WorkflowRule::RisksNotAccepted {
            artifact: pending.decision.words(),
            risks: pending.risks.join("; "),
        });
    }
    let approval = DecisionApproval {
        decision: pending.decision,
        sha256: pending.sha256.clone(),
        means: *means,
        by: by.to_owned(),
        accepted: pending.risks.clone(),
        at_ms: given.now_ms,
    };
    Ok(with_what_follows(
        workflow,
        WorkflowEvent::Approved { approval },
        given,
    ))
}

/// The hash that was shown, the file's, and that of the artifact as the state tells it must be the
/// pending one.
fn is_subject(
    workflow: &Workflow,
    pending: &WaitingDecision,
    named: [&String; 2],
    given: &DecisionContext,
) -> Result<(), WorkflowRule> {
    let now = subject(workflow, pending.decision, given);
    let [shown, found] = named;
    let other = [found, &now, &pending.sha256]
        .into_iter()
        .find(|hash| *hash != shown);
    match other {
        None => Ok(()),
        Some(other) => Err(WorkflowRule::SubjectChanged {
            artifact: pending.decision.words(),
            shown: shown.as_str().into(),
            found: other.as_str().into(),
        }),
    }
}

/// Returns an approval and what the mode lets follow it.
fn with_what_follows(
    workflow: &Workflow,
    approved: WorkflowEvent,
    given: &DecisionContext,
) -> Vec<WorkflowEvent> {
    let mut events = vec![approved];
    let after = folded(workflow, &events);
    events.extend(after.body.rules().after_approval(&after, given));
    events
}

pub(super) fn revise(
    workflow: &Workflow,
    actor: &Actor,
    text: &str,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    human(actor, "request a change")?;
    going_on(workflow, "change")?;
    let text = said(text, "request a change without describing it")?;
    let mode = workflow.body.rules();
    let follows = mode.after_revision(workflow, &text, given)?;
    let at_ms = given.now_ms;
    let mut events = vec![WorkflowEvent::Revised { text, at_ms }];
    events.extend(follows);
    Ok(events)
}

/// Holds it up until the person goes on with it; what is at rest already stays as it is.
pub(super) fn pause(
    workflow: &Workflow,
    actor: &Actor,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    human(actor, "pause it")?;
    going_on(workflow, "pause it")?;
    if workflow.status == WorkflowStatus::Blocked {
        return Ok(Vec::new());
    }
    let (mode, index) = (workflow.mode(), workflow.id.reference());
    Ok(vec![WorkflowEvent::Blocked {
        reason: "paused by the user".to_owned(),
        unblock: format!("kapi {mode} resume {index}"),
    }])
}

pub(super) fn unblock(
    workflow: &Workflow,
    actor: &Actor,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    human(actor, "resume it")?;
    going_on(workflow, "go on")?;
    match workflow.status {
        WorkflowStatus::Blocked => {
            let mut events = vec![WorkflowEvent::Unblocked {}];
            let after = folded(workflow, &events);
            events.extend(after.body.rules().after_unblock(&after, given));
            may_use(workflow, &events)?;
            Ok(events)
        }
        WorkflowStatus::Active
        | WorkflowStatus::Completed
        | WorkflowStatus::Failed
        | WorkflowStatus::Abandoned
        | WorkflowStatus::Linked
        | WorkflowStatus::Integrated => Ok(Vec::new()),
    }
}

/// Refuses to go on to where a used-up limit holds it up again at once: only raising it helps.
fn may_use(workflow: &Workflow, events: &[WorkflowEvent]) -> Result<(), WorkflowRule> {
    let after = folded(workflow, events);
    let is_held_up =
        after.status == WorkflowStatus::Blocked || next(&after).iter().any(super::uses_something);
    match spent::used_up(&after) {
        Some((reason, unblock)) if is_held_up => Err(WorkflowRule::NotReady {
            action: "go on",
            reasons: vec![reason, unblock],
        }),
        Some(_) | None => Ok(()),
    }
}

/// Allows more for the whole, where there is a limit.
pub(super) fn raise(
    workflow: &Workflow,
    actor: &Actor,
    more: LimitRaises,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    let by = human(actor, "raise the limits")?.to_owned();
    going_on(workflow, "raise the limits")?;
    let terms = &workflow.terms;
    if more.is_zero() {
        let rule = "raise the limits by zero".to_owned();
        return Err(WorkflowRule::Malformed { rule });
    }
    let kinds = [
        ("tokens", more.tokens, terms.tokens),
        ("money", more.usd_micros, terms.usd_micros),
        ("time", more.wall_ms, terms.wall_ms),
    ];
    for (kind, more, limit) in kinds {
        if more > 0 && limit.is_none() {
            let rule = format!("raise the limit of {kind}: the workflow has none");
            return Err(WorkflowRule::Malformed { rule });
        }
    }
    let at_ms = given.now_ms;
    Ok(vec![WorkflowEvent::LimitsRaised { more, by, at_ms }])
}

pub(super) fn abandon(
    workflow: &Workflow,
    actor: &Actor,
    reason: &str,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    human(actor, "abandon a workflow")?;
    going_on(workflow, "abandon it")?;
    let reason = said(reason, "abandon it without a reason")?;
    Ok(vec![WorkflowEvent::Abandoned { reason }])
}

/// The one way out of an end: completed work that an integration took over.
pub(super) fn integrated(
    workflow: &Workflow,
    actor: &Actor,
    by: &GoalId,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    let action = "mark as integrated";
    engine(actor, action)?;
    match workflow.body.rules().spec().integration {
        Integration::Never => return Err(wrong_mode(workflow, action)),
        Integration::AfterCompletion => {}
    }
    match workflow.status {
        WorkflowStatus::Completed => Ok(vec![WorkflowEvent::Integrated {
            by: by.clone(),
            at_ms: given.now_ms,
        }]),
        WorkflowStatus::Active | WorkflowStatus::Blocked => Err(wrong_phase(workflow, action)),
        WorkflowStatus::Failed
        | WorkflowStatus::Abandoned
        | WorkflowStatus::Linked
        | WorkflowStatus::Integrated => Err(WorkflowRule::AlreadyTerminal {
            action,
            status: workflow.status.as_str(),
        }),
    }
}
