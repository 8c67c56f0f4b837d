//! `kapi goal status`: where goals stand, a line each.

use serde::Serialize;

use crate::commands::goal::{answer, pick};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;

/// Options of `kapi goal status`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The goal; without it, every unfinished one
    #[arg(value_name = "GOAL")]
    reference: Option<String>,
}

#[derive(Debug, Serialize)]
struct View<'a> {
    goals: Vec<answer::View<'a>>,
}

/// Shows where one goal stands, or every unfinished one.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    if args.reference.is_some() {
        let picked = pick::to_look_at(context, args.reference.as_deref())?;
        return Ok(answer::give(
            context,
            &picked.goal,
            &[answer::line(&picked.goal)],
        ));
    }
    let goals = match context.project_root() {
        Ok(root) => {
            let project = context.project(&root, pick::OWNER);
            let ids = pick::standing_so(&project, &|status| !status.is_terminal())?;
            ids.iter()
                .map(|id| project.load(id))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| Error::engine(&error, ""))?
        }
        Err(error) if error.exit == Exit::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    match context.ui.format {
        Format::Json => context.ui.json(&View {
            goals: goals.iter().map(answer::View::of).collect(),
        }),
        Format::Human if goals.is_empty() => context
            .ui
            .line("No active goal. Start one with `kapi goal new \"<intent>\"`."),
        Format::Human => {
            for goal in &goals {
                context.ui.line(&answer::line(goal));
            }
        }
    }
    Ok(Exit::Success)
}
