//! How an effect of a workflow is metered, and what it came to.

use kapi_core::failure::Failure;
use kapi_core::room::Room;
use kapi_core::usage::Usage;
use kapi_machine::running_effect::{RunningEffect, cut_off, panicked};
use kapi_machine::watch::Activity;

use crate::rules::effect::{EffectResource, WorkflowEffect};
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::spent::{limit, used};
use crate::rules::state::Workflow;

/// Counts what a model used, also in what was heard in all. A goal keeps its own account.
pub(super) fn notice(
    running_effect: &mut RunningEffect<'_, WorkflowEffect>,
    activity: &Activity,
    heard: &mut Usage,
) {
    if let Activity::Used(usage) = activity {
        heard.add(usage);
    }
    match running_effect.effect.action.uses() {
        EffectResource::Model => running_effect.meter.notice(activity),
        EffectResource::Goal | EffectResource::Nothing => {}
    }
}

/// Returns what there is for the effects of a drive that were `heard` to use so much: everything,
/// but for what others have used and what was used before.
pub(super) fn room(
    workflow: &Workflow,
    heard: &Usage,
    unreported: impl Iterator<Item = Usage>,
) -> Room {
    let limit = limit(workflow).beyond(heard);
    let mut used = used(workflow);
    unreported.for_each(|more| used.add(&more));
    Room::left(limit.tokens, limit.usd_micros, &used)
}

/// Waits for the thread, and returns the outcome with what was used and not reported yet.
pub(super) fn end(
    running_effect: RunningEffect<'_, WorkflowEffect>,
    outcome: Option<WorkflowOutcome>,
) -> WorkflowOutcome {
    let used = running_effect.meter.usage();
    let (effect, is_raised) = (
        running_effect.effect.id.clone(),
        running_effect.cancel.is_raised(),
    );
    let has_panicked = running_effect.join();
    assert!(
        has_panicked != outcome.is_some(),
        "a thread says how its effect ended, or it has panicked"
    );
    let mut outcome = match outcome {
        None => failed(panicked(&effect), false),
        Some(outcome) if outcome.is_cancelled() && !is_raised => failed(cut_off(&effect), true),
        Some(outcome) => outcome,
    };
    outcome.add_usage(&used);
    outcome
}

fn failed(failure: Failure, may_pass: bool) -> WorkflowOutcome {
    WorkflowOutcome::Failed {
        failure,
        may_pass,
        usage: Usage::default(),
    }
}
