//! `kapi events`: everything that happens in a project, in one stream: goals, workflows, tasks and
//! loops, launches, spending.
//!
//! Reads logs and changes none. Where reading ended can be kept in a file, from which the next call
//! goes on.

mod cursor;
mod entry;
mod feed;
mod line;
mod spending;

use std::path::PathBuf;
use std::time::Duration;

use kapi_sys::alarm::WakeSources;

use crate::commands::events::cursor::CursorFile;
use crate::commands::events::feed::Feed;
use crate::context::Context;
use crate::driving::attendance::{alarm, alarm_failed};
use crate::driving::interrupts;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel;
use crate::ui::OutputDisposition;

/// What other processes are told about who looks.
const OWNER: &str = "kapi events";
/// The longest until followed logs are looked at again.
const LOOK: Duration = Duration::from_millis(1_000);

/// Options of `kapi events`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Keep printing what happens until you interrupt it
    #[arg(short, long)]
    follow: bool,
    /// Continue after the last event recorded in FILE, and record the new end there
    #[arg(long, value_name = "FILE")]
    cursor: Option<PathBuf>,
}

/// Prints the events of the project.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let root = context.project_root().or_else(|_| kernel::root(context))?;
    let project = context.project(&root, OWNER);
    let interrupts = interrupts()?;
    let mut alarm = alarm()?;
    let mut cursor = args.cursor.as_ref().map(|path| context.cwd.join(path));
    let mut cursor = cursor.take().map(CursorFile::read).transpose()?;
    let remembered = cursor.as_ref().map(CursorFile::marks);
    let mut feed = Feed::new(context, &project, remembered.unwrap_or_default())?;
    loop {
        let watched = WakeSources {
            directories: feed.directories(),
            ..WakeSources::default()
        };
        alarm
            .watch(&watched)
            .map_err(|error| alarm_failed(&error))?;
        let entries = feed.read()?;
        let is_any = !entries.is_empty();
        for entry in &entries {
            line::print(context.ui, entry);
        }
        if context.ui.disposition() != OutputDisposition::Written {
            return Ok(Exit::Success);
        }
        // Only what was written is remembered: whoever goes on from there misses nothing.
        if let Some(cursor) = cursor.as_mut().filter(|_| is_any) {
            cursor.write(&context.disk, feed.marks())?;
        }
        if !args.follow {
            return Ok(Exit::Success);
        }
        if interrupts.is_raised() {
            return Ok(Exit::Interrupted);
        }
        let slept = alarm.sleep(LOOK, &|| interrupts.is_raised());
        slept.map_err(|error| alarm_failed(&error))?;
    }
}
