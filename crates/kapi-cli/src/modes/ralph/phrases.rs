//! What is said of a build wherever it is shown: in the terminal and on its page.

use kapi_core::text::short_id;
use kapi_workflow::rules::modes::Body;
use kapi_workflow::rules::modes::ralph::review::FindingCategory;
use kapi_workflow::rules::modes::ralph::state::{Ralph, Stand, TaskState};
use kapi_workflow::rules::state::Workflow;

use crate::event_words::first_line;

/// Returns the build of a workflow.
pub(super) const fn of(workflow: &Workflow) -> Option<&Ralph> {
    if let Body::Ralph(ralph) = &workflow.body {
        Some(ralph)
    } else {
        None
    }
}

/// Returns where a task stands, in words.
pub(super) fn stand(state: &TaskState) -> String {
    match &state.stand {
        Stand::Waiting if state.base.is_some() => "at work".to_owned(),
        Stand::Waiting => "waits".to_owned(),
        Stand::Proved { commit } => format!("proved, {}", short_id(commit)),
        Stand::Landed { head } => format!("landed, {}", short_id(head)),
        Stand::Rested { status, reason } => reason.as_deref().map_or_else(
            || format!("its goal is {status}"),
            |reason| format!("its goal is {status}: {}", first_line(reason)),
        ),
    }
}

/// Returns a criterion's name with its text, where the plan has it.
pub(super) fn criterion(ralph: &Ralph, id: &str) -> String {
    let plan = ralph.plan.iter();
    let mut criteria = plan.flat_map(|plan| &plan.criteria);
    match criteria.find(|criterion| criterion.id == id) {
        Some(criterion) => format!("{id}: {}", first_line(&criterion.text)),
        None => first_line(id),
    }
}

/// Returns what a finding is about, in words.
pub(super) const fn category(category: FindingCategory) -> &'static str {
    match category {
        FindingCategory::Correctness => "correctness",
        FindingCategory::Regression => "regression",
        FindingCategory::MissingTest => "missing test",
        FindingCategory::ArtifactAlignment => "deviates from the plan",
        FindingCategory::VerificationGap => "not verified",
        FindingCategory::Simplification => "could be simpler",
    }
}
