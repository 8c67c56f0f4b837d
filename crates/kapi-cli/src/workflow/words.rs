//! A workflow in words: where it stands and what it waits for.
//!
//! Only words; what may happen is the core's affair.

use kapi_core::workflow_status::WorkflowStatus;
use kapi_workflow::rules::state::Workflow;

/// What is said of a decision that waits.
pub(crate) const WAITS: &str = "waiting for your approval";

/// Returns where a workflow stands: `plan/thesis`, `blocked in run`, `completed`.
pub(crate) fn state(workflow: &Workflow) -> String {
    let (phase, subphase) = workflow.phase();
    stands(workflow.status, phase, subphase, workflow.pending.is_some())
}

/// Returns the same from what a listing knows.
pub(crate) fn stands(
    status: WorkflowStatus,
    phase: &str,
    subphase: Option<&str>,
    is_pending: bool,
) -> String {
    let location = subphase.map_or_else(|| phase.to_owned(), |sub| format!("{phase}/{sub}"));
    match status {
        WorkflowStatus::Active if is_pending => format!("{location}, {WAITS}"),
        WorkflowStatus::Active => location,
        WorkflowStatus::Blocked => format!("blocked in {location}"),
        WorkflowStatus::Completed
        | WorkflowStatus::Failed
        | WorkflowStatus::Abandoned
        | WorkflowStatus::Linked
        | WorkflowStatus::Integrated => status.as_str().to_owned(),
    }
}

/// Returns numbers in a row: `1, 2 and 3`.
pub(crate) fn numbers(numbers: &[u32]) -> String {
    let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
    match words.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use kapi_core::workflow_status::WorkflowStatus;

    use super::{numbers, stands};

    #[test]
    fn where_it_stands_is_said_in_a_few_words() {
        for (status, subphase, is_pending, expected) in [
            (WorkflowStatus::Active, Some("thesis"), false, "plan/thesis"),
            (
                WorkflowStatus::Active,
                Some("approval"),
                true,
                "plan/approval, waiting for your approval",
            ),
            (WorkflowStatus::Blocked, None, false, "blocked in plan"),
            (WorkflowStatus::Completed, None, false, "completed"),
        ] {
            assert_eq!(stands(status, "plan", subphase, is_pending), expected);
        }
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(numbers(&[]), "");
        assert_eq!(numbers(&[4]), "4");
        assert_eq!(numbers(&[1, 2, 9]), "1, 2 and 9");
    }
}
