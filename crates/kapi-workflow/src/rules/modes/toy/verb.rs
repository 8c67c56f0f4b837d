//! The effect of its own: the integration branch goes to what landed.

use kapi_core::integration_branch::{CheckoutRule, IntegrationBranch};

use crate::rules::branch::Branch;
use crate::rules::effect::{Advancing, WorkflowAction};
use crate::rules::modes::toy::state::Toy;
use crate::rules::outcome::WorkflowOutcome;

/// Returns what is to be done with what landed.
pub(super) fn action(toy: &Toy, landed: &Branch) -> WorkflowAction {
    WorkflowAction::Advance(Box::new(Advancing {
        target: IntegrationBranch::DEV,
        from: toy.base.clone(),
        to: landed.head.clone(),
        checkout: CheckoutRule::Refuse,
    }))
}

/// Returns what came of it, or why it came to nothing; `None` where that is no outcome of it.
pub(super) fn ended(outcome: &WorkflowOutcome) -> Option<Result<String, &'static str>> {
    if let WorkflowOutcome::Advanced { at, .. } = outcome {
        Some(Ok(at.clone()))
    } else if let WorkflowOutcome::Moved { .. } = outcome {
        Some(Err("somebody moved the branch"))
    } else {
        None
    }
}

#[cfg(test)]
pub(super) mod tests {
    use crate::rules::outcome::WorkflowOutcome;

    /// Returns how it can end, well first.
    pub(in super::super) fn outcomes() -> Vec<WorkflowOutcome> {
        let at = "beef".to_owned();
        vec![
            WorkflowOutcome::Advanced { at, brought: None },
            WorkflowOutcome::Moved { found: None },
        ]
    }
}
