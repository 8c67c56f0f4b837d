//! Pausing a launch: its agent is stopped, and its work stays in the sandbox until it is resumed.

use kapi_launch::paths::SandboxPaths;

use crate::commands::{cancel, show};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;

/// Stops the agent of a launch.
pub(super) fn pause(context: &Context, location: &SandboxPaths) -> Result<Exit, Error> {
    let id = location.id().as_str();
    cancel::launch::stop(context, location)?;
    match context.ui.format {
        Format::Json => show::launch::show(context, location),
        Format::Human => {
            context
                .ui
                .line(&format!("launch/{id} is paused; its work is kept."));
            let resume = format!("Resume it with `kapi resume launch/{id}`.");
            context.ui.line(&resume);
            Ok(Exit::Success)
        }
    }
}
