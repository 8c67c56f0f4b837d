//! How a workflow begins: by a person, with terms that can be kept.
//!
//! Whether the id is free is the engine's affair.

use kapi_core::actor::Actor;

use crate::rules::command::Start;
use crate::rules::decide::{human, said};
use crate::rules::denied::Why;
use crate::rules::event::Event;
use crate::rules::given::Given;
use crate::rules::terms::Terms;

/// The most goals that may be driven at once.
const JOBS_MAX: u32 = 64;

pub(super) fn start(start: &Start, actor: &Actor, given: &Given) -> Result<Vec<Event>, Why> {
    let by = human(actor, "start a workflow")?.to_owned();
    let purpose = said(&start.purpose, "start without a purpose")?;
    sound(&start.terms)?;
    if let Some(rule) = start.begin.fault() {
        malformed(rule)?;
    }
    Ok(vec![Event::Started {
        id: start.id.clone(),
        purpose,
        by,
        terms: Box::new(start.terms.clone()),
        begin: start.begin.clone(),
        at_ms: given.now_ms,
    }])
}

fn sound(terms: &Terms) -> Result<(), Why> {
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

fn malformed(rule: &str) -> Result<(), Why> {
    Err(Why::Malformed {
        rule: rule.to_owned(),
    })
}
