//! What the agent of a launch said and did: the transcripts of its launches, in their order.
//!
//! They stay after the agent has ended, until the sandbox is removed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;

use kapi_launch::paths::SandboxPaths;
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;
use kapi_sys::signal;

use crate::commands::log::LOOK;
use crate::commands::log::transcript::{TRANSCRIPT, TranscriptPosition};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::OutputDisposition;

/// Prints transcripts.
pub(super) fn log(context: &Context, location: &SandboxPaths, follow: bool) -> Result<Exit, Error> {
    context.require_human("access sandboxes from outside")?;
    let interrupts = signal::interrupts().map_err(|error| Error::failed(&error))?;
    let id = location.id().as_str();
    let mut printed: BTreeMap<u64, TranscriptPosition> = BTreeMap::new();
    loop {
        // Asked first, so that whatever it wrote last is among what is read next.
        let holder = location.holder().map_err(|error| Error::launch(&error))?;
        for (run, path) in transcripts(&context.disk, location)? {
            let transcript = printed.entry(run).or_default();
            transcript.print(
                context.ui,
                &path,
                &[("launch", id.into()), ("run", run.into())],
            )?;
        }
        if !follow || holder.is_none() || context.ui.disposition() == OutputDisposition::Closed {
            if printed.is_empty() {
                context.ui.say(&format!(
                    "launch/{id} has no transcript: no agent has run in it yet, or the \
                     transcript was removed."
                ));
            }
            return Ok(Exit::Success);
        }
        if interrupts.is_raised() {
            return Ok(Exit::Interrupted);
        }
        thread::sleep(LOOK);
    }
}

/// Returns the transcripts of a sandbox's launches, by their numbers.
pub(crate) fn transcripts(
    disk: &RealDisk,
    location: &SandboxPaths,
) -> Result<BTreeMap<u64, PathBuf>, Error> {
    let runs = location.runs();
    if !runs.is_dir() {
        return Ok(BTreeMap::new());
    }
    let listed = disk.list(&runs).map_err(|error| Error::failed(&error))?;
    let numbered = listed.into_iter().filter_map(|name| {
        let path = runs.join(&name).join(TRANSCRIPT);
        Some((name.parse().ok()?, path)).filter(|(_, path)| path.is_file())
    });
    Ok(numbered.collect())
}
