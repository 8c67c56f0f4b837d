//! Ending a launch: its agent is stopped as by Ctrl-C. Its work stays in the sandbox.
//!
//! The process that launched it ends it itself and records how it came out.

use std::thread;
use std::time::Duration;

use kapi_launch::paths::SandboxPaths;
use kapi_sys::clock::monotonic_ms;
use rustix::process::{Pid, Signal, kill_process};

use crate::commands::show;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// How long it is waited for the end, in milliseconds.
const END_MS: u64 = 30_000;
/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(50);
/// What the process that launches says of itself.
const LAUNCHER: &str = "kapi launch";

/// Stops the agent of a launch.
pub(super) fn cancel(context: &Context, location: &SandboxPaths) -> Result<Exit, Error> {
    stop(context, location)?;
    show::launch::show(context, location)
}

/// Stops the agent of a launch, and waits until it has ended.
pub(crate) fn stop(context: &Context, location: &SandboxPaths) -> Result<(), Error> {
    context.require_human("stop an agent")?;
    let id = location.id().as_str();
    let holder = || location.holder().map_err(|error| Error::launch(&error));
    let Some(owner) = holder()? else {
        return Err(
            Error::new(Exit::Denied, format!("launch/{id} is not running"))
                .with_hint(format!("remove its work with `kapi sandbox discard {id}`.")),
        );
    };
    let Some(pid) = launcher(&owner) else {
        let text = format!("sandbox {id} is in use by {owner}, not by a launch");
        let hint = match id.split_once('-') {
            Some((task, _)) if id.starts_with("task_") => {
                format!("it belongs to a task: `kapi cancel {task}`.")
            }
            _ => "wait until that has ended.".to_owned(),
        };
        return Err(Error::new(Exit::Busy, text).with_hint(hint));
    };
    kill_process(pid, Signal::TERM).map_err(|error| Error::failed(&error))?;
    let end_ms = monotonic_ms().saturating_add(END_MS);
    while holder()?.is_some() {
        if monotonic_ms() > end_ms {
            return Err(
                Error::new(Exit::Busy, format!("launch/{id} has not ended yet"))
                    .with_hint(format!("wait for it with `kapi wait launch/{id}`.")),
            );
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// Returns the process that launched, out of `pid 17, kapi launch`.
fn launcher(owner: &str) -> Option<Pid> {
    let (pid, what) = owner.strip_prefix("pid ")?.split_once(", ")?;
    (what == LAUNCHER).then(|| Pid::from_raw(pid.parse().ok()?))?
}

#[cfg(test)]
mod tests {
    use super::launcher;

    #[test]
    fn only_a_process_that_launches_is_stopped() {
        let pid = |owner: &str| launcher(owner).map(|pid| pid.as_raw_nonzero().get());
        assert_eq!(pid("pid 17, kapi launch"), Some(17));
        for other in [
            "pid 17, kapi sandbox shell",
            "pid 17, kapi task",
            "pid 0, kapi launch",
            "pid -1, kapi launch?",
            "kapi launch",
            "",
        ] {
            assert_eq!(pid(other), None, "{other}");
        }
    }
}
