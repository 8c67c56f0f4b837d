//! What the sandbox of a launch changed, as a list and as a patch.
//!
//! What would run by itself, once it lies in the project, is named.

use kapi_core::text::counted;
use kapi_launch::finish::ChangedPathView;
use kapi_launch::merge;
use kapi_launch::merge::deceptive_text::DeceptiveText;
use kapi_launch::merge::gate::AutoRun;
use kapi_launch::paths::SandboxPaths;
use kapi_sys::clock::Clock as _;
use serde::Serialize;

use crate::commands::diff::PATCH_BYTES_MAX;
use crate::commands::launch::is_json;
use crate::commands::sandbox::grants;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

#[derive(Debug, Serialize)]
struct LaunchDiffView<'a> {
    id: &'a str,
    changed: &'a [ChangedPathView],
    left_out: &'a [String],
    auto_run: &'a [AutoRun],
    deceptive: &'a [DeceptiveText],
    cut: bool,
    patch: String,
}

/// Shows the difference.
pub(super) fn diff(context: &Context, location: &SandboxPaths, stat: bool) -> Result<Exit, Error> {
    context.require_human("access sandboxes from outside")?;
    let grants = grants(context)?;
    let now_ms = context.clock.now_ms();
    let found = merge::difference(&grants, location, PATCH_BYTES_MAX, now_ms)
        .map_err(|error| Error::launch(&error))?;
    if is_json(context) {
        let patch = if stat { &[][..] } else { &found.patch };
        context.ui.json(&LaunchDiffView {
            id: location.id().as_str(),
            changed: &found.changed,
            left_out: &found.left_out,
            auto_run: &found.auto_run,
            deceptive: &found.deceptive,
            cut: found.is_cut,
            patch: String::from_utf8_lossy(patch).into_owned(),
        });
        return Ok(Exit::Success);
    }
    if stat {
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
                .say("The patch is incomplete: it is too long, or omits large files.");
        }
    }
    for left in &found.left_out {
        context.ui.say(&format!("left out: {left}"));
    }
    for one in &found.auto_run {
        let text = format!("runs automatically: {}: {}", one.path, one.why);
        context.ui.say(&text);
    }
    for one in &found.deceptive {
        context.ui.say(&one.to_string());
    }
    Ok(Exit::Success)
}
