//! How a workflow begins: by a person, with terms that can be kept.
//!
//! Whether the id is free is the engine's affair.

use kapi_core::actor::Actor;

use crate::rules::command::WorkflowStart;
use crate::rules::decide::{human, said};
use crate::rules::decision_context::DecisionContext;
use crate::rules::denied::WorkflowRule;
use crate::rules::event::WorkflowEvent;
use crate::rules::terms::WorkflowTerms;

/// The most goals that may be driven at once.
const JOBS_MAX: u32 = 64;

pub(super) fn start(
    start: &WorkflowStart,
    actor: &Actor,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    let by = human(actor, "start a workflow")?.to_owned();
    let purpose = said(&start.purpose, "start without a purpose")?;
    sound(&start.terms)?;
    if let Some(rule) = start.begin.fault() {
        malformed(rule)?;
    }
    Ok(vec![WorkflowEvent::Started {
        id: start.id.clone(),
        purpose,
        by,
        terms: Box::new(start.terms.clone()),
        begin: start.begin.clone(),
        at_ms: given.now_ms,
    }])
}

fn sound(terms: &WorkflowTerms) -> Result<(), WorkflowRule> {
    if terms.agent.trim().is_empty() {
        return malformed("start without an agent");
    }
    if terms
        .reviewer
        .as_ref()
        .is_some_and(|name| name.trim().is_empty())
    {
        return malformed("start with an unnamed reviewer");
    }
    if !(1..=JOBS_MAX).contains(&terms.jobs) {
        return malformed("start with a number of jobs outside 1 to 64");
    }
    if terms.question_timeout_ms == 0 || terms.verify_timeout_ms == 0 {
        return malformed("start with a time limit of zero");
    }
    if [terms.tokens, terms.usd_micros, terms.wall_ms].contains(&Some(0)) {
        return malformed("start with a budget of zero");
    }
    if terms.verify.iter().any(|command| command.trim().is_empty()) {
        return malformed("start with an empty verify command");
    }
    Ok(())
}

fn malformed(rule: &str) -> Result<(), WorkflowRule> {
    Err(WorkflowRule::Malformed {
        rule: rule.to_owned(),
    })
}
