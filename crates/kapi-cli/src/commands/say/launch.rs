//! Telling the agent of a launch something.

use kapi_launch::message;
use kapi_launch::paths::SandboxPaths;
use kapi_sys::clock::Clock as _;

use crate::commands::show;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;

/// Says something to the agent of a launch.
pub(super) fn say(context: &Context, location: &SandboxPaths, text: &str) -> Result<Exit, Error> {
    tell(context, location, text)?;
    match context.ui.format {
        Format::Json => show::launch::show(context, location),
        Format::Human => {
            context.ui.line(&format!(
                "The agent of launch/{} gets the message in its next turn, which begins now.",
                location.id().as_str()
            ));
            Ok(Exit::Success)
        }
    }
}

/// Puts on record what is said.
pub(super) fn tell(context: &Context, location: &SandboxPaths, text: &str) -> Result<(), Error> {
    let now_ms = context.clock.now_ms();
    message::say(location, &context.actor, text, now_ms).map_err(|error| Error::launch(&error))
}
