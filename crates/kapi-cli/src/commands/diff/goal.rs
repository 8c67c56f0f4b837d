//! What a goal changed against its base, proved or not.
//!
//! What speaks against relying on it is said with it.

use kapi_core::id::GoalId;
use serde::Serialize;

use crate::commands::diff::OWNER;
use crate::commands::diff::commits::CommitPatch;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::trust::Trust;
use crate::ui::Format;

#[derive(Debug, Serialize)]
struct GoalDiffView<'a> {
    id: String,
    base: &'a str,
    commit: Option<&'a str>,
    proved: bool,
    paths: Vec<String>,
    /// Whether the patch goes on after its last byte here.
    cut: bool,
    patch: String,
    #[serde(flatten)]
    trust: &'a Trust,
}

/// Prints the patch.
pub(super) fn diff(context: &Context, id: &GoalId, stat: bool) -> Result<Exit, Error> {
    let project = context.project(&context.project_root()?, OWNER);
    let goal = project
        .load(id)
        .map_err(|error| Error::engine(&error, &id.to_string()))?;
    let trust = Trust::of(context, &project, &goal);
    let candidate = goal
        .candidate
        .as_ref()
        .map(|candidate| candidate.commit.as_str());
    let commit = goal.result.as_deref().or(candidate);
    let base = goal.contract.base.commit.as_str();
    let patch = match commit {
        None => CommitPatch::default(),
        Some(commit) => CommitPatch::between(context, project.layout.root(), base, commit)?,
    };
    let proved = goal.result.is_some();
    match context.ui.format {
        Format::Json => {
            context.ui.json(&GoalDiffView {
                id: id.to_string(),
                base,
                commit,
                proved,
                paths: patch.paths(),
                cut: patch.is_cut,
                patch: patch.text(stat),
                trust: &trust,
            });
        }
        Format::Human => {
            if commit.is_some() {
                patch.print(context, stat);
            }
            for warning in trust.warnings(&goal) {
                context.ui.say(&format!("warning: {warning}."));
            }
            if commit.is_none() {
                context
                    .ui
                    .say("No turn has ended yet, so there are no changes to show.");
            } else if !proved {
                context
                    .ui
                    .say("This work is not proved: no branch points at it.");
            }
        }
    }
    Ok(Exit::Success)
}
