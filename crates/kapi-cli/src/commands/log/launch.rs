//! What happened to a launch and what its agents said: the events of its log, and the transcripts of its
//! launches between them.
//!
//! Both stay after the agent has ended, until the sandbox is removed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;

use kapi_core::quote::visible;
use kapi_launch::event::LaunchEvent;
use kapi_launch::log;
use kapi_launch::paths::SandboxPaths;
use kapi_machine::follow::LogCursor;
use kapi_machine::logged::EventRecord;
use kapi_store::timestamp::format_ms;
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;
use kapi_sys::signal;

use crate::commands::log::transcript::{TRANSCRIPT, TranscriptPosition};
use crate::commands::log::{Args, LOOK};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::progress::event_json;
use crate::ui::{Format, OutputDisposition};

/// Prints the events of a launch with what its agents said in between, or only that.
pub(super) fn log(context: &Context, location: &SandboxPaths, args: &Args) -> Result<Exit, Error> {
    context.require_human("access sandboxes from outside")?;
    let interrupts = signal::interrupts().map_err(|error| Error::failed(&error))?;
    let mut printed = PrintedLog {
        context,
        location,
        events: LogCursor::default(),
        transcripts: BTreeMap::new(),
        n_launched: 0,
        n_events: 0,
    };
    loop {
        // Asked first, so that whatever it wrote last is among what is read next.
        let holder = location.holder().map_err(|error| Error::launch(&error))?;
        if args.transcript {
            printed.print_transcripts(u64::MAX)?;
        } else {
            printed.print_all()?;
        }
        if !args.follow || holder.is_none() || context.ui.disposition() == OutputDisposition::Closed
        {
            printed.end();
            return Ok(Exit::Success);
        }
        if interrupts.is_raised() {
            return Ok(Exit::Interrupted);
        }
        thread::sleep(LOOK);
    }
}

/// What of a launch was printed.
struct PrintedLog<'a> {
    context: &'a Context,
    location: &'a SandboxPaths,
    events: LogCursor,
    transcripts: BTreeMap<u64, TranscriptPosition>,
    /// How many launches began, by the events that were printed.
    n_launched: u64,
    n_events: usize,
}

impl PrintedLog<'_> {
    /// Prints what is new: what an agent said stands between the beginning and the end of its launch.
    fn print_all(&mut self) -> Result<(), Error> {
        let followed = self.events.follow(&log::at(self.location).stream());
        let followed = followed.map_err(|error| Error::launch(&log::failed(error)))?;
        for logged in followed.unwrap_or_default() {
            match &logged.event {
                LaunchEvent::Launched { sandbox, .. } => {
                    self.n_launched = sandbox.launches.into();
                }
                LaunchEvent::PersonSaid { .. }
                | LaunchEvent::Told { .. }
                | LaunchEvent::RunRecorded { .. }
                | LaunchEvent::AgentEnded { .. }
                | LaunchEvent::LimitsRaised { .. }
                | LaunchEvent::Settled
                | LaunchEvent::Committed { .. }
                | LaunchEvent::Ended { .. }
                | LaunchEvent::Entered { .. }
                | LaunchEvent::Left { .. }
                | LaunchEvent::Merged { .. }
                | LaunchEvent::RunsRemoved => self.print_transcripts(self.n_launched)?,
            }
            self.print_event(&logged);
        }
        self.print_transcripts(u64::MAX)
    }

    fn print_event(&mut self, logged: &EventRecord<LaunchEvent>) {
        self.n_events += 1;
        let ui = self.context.ui;
        match ui.format {
            Format::Json => ui.json(&event_json("launch", &self.location.id().as_str(), logged)),
            Format::Human => ui.line(&format!(
                "{:>4}  {}  {}",
                logged.seq,
                format_ms(logged.at_ms),
                visible(&logged.event.words())
            )),
        }
    }

    /// Prints what is new in the transcripts of launches up to a number.
    fn print_transcripts(&mut self, n_max: u64) -> Result<(), Error> {
        let id = self.location.id().as_str();
        for (run, path) in transcripts(&self.context.disk, self.location)? {
            if run > n_max {
                continue;
            }
            let transcript = self.transcripts.entry(run).or_default();
            let whose = [("launch", id.into()), ("run", run.into())];
            transcript.print(self.context.ui, &path, &whose)?;
        }
        Ok(())
    }

    /// Says that there is nothing, where nothing was printed.
    fn end(&self) {
        if self.transcripts.is_empty() && self.n_events == 0 {
            self.context.ui.say(&format!(
                "launch/{} has no transcript: no agent has run in it yet, or the transcript was \
                 removed.",
                self.location.id().as_str()
            ));
        }
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
