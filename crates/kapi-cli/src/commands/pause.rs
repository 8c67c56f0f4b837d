//! `kapi pause`: stop work for now and keep it. What was under way is begun again when it is resumed.
//!
//! Finds what is meant; what cannot go on later is not paused, and what to do instead is said.

mod launch;
mod task;
mod workflow;

use crate::commands::goal::pause as goal;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subject::{Meaning, Silence, SubjectArgs};

/// What other processes are told about who holds a lock.
const OWNER: &str = "kapi pause";

/// Options of `kapi pause`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    subject: SubjectArgs,
}

/// Pauses it.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("pause work")?;
    let context = &args.subject.context(context)?;
    match args.subject.find(context, Silence::UnderWay)? {
        Meaning::Goal(id) => goal::pause(context, Some(&id.to_string())),
        Meaning::Workflow(key) => workflow::pause(context, key),
        Meaning::Task(id) => task::pause(context, id),
        Meaning::Launch(location) => launch::pause(context, &location),
    }
}
