//! `kapi sandbox discard`: removes a sandbox with all it holds, after asking.

use kapi_core::text::counted;
use kapi_launch::{look, merge};
use kapi_sys::clock::Clock as _;
use serde::Serialize;

use super::super::launch::is_json;
use super::grants;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subject::launches::LaunchArgs;

/// Options of `kapi sandbox discard`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    meant: LaunchArgs,
    /// Skip the confirmation
    #[arg(short, long)]
    yes: bool,
}

#[derive(Debug, Serialize)]
struct DiscardView<'a> {
    id: &'a str,
    discarded: bool,
    kept: &'a [String],
}

/// Discards a sandbox.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let location = args.meant.find(context)?;
    let known = look::known(&location).map_err(|error| Error::launch(&error))?;
    let (id, n) = (location.id().as_str(), known.n_changed);
    if !args.yes {
        let project = known.record.project.display();
        let paths = counted(n, "changed path");
        let question = format!("Discard sandbox {id} of {project} with {paths}?");
        match context.ui.confirm(&question) {
            Some(true) => {}
            Some(false) => return Err(Error::new(Exit::Denied, "nothing was discarded")),
            None => {
                return Err(Error::usage(
                    "discarding needs confirmation, and there is no terminal to ask on",
                )
                .with_hint(format!(
                    "review it with `kapi diff launch/{id}`, then add `--yes`."
                )));
            }
        }
    }
    let kept = merge::discard(&grants(context)?, &location, context.clock.now_ms())
        .map_err(|error| Error::launch(&error))?;
    if is_json(context) {
        context.ui.json(&DiscardView {
            id,
            discarded: true,
            kept: &kept,
        });
        return Ok(Exit::Success);
    }
    context.ui.line(&format!("Removed sandbox {id}."));
    for line in &kept {
        context
            .ui
            .line(&format!("Its commits are kept; restore them with: {line}"));
    }
    Ok(Exit::Success)
}
