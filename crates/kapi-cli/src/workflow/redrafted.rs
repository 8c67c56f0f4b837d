//! What changed in an artifact since it was last drafted, for a person who approves it anew.
//!
//! Both drafts are made again from the log; nothing is kept for this alone.

use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::documents::documents;
use kapi_workflow::rules::event::WorkflowEvent;
use kapi_workflow::rules::evolve::evolve;
use kapi_workflow::rules::pending::WaitingDecision;
use kapi_workflow::rules::state::Workflow;
use similar::TextDiff;

use crate::error::Error;
use crate::workflow::located::LocatedWorkflow;

/// Lines around a change that are shown with it.
const CONTEXT_LINES: usize = 1;
/// The most lines of changes that are shown.
const LINES_MAX: usize = 400;

/// The artifacts of one draft, in the order of their names.
type Draft = Vec<String>;

/// Returns the changes since the draft before, as lines; `None` of a first draft.
pub(crate) fn changes(
    found: &LocatedWorkflow<'_>,
    pending: &WaitingDecision,
) -> Result<Option<String>, Error> {
    let log = Workflows::of(&found.project).workflow_log(&found.key);
    let log = log.map_err(|error| Error::workflow(&error))?;
    let (mut before, mut last): (Option<Draft>, Option<Draft>) = (None, None);
    let mut workflow = None;
    for record in &log {
        evolve(&mut workflow, &record.event);
        if let (Some(workflow), WorkflowEvent::DecisionAsked { pending: asked }) =
            (&workflow, &record.event)
            && asked.decision == pending.decision
        {
            before = last.replace(drafted(workflow, pending));
        }
    }
    Ok(before.zip(last).map(|(before, last)| {
        let names = pending.decision.artifacts().iter();
        let pairs = names.zip(before.iter().zip(&last));
        let changed: Vec<String> = pairs
            .map(|(name, (before, last))| {
                TextDiff::from_lines(before, last)
                    .unified_diff()
                    .context_radius(CONTEXT_LINES)
                    .header(&format!("{name}, before"), name)
                    .to_string()
            })
            .collect();
        shown(&changed.concat())
    }))
}

fn drafted(workflow: &Workflow, pending: &WaitingDecision) -> Draft {
    let documents = documents(workflow);
    let text = |name: &&str| {
        let document = documents.iter().find(|document| document.name == **name);
        document.map_or_else(String::new, |document| document.text.clone())
    };
    pending.decision.artifacts().iter().map(text).collect()
}

fn shown(changes: &str) -> String {
    if changes.is_empty() {
        return "Nothing changed since the draft before.".to_owned();
    }
    let all = changes.lines().count();
    let mut lines: Vec<&str> = changes.lines().take(LINES_MAX).collect();
    let more = format!("and {} more lines", all.saturating_sub(LINES_MAX));
    if all > LINES_MAX {
        lines.push(&more);
    }
    format!("Changed since the draft before:\n{}", lines.join("\n"))
}
