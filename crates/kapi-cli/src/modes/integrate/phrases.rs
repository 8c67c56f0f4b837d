//! What the words and the page of an integration both say.

use kapi_core::text::{agent_name, counted};
use kapi_workflow::rules::modes::Body;
use kapi_workflow::rules::modes::integrate::state::{Argument, Integrate, Statement};
use kapi_workflow::rules::state::Workflow;

use crate::event_words::first_line;

/// Returns the integration of a workflow.
pub(super) const fn of(workflow: &Workflow) -> Option<&Integrate> {
    if let Body::Integrate(state) = &workflow.body {
        Some(state)
    } else {
        None
    }
}

/// Returns what was said for or against a result, in a line.
pub(super) fn said(statement: &Statement) -> String {
    let agent = agent_name(&statement.by.agent);
    match &statement.said {
        Argument::Thesis(said) => format!("thesis by {agent}: {}", first_line(&said.defence)),
        Argument::Antithesis(said) => format!(
            "antithesis by {agent}, {}: {}",
            counted(said.objections.len(), "objection"),
            first_line(&said.strongest)
        ),
        Argument::Synthesis(said) => {
            let word = said.verdict.as_str();
            format!("synthesis by {agent}: {word}: {}", first_line(&said.why))
        }
    }
}
