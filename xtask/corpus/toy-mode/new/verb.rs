//! The effect of its own: what landed is weighed.

use crate::rules::branch::Branch;
use crate::rules::effect::WorkflowAction;
use crate::rules::modes::scales::state::Scales;
use crate::rules::outcome::WorkflowOutcome;

/// Returns what is to be done with what landed.
pub(super) fn action(_: &Scales, landed: &Branch) -> WorkflowAction {
    WorkflowAction::Weigh {
        commit: landed.head.clone(),
    }
}

/// Returns what came of it, or why it came to nothing; `None` where that is no outcome of it.
pub(super) fn ended(outcome: &WorkflowOutcome) -> Option<Result<String, &'static str>> {
    if let WorkflowOutcome::Weighed { bytes } = outcome {
        let words = format!("{bytes} bytes");
        Some(if *bytes > 0 {
            Ok(words)
        } else {
            Err("it weighs nothing")
        })
    } else {
        None
    }
}

#[cfg(test)]
pub(super) mod tests {
    use crate::rules::outcome::WorkflowOutcome;

    /// Returns how it can end, well first.
    pub(in super::super) fn outcomes() -> Vec<WorkflowOutcome> {
        vec![
            WorkflowOutcome::Weighed { bytes: 40 },
            WorkflowOutcome::Weighed { bytes: 0 },
        ]
    }
}
