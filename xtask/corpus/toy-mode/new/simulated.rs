//! A scale in the simulator: one that is described twice and fits at the second try.

use kapi_core::workflow_status::WorkflowStatus;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::effect::{AgentQuestion, WorkflowAction, WorkflowEffect};
use kapi_workflow::rules::modes::scales::answer::ScalesAnswer;
use kapi_workflow::rules::modes::scales::begin::ScalesBegin;
use kapi_workflow::rules::modes::scales::command::ScalesCommand;
use kapi_workflow::rules::modes::scales::event::ScalesEvent;
use kapi_workflow::rules::modes::scales::state::Scales;
use kapi_workflow::rules::modes::{Begin, ModeCommand};
use kapi_workflow::rules::outcome::WorkflowOutcome;
use kapi_workflow::rules::state::Workflow;

use crate::workflow_sim::modes::NoAnswer;
use crate::workflow_sim::script::{Deed, NextStep, WorkflowScript, by_person, usual};

kinds! {
    KINDS, kind: ScalesEvent as "Scales::"
    [Described, Reopened, TriedInVain, BranchMade, Proved, Landed, Carried]
}

/// The story.
pub(super) const TALES: &[WorkflowScript] = &[WorkflowScript {
    name: "scales",
    end: WorkflowStatus::Completed,
    next,
    deed,
}];

fn next(known: &[Workflow]) -> NextStep<'_> {
    match known.first() {
        None => NextStep::Start(
            "Weigh the store of sessions",
            Begin::Scales(ScalesBegin {
                base: "0".repeat(40),
            }),
        ),
        Some(scales) => NextStep::Drive(scales),
    }
}

fn deed(workflow: &Workflow) -> Option<Deed> {
    if workflow.pending.is_some() && workflow.revisions.is_empty() {
        let reweigh = ModeCommand::Scales(ScalesCommand::Reweigh);
        return by_person(WorkflowCommand::Mode(reweigh));
    }
    usual(workflow)
}

/// Returns what its agent says: once nothing that can be read.
pub(super) fn reply(
    _: &AgentQuestion,
    _: &Workflow,
    scales: &Scales,
    _: usize,
) -> Result<ScalesAnswer, NoAnswer> {
    if scales.tries == 1 {
        return Err(NoAnswer::Unreadable("it is no JSON"));
    }
    Ok(ScalesAnswer {
        text: "A scale.".to_owned(),
        script: "sh weigh.sh".to_owned(),
    })
}

/// The second question takes long.
pub(super) const fn takes_long(_: &AgentQuestion, scales: &Scales) -> bool {
    scales.tries == 2
}

/// The first landing does not fit, and what lands is weighed.
pub(super) fn outcome(effect: &WorkflowEffect, _: &Workflow) -> Option<WorkflowOutcome> {
    if let WorkflowAction::Weigh { commit } = &effect.action {
        let bytes = commit.len();
        Some(WorkflowOutcome::Weighed { bytes })
    } else if let WorkflowAction::Land(_) = &effect.action {
        let is_first = effect.id.as_str().starts_with("t003");
        is_first.then_some(WorkflowOutcome::Conflicted { paths: Vec::new() })
    } else {
        None
    }
}

/// Returns what it came to.
pub(super) fn detail(scales: &Scales) -> Vec<String> {
    scales.carried.iter().cloned().collect()
}
