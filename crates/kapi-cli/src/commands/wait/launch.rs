//! Waiting for a launch: until its agent has ended. The exit code is passed on, as the launch would.

use kapi_launch::merge::known;
use kapi_launch::paths::SandboxPaths;
use kapi_launch::record::LaunchState;

use crate::commands::launch::passed_on;
use crate::commands::show;
use crate::commands::wait::WaitSubject;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Waits for a launch.
pub(super) fn wait(
    context: &Context,
    location: &SandboxPaths,
    timeout_ms: Option<u64>,
) -> Result<Exit, Error> {
    context.require_human("access sandboxes from outside")?;
    let waited = WaitSubject {
        reference: format!("launch/{}", location.id().as_str()),
        dir: location.dir(),
        timeout_ms,
    };
    let ended = waited.until(&mut || {
        let holder = location.holder().map_err(|error| Error::launch(&error))?;
        Ok(holder.is_none().then_some(()))
    })?;
    if ended.is_none() {
        return Ok(Exit::Interrupted);
    }
    show::launch::show(context, location)?;
    let record = known(location).map_err(|error| Error::launch(&error))?;
    Ok(match (record.state, record.exit_code) {
        (LaunchState::Finished, Some(code)) => passed_on(code),
        // It was killed, and nothing is known of its end.
        (LaunchState::Finished, None) | (LaunchState::Running, _) => Exit::NotDone,
    })
}
