//! What a workflow may use as a whole, what it has used, and what is left of it.
//!
//! One sum: questions to agents and the accounts of all its goals. A used-up limit holds the workflow
//! up until a person raises it; going on alone allows nothing more. Knows no goal but its account.

use crate::usage::Usage;
use crate::workflow::limits::Amounts;
use crate::workflow::state::Workflow;

/// Returns what may be used altogether.
#[must_use]
pub fn limit(workflow: &Workflow) -> Amounts {
    let raised = &workflow.raised;
    let add = |limit: Option<u64>, more: u64| limit.map(|limit| limit.saturating_add(more));
    Amounts {
        tokens: add(workflow.terms.tokens, raised.tokens),
        usd_micros: add(workflow.terms.usd_micros, raised.usd_micros),
    }
}

/// Returns what was used altogether.
#[must_use]
pub fn used(workflow: &Workflow) -> Usage {
    let mut used = workflow.used;
    for account in workflow.goals.values() {
        used.add(&account.used);
    }
    used
}

/// Returns what is left.
#[must_use]
pub fn left(workflow: &Workflow) -> Amounts {
    limit(workflow).less(&used(workflow))
}

/// Returns why nothing more may be used, and how that is changed; `None` while something is left.
#[must_use]
pub fn used_up(workflow: &Workflow) -> Option<(String, String)> {
    let (what, _) = spent(workflow)?;
    let command = raise_command(workflow)?;
    Some((
        format!("the {what} for the whole workflow are used up: questions and goals together"),
        format!("raise the limit and go on: {command}"),
    ))
}

/// Returns the command that allows more; `None` while something is left.
#[must_use]
pub fn raise_command(workflow: &Workflow) -> Option<String> {
    let (_, option) = spent(workflow)?;
    let (mode, index) = (workflow.mode(), workflow.id.index());
    Some(format!("kapi {mode} resume {index:03} {option}"))
}

/// Returns what is used up, and the option that raises it.
fn spent(workflow: &Workflow) -> Option<(&'static str, &'static str)> {
    let left = left(workflow);
    if left.tokens == Some(0) {
        Some(("tokens", "--tokens +1000000"))
    } else if left.usd_micros == Some(0) {
        Some(("dollars", "--usd +5"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
