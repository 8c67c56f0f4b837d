//! An artifact that a person edited while it waited: kept beside what replaces it, and told to whoever
//! makes the next one.
//!
//! Nothing that a person wrote is overwritten. Knows no phase.

use std::path::PathBuf;

use kapi_core::actor::Actor;
use kapi_core::quote::{fenced, visible};
use kapi_core::workflow_key::WorkflowKey;
use similar::TextDiff;

use super::edits::{Edit, edits, keep};
use crate::record::error::WorkflowError;
use crate::record::opened::WorkflowSubmission;
use crate::record::workflows::Workflows;
use crate::rules::command::WorkflowCommand;
use crate::rules::decide::TEXT_BYTES_MAX;
use crate::rules::denied::{WorkflowDenial, WorkflowRule};
use crate::rules::documents::documents;
use crate::rules::next_command::next_commands;
use crate::rules::state::Workflow;

/// Lines around a change that are told with it.
const CONTEXT_LINES: usize = 2;

/// What a revision led to.
#[derive(Debug)]
pub struct RevisionOutcome {
    /// What was recorded.
    pub submitted: WorkflowSubmission,
    /// Where the edits of artifacts were kept that went along with it.
    pub edited: Vec<PathBuf>,
}

impl Workflows<'_> {
    /// Wants something changed in a person's words. What they edited by hand in the artifact that
    /// waits is part of these words, and is kept beside it.
    ///
    /// # Errors
    /// As [`Workflows::submit_workflow`]; when the edit is too large to be told.
    pub fn revise_workflow(
        &self,
        key: &WorkflowKey,
        actor: &Actor,
        text: &str,
    ) -> Result<RevisionOutcome, WorkflowError> {
        let workflow = self.workflow(key)?;
        let plain = |text: &str| WorkflowCommand::Revise {
            text: text.to_owned(),
        };
        let found = match (&workflow.pending, actor) {
            (Some(_), Actor::Human { .. }) => self.edits_of(key, &workflow)?,
            (Some(_), Actor::Agent { .. } | Actor::Engine) | (None, _) => Vec::new(),
        };
        let mut words = text.to_owned();
        for (name, bytes) in &found {
            let more = with_edit(&workflow, &words, name, bytes);
            let Some(more) = more.filter(|words| words.len() <= TEXT_BYTES_MAX) else {
                return Err(too_large(&workflow, name, bytes.len()));
            };
            words = more;
        }
        let layout = self.layout.workflow(key.mode, &key.id);
        let mut edited = Vec::new();
        for (name, bytes) in &found {
            edited.push(keep(self.disk, &layout, name, bytes)?);
        }
        let submitted = self.submit_workflow(key, actor, &plain(&words))?;
        Ok(RevisionOutcome { submitted, edited })
    }

    /// Returns the artifacts that wait as somebody edited them; one that a crash left unwritten is
    /// written first.
    fn edits_of(&self, key: &WorkflowKey, workflow: &Workflow) -> Result<Vec<Edit>, WorkflowError> {
        let layout = self.layout.workflow(key.mode, &key.id);
        if edits(self.disk, &layout, workflow)?.is_empty() {
            return Ok(Vec::new());
        }
        self.repair_workflow(key)?;
        Ok(edits(self.disk, &layout, workflow)?)
    }
}

/// Returns a person's words with what they edited; nothing where that is certainly too large, which
/// need not be compared to be known.
fn with_edit(workflow: &Workflow, text: &str, name: &str, bytes: &[u8]) -> Option<String> {
    let drafted = documents(workflow);
    let drafted = drafted.iter().find(|document| document.name == name);
    let drafted = drafted.map_or("", |document| document.text.as_str());
    if bytes.len() > TEXT_BYTES_MAX.saturating_add(drafted.len()) {
        return None;
    }
    let edited = String::from_utf8_lossy(bytes);
    let changed = TextDiff::from_lines(drafted, edited.as_ref())
        .unified_diff()
        .context_radius(CONTEXT_LINES)
        .missing_newline_hint(false)
        .to_string();
    Some(format!(
        "{}\n\nI edited {name} by hand. These lines are part of what I want changed:\n\n{}",
        text.trim(),
        fenced(&visible(&changed), "diff")
    ))
}

fn too_large(workflow: &Workflow, name: &str, n_bytes: usize) -> WorkflowError {
    let rule = format!(
        "include the edited {name} ({n_bytes} bytes) in the request: it is too large; move it \
         to another name and describe the change in words"
    );
    WorkflowDenial {
        why: WorkflowRule::Malformed { rule },
        phase: Some(workflow.phase()),
        pending: workflow.pending.as_ref().map(|pending| pending.decision),
        next_commands: next_commands(workflow),
    }
    .into()
}
