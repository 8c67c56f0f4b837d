//! What a workflow may use as a whole, what it has used, and what is left of it.
//!
//! One sum: questions to agents and the accounts of all its goals; time is counted while anything is
//! under way, whoever waits for whom. A used-up limit holds the workflow
//! up until a person raises it; going on alone allows nothing more. Knows no goal but its account.

use kapi_core::usage::Usage;

use crate::rules::limits::Amounts;
use crate::rules::state::Workflow;

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

/// Returns for how many milliseconds somebody may be at work altogether; `None` is no limit.
#[must_use]
pub fn time_limit_ms(workflow: &Workflow) -> Option<u64> {
    let limit_ms = workflow.terms.wall_ms?;
    Some(limit_ms.saturating_add(workflow.raised.wall_ms))
}

/// Returns how many milliseconds are left of that; `None` is no limit.
#[must_use]
pub fn time_left_ms(workflow: &Workflow) -> Option<u64> {
    let limit_ms = time_limit_ms(workflow)?;
    Some(limit_ms.saturating_sub(workflow.wall_used_ms))
}

/// Returns why nothing more may be used, and how that is changed; `None` while something is left.
#[must_use]
pub fn used_up(workflow: &Workflow) -> Option<(String, String)> {
    let spent = spent(workflow)?;
    let command = raise_command(workflow)?;
    Some((
        spent.reason.to_owned(),
        format!("raise the limit and resume: {command}"),
    ))
}

/// Returns the command that allows more; `None` while something is left.
#[must_use]
pub fn raise_command(workflow: &Workflow) -> Option<String> {
    let option = spent(workflow)?.option;
    let (mode, index) = (workflow.mode(), workflow.id.index());
    Some(format!("kapi {mode} resume {index:03} {option}"))
}

/// A limit of which nothing is left.
struct ExhaustedLimit {
    /// In a sentence.
    reason: &'static str,
    /// The option that raises it.
    option: &'static str,
}

fn spent(workflow: &Workflow) -> Option<ExhaustedLimit> {
    let left = left(workflow);
    let (reason, option) = if left.tokens == Some(0) {
        (
            "the workflow has used up its token limit",
            "--tokens +1000000",
        )
    } else if left.usd_micros == Some(0) {
        ("the workflow has used up its cost limit", "--usd +5")
    } else if time_left_ms(workflow) == Some(0) {
        (
            "the workflow has used up its working-time limit",
            "--wall +30m",
        )
    } else {
        return None;
    };
    Some(ExhaustedLimit { reason, option })
}

#[cfg(test)]
mod tests;
