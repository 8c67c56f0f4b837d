//! The transcripts of a goal's or a workflow's own agents, all of them or as they are written.
//!
//! Each begins with the name of its run. The agents of a workflow's goals belong to those goals.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;

use kapi_store::layout::ProjectLayout;
use kapi_sys::disk::Disk as _;
use kapi_sys::signal;

use crate::commands::log::LOOK;
use crate::commands::log::transcript::{TRANSCRIPT, TranscriptPosition};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::{Format, OutputDisposition};

/// Whose transcripts are printed.
pub(super) struct RunOwner<'a> {
    /// `goal` or `workflow`, as JSON names it.
    pub(super) kind: &'static str,
    pub(super) id: &'a str,
    pub(super) layout: &'a ProjectLayout,
}

/// Prints transcripts; a followed one until `is_over` says that nothing more comes.
pub(super) fn log(
    context: &Context,
    owner: &RunOwner<'_>,
    follow: bool,
    is_over: &dyn Fn() -> Result<bool, Error>,
) -> Result<Exit, Error> {
    let interrupts = signal::interrupts().map_err(|error| Error::failed(&error))?;
    let mut printed: BTreeMap<String, TranscriptPosition> = BTreeMap::new();
    loop {
        // Asked first, so that whatever was written last is among what is read next.
        let is_over = is_over()?;
        for (run, path) in owner.transcripts(context)? {
            if context.ui.format == Format::Human && !printed.contains_key(&run) {
                context.ui.line(&format!("== {run}"));
            }
            let whose = [(owner.kind, owner.id.into()), ("run", run.as_str().into())];
            let position = printed.entry(run.clone()).or_default();
            position.print(context.ui, &path, &whose)?;
        }
        if !follow || is_over || context.ui.disposition() == OutputDisposition::Closed {
            if printed.is_empty() {
                context.ui.say(&format!(
                    "{} {} has no transcript: no agent has run for it yet.",
                    owner.kind, owner.id
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

impl RunOwner<'_> {
    /// Returns the transcripts by the names of their runs, which sort by turn.
    fn transcripts(&self, context: &Context) -> Result<BTreeMap<String, PathBuf>, Error> {
        let any = self.layout.run(&format!("{}-", self.id));
        let (Some(runs), Some(prefix)) = (any.parent(), any.file_name()) else {
            return Ok(BTreeMap::new());
        };
        if !runs.is_dir() {
            return Ok(BTreeMap::new());
        }
        let prefix = prefix.to_string_lossy();
        let listed = context.disk.list(runs);
        let listed = listed.map_err(|error| Error::failed(&error))?;
        let found = listed.into_iter().filter_map(|name| {
            let run = name.strip_prefix(&*prefix)?.to_owned();
            let path = runs.join(&name).join(TRANSCRIPT);
            path.is_file().then_some((run, path))
        });
        Ok(found.collect())
    }
}
