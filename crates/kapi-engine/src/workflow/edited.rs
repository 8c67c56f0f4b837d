//! An artifact that a person edited while it waited: kept beside what replaces it, and told to whoever
//! makes the next one.
//!
//! Nothing that a person wrote is overwritten. Knows no phase.

use std::path::PathBuf;

use kapi_core::actor::Actor;
use kapi_core::goal::quote::{fenced, visible};
use kapi_core::workflow::command::Command;
use kapi_core::workflow::decide::TEXT_BYTES_MAX;
use kapi_core::workflow::denied::{Denied, Why};
use kapi_core::workflow::documents::documents;
use kapi_core::workflow::next_command::next_commands;
use kapi_core::workflow::pending::Pending;
use kapi_core::workflow::state::Workflow;
use kapi_store::hash::sha256_hex;
use kapi_store::layout::WorkflowLayout;
use kapi_sys::disk::{Disk, DiskError, replace_durably};
use similar::TextDiff;

use crate::project::Project;
use crate::workflow::error::WorkflowError;
use crate::workflow::key::WorkflowKey;
use crate::workflow::opened::Submitted;

/// The most edits of one artifact that are kept.
const KEPT_MAX: u32 = 999;

/// Lines around a change that are told with it.
const CONTEXT_LINES: usize = 2;

/// What a revision led to.
#[derive(Debug)]
pub struct Revised {
    /// What was recorded.
    pub submitted: Submitted,
    /// Where an edit of the artifact was kept that went along with it.
    pub edited: Option<PathBuf>,
}

impl Project<'_> {
    /// Wants something changed in a person's words. What they edited by hand in the artifact that
    /// waits is part of these words, and is kept beside it.
    ///
    /// # Errors
    /// As [`Project::submit_workflow`]; when the edit is too large to be told.
    pub fn revise_workflow(
        &self,
        key: &WorkflowKey,
        actor: &Actor,
        text: &str,
    ) -> Result<Revised, WorkflowError> {
        let workflow = self.workflow(key)?;
        let plain = |text: &str| Command::Revise {
            text: text.to_owned(),
        };
        let found = match (&workflow.pending, actor) {
            (Some(pending), Actor::Human { .. }) => self.edit_of(key, pending)?,
            (Some(_), Actor::Agent { .. } | Actor::Engine) | (None, _) => None,
        };
        let Some((name, bytes)) = found else {
            let submitted = self.submit_workflow(key, actor, &plain(text))?;
            let edited = None;
            return Ok(Revised { submitted, edited });
        };
        let words = with_edit(&workflow, text, (name, &bytes));
        let Some(words) = words.filter(|words| words.len() <= TEXT_BYTES_MAX) else {
            return Err(too_large(&workflow, name, bytes.len()));
        };
        let layout = self.layout.workflow(key.mode, &key.id);
        let kept = keep(self.disk, &layout, name, &bytes)?;
        let submitted = self.submit_workflow(key, actor, &plain(&words))?;
        Ok(Revised {
            submitted,
            edited: Some(kept),
        })
    }

    /// Returns the artifact that waits as somebody edited it; one that a crash left unwritten is
    /// written first.
    fn edit_of(
        &self,
        key: &WorkflowKey,
        pending: &Pending,
    ) -> Result<Option<(&'static str, Vec<u8>)>, WorkflowError> {
        let layout = self.layout.workflow(key.mode, &key.id);
        if edit(self.disk, &layout, pending)?.is_none() {
            return Ok(None);
        }
        self.repair_workflow(key)?;
        Ok(edit(self.disk, &layout, pending)?)
    }
}

/// Returns the name and the bytes of an artifact that is there and is not what waits.
pub(super) fn edit(
    disk: &dyn Disk,
    layout: &WorkflowLayout,
    pending: &Pending,
) -> Result<Option<(&'static str, Vec<u8>)>, DiskError> {
    let name = pending.decision.artifact();
    let found = disk.read(&layout.document(name), 0)?;
    let edited = found.filter(|bytes| sha256_hex(bytes) != pending.sha256);
    Ok(edited.map(|bytes| (name, bytes)))
}

/// Keeps an edit beside its artifact, as `plan.edited.md` or with a number, and returns where.
pub(super) fn keep(
    disk: &dyn Disk,
    layout: &WorkflowLayout,
    name: &str,
    bytes: &[u8],
) -> Result<PathBuf, DiskError> {
    let stem = name.strip_suffix(".md").unwrap_or(name);
    let first = layout.document(&format!("{stem}.edited.md"));
    let numbered = (2..=KEPT_MAX).map(|n| layout.document(&format!("{stem}.edited-{n}.md")));
    for file in [first.clone()].into_iter().chain(numbered) {
        match disk.read(&file, 0)? {
            None => {
                replace_durably(disk, &file, bytes)?;
                return Ok(file);
            }
            Some(found) if found == bytes => return Ok(file),
            Some(_) => {}
        }
    }
    // So many edits of one draft are nobody's work of a day; the oldest makes room.
    replace_durably(disk, &first, bytes)?;
    Ok(first)
}

/// Returns a person's words with what they edited; nothing where that is certainly too large, which
/// need not be compared to be known.
fn with_edit(workflow: &Workflow, text: &str, (name, bytes): (&str, &[u8])) -> Option<String> {
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
        "take the edited {name} ({n_bytes} bytes) along with what should change: it is too large to \
         be told; put it aside under another name, and say the change in words"
    );
    Denied {
        why: Why::Malformed { rule },
        phase: Some(workflow.phase()),
        pending: workflow.pending.as_ref().map(|pending| pending.decision),
        next_commands: next_commands(workflow),
    }
    .into()
}
