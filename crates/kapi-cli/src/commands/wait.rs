//! `kapi wait`: look on until a goal, a workflow, a task or a launch has ended, or a person is
//! needed, and exit as its own command would have.
//!
//! Finds what is meant and looks again and again; what ends the waiting is in a file for each kind.

mod goal;
mod launch;
mod task;
mod workflow;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use kapi_sys::alarm::WakeSources;
use kapi_sys::clock::monotonic_ms;

use crate::amount;
use crate::context::Context;
use crate::driving::attendance::{alarm, alarm_failed};
use crate::driving::interrupts;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subject::{Meaning, Silence, SubjectArgs};

/// The longest until it is looked at again, should the system not tell of a change.
const LOOK_MS: u64 = 1_000;
/// What other processes are told about who looks.
const OWNER: &str = "kapi wait";

/// Options of `kapi wait`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Maximum time to wait (90s, 15m)
    #[arg(long, value_name = "TIME", value_parser = amount::parse_duration_ms)]
    timeout: Option<u64>,
}

/// Waits.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let context = &args.subject.context(context)?;
    match args.subject.find(context, Silence::Latest)? {
        Meaning::Goal(id) => goal::wait(context, &id, args.timeout),
        Meaning::Workflow(key) => workflow::wait(context, &key, args.timeout),
        Meaning::Task(id) => task::wait(context, id, args.timeout),
        Meaning::Launch(location) => launch::wait(context, &location, args.timeout),
    }
}

/// What is waited for, and where its changes are seen.
struct WaitSubject {
    /// How it is named.
    reference: String,
    /// The directory whose files change with it.
    dir: PathBuf,
    /// The longest to wait, in milliseconds.
    timeout_ms: Option<u64>,
}

impl WaitSubject {
    /// Looks until there is what is waited for; `None` where the person went.
    fn until<T>(
        &self,
        look: &mut dyn FnMut() -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let mut alarm = alarm()?;
        let interrupts = interrupts()?;
        let watched = WakeSources {
            directories: BTreeSet::from([self.dir.clone()]),
            ..WakeSources::default()
        };
        let end_ms = self.timeout_ms.map(|ms| monotonic_ms().saturating_add(ms));
        loop {
            alarm
                .watch(&watched)
                .map_err(|error| alarm_failed(&error))?;
            if let Some(found) = look()? {
                return Ok(Some(found));
            }
            if interrupts.is_raised() {
                return Ok(None);
            }
            let left_ms = end_ms.map_or(LOOK_MS, |end| end.saturating_sub(monotonic_ms()));
            if left_ms == 0 {
                return Err(late(&self.reference));
            }
            let pause = Duration::from_millis(left_ms.min(LOOK_MS));
            let slept = alarm.sleep(pause, &|| interrupts.is_raised());
            slept.map_err(|error| alarm_failed(&error))?;
        }
    }
}

/// Says that the time is up.
fn late(reference: &str) -> Error {
    Error::new(
        Exit::Busy,
        format!("{reference} has not ended within this time"),
    )
    .with_hint(format!("it is still running; see `kapi show {reference}`."))
}
