//! `kapi <mode> status`: the workflows of one mode, sorted by their directories.
//!
//! Reads the inventory and no log.

use kapi_core::mode::Mode;
use kapi_wire::workflow::row::WorkflowStatusView;
use kapi_workflow::record::workflows::Workflows;

use crate::context::Context;
use crate::error::{Error, optional};
use crate::exit_code::Exit;
use crate::ui::Format;
use crate::workflow::{listing, purpose, session};

/// Options of `kapi <mode> status`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// More words: a purpose that begins with `status`
    #[arg(hide = true)]
    more: Vec<String>,
}

/// Lists the workflows of a mode.
pub(crate) fn run(context: &Context, mode: Mode, args: &Args) -> Result<Exit, Error> {
    if !args.more.is_empty() {
        return Err(purpose::own_word(mode, "status", &args.more));
    }
    let workflows = match optional(context.project_root())? {
        Some(root) => {
            let project = context.project(&root, "kapi status");
            let standings = Workflows::of(&project).standings();
            let standings = standings.map_err(|error| Error::engine(&error, ""))?;
            let session = session::session(context);
            let attached = listing::attached(&standings, session.as_deref());
            let mut rows = listing::rows(&project, &standings, attached.as_deref())?;
            rows.retain(|row| row.mode == mode.as_str());
            rows
        }
        None => Vec::new(),
    };
    match context.ui.format {
        Format::Json => context.ui.json(&WorkflowStatusView {
            mode: mode.as_str(),
            workflows,
        }),
        Format::Human if workflows.is_empty() => {
            context
                .ui
                .line(&format!("There are no {mode} workflows here."));
            context
                .ui
                .line(&format!("Start one with `kapi {mode} \"<purpose>\"`."));
        }
        Format::Human => listing::lines(context.ui, &workflows),
    }
    Ok(Exit::Success)
}
