//! `kapi diff`: what a goal changed against its base, proved or not.

use kapi_world::survey::Survey;
use serde::Serialize;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::trust::Trust;
use crate::ui::Format;

/// The most of a patch that is shown.
const PATCH_BYTES_MAX: usize = 64 << 20;

/// Options of `kapi diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The goal: its index, its slug, or both
    reference: String,
}

#[derive(Debug, Serialize)]
struct View<'a> {
    id: String,
    base: &'a str,
    commit: Option<&'a str>,
    proved: bool,
    /// Whether the patch goes on after its last byte here.
    cut: bool,
    patch: String,
    #[serde(flatten)]
    trust: &'a Trust,
}

/// Prints the patch.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let (project, id) = context.find_goal(&args.reference, "kapi diff")?;
    let goal = project
        .load(&id)
        .map_err(|error| Error::engine(&error, &id.to_string()))?;
    let trust = Trust::of(context, &project, &goal);
    let candidate = goal
        .candidate
        .as_ref()
        .map(|candidate| candidate.commit.as_str());
    let commit = goal.result.as_deref().or(candidate);
    let base = goal.contract.base.commit.as_str();
    let (patch, cut) = match commit {
        None => (Vec::new(), false),
        Some(commit) => {
            let book = context.book(&context.config(Some(project.layout.root()))?);
            let patch = Survey::of(&book, project.layout.root())
                .and_then(|survey| survey.diff(base, commit, PATCH_BYTES_MAX))
                .map_err(|failure| Error::world(&failure))?;
            (patch.bytes, patch.is_cut)
        }
    };
    let proved = goal.result.is_some();
    match context.ui.format {
        Format::Json => {
            context.ui.json(&View {
                id: id.to_string(),
                base,
                commit,
                proved,
                cut,
                patch: String::from_utf8_lossy(&patch).into_owned(),
                trust: &trust,
            });
        }
        Format::Human => {
            context.ui.raw(&patch);
            for warning in trust.warnings(&goal) {
                context.ui.say(&format!("warning: {warning}."));
            }
            if cut {
                context
                    .ui
                    .say("The patch is longer; `git diff` of the commits shows all of it.");
            }
            if commit.is_none() {
                context
                    .ui
                    .say("No turn has ended yet, so there is no change to show.");
            } else if !proved {
                context
                    .ui
                    .say("This work is not proved: no branch points at it.");
            }
        }
    }
    Ok(Exit::Success)
}
