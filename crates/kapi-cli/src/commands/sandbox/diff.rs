//! `kapi sandbox diff`: what a sandbox changed, as a list and as a patch.

use kapi_core::text::counted;
use kapi_sys::clock::Clock as _;
use kapi_world::launching::finish::ChangedPathView;
use kapi_world::launching::merge;
use kapi_world::launching::merge::gate::AutoRun;
use serde::Serialize;

use super::super::launch::is_json;
use super::{Meant, book};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// The most of a patch that is shown.
const PATCH_BYTES_MAX: usize = 64 << 20;

/// Options of `kapi sandbox diff`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    meant: Meant,
    /// Only list the paths
    #[arg(long)]
    stat: bool,
}

#[derive(Debug, Serialize)]
struct View<'a> {
    id: &'a str,
    changed: &'a [ChangedPathView],
    left_out: &'a [String],
    auto_run: &'a [AutoRun],
    cut: bool,
    patch: String,
}

/// Shows the difference.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let place = args.meant.find(context)?;
    let book = book(context)?;
    let now_ms = context.clock.now_ms();
    let found = merge::difference(&book, &place, PATCH_BYTES_MAX, now_ms)
        .map_err(|error| Error::launch(&error))?;
    if is_json(context) {
        let patch = if args.stat { &[][..] } else { &found.patch };
        context.ui.json(&View {
            id: place.id().as_str(),
            changed: &found.changed,
            left_out: &found.left_out,
            auto_run: &found.auto_run,
            cut: found.is_cut,
            patch: String::from_utf8_lossy(patch).into_owned(),
        });
        return Ok(Exit::Success);
    }
    if args.stat {
        for change in &found.changed {
            context
                .ui
                .line(&format!("{:<9} {}", change.change, change.path));
        }
        context.ui.line(&format!(
            "{} changed.",
            counted(found.changed.len(), "path")
        ));
    } else {
        context.ui.raw(&found.patch);
        if found.is_cut {
            context
                .ui
                .say("The patch is not whole: it is too long, or leaves out large files.");
        }
    }
    for left in &found.left_out {
        context.ui.say(&format!("left out: {left}"));
    }
    for one in &found.auto_run {
        let text = format!("runs by itself: {}: {}", one.path, one.why);
        context.ui.say(&text);
    }
    Ok(Exit::Success)
}
