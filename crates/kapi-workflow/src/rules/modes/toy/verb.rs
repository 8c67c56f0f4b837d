//! The effect of its own: the integration branch goes to what landed.

use kapi_core::integration_branch::{CheckoutRule, IntegrationBranch};

use crate::rules::branch::Branch;
use crate::rules::effect::{Action, Advancing};
use crate::rules::modes::toy::state::Toy;
use crate::rules::outcome::Outcome;

/// Returns what is to be done with what landed.
pub(super) fn action(toy: &Toy, landed: &Branch) -> Action {
    Action::Advance(Box::new(Advancing {
        target: IntegrationBranch::DEV,
        from: toy.base.clone(),
        to: landed.head.clone(),
        checkout: CheckoutRule::Refuse,
    }))
}

/// Returns what came of it, or why it came to nothing; `None` where that is no outcome of it.
pub(super) fn ended(outcome: &Outcome) -> Option<Result<String, &'static str>> {
    if let Outcome::Advanced { at, .. } = outcome {
        Some(Ok(at.clone()))
    } else if let Outcome::Moved { .. } = outcome {
        Some(Err("somebody moved the branch"))
    } else {
        None
    }
}

#[cfg(test)]
pub(super) mod tests {
    use crate::rules::outcome::Outcome;

    /// Returns how it can end, well first.
    pub(in super::super) fn outcomes() -> Vec<Outcome> {
        let at = "beef".to_owned();
        vec![
            Outcome::Advanced { at, brought: None },
            Outcome::Moved { found: None },
        ]
    }
}
