//! Waiting for a launch: until its agent has ended. The exit code is passed on, as the launch would.

use kapi_launch::merge::known;
use kapi_launch::place::SandboxPlace;
use kapi_launch::record::LaunchState;

use crate::commands::launch::passed_on;
use crate::commands::show;
use crate::commands::wait::Waited;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Waits for a launch.
pub(super) fn wait(
    context: &Context,
    place: &SandboxPlace,
    timeout_ms: Option<u64>,
) -> Result<Exit, Error> {
    context.require_human("access sandboxes from outside")?;
    let waited = Waited {
        reference: format!("launch/{}", place.id().as_str()),
        dir: place.dir(),
        timeout_ms,
    };
    let ended = waited.until(&mut || {
        let holder = place.holder().map_err(|error| Error::launch(&error))?;
        Ok(holder.is_none().then_some(()))
    })?;
    if ended.is_none() {
        return Ok(Exit::Interrupted);
    }
    show::launch::show(context, place)?;
    let record = known(place).map_err(|error| Error::launch(&error))?;
    Ok(match (record.state, record.exit_code) {
        (LaunchState::Finished, Some(code)) => passed_on(code),
        // It was killed, and nothing is known of its end.
        (LaunchState::Finished, None) | (LaunchState::Running, _) => Exit::NotDone,
    })
}
