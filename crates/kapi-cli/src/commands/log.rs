//! `kapi log`: what happened to a goal, a workflow, a task or a launch, all of it or as it happens.
//!
//! Finds what is meant; how each kind is told is in a file of its own.

mod goal;
pub(crate) mod launch;
mod runs;
mod task;
mod transcript;
mod transcript_entry;
mod workflow;

use std::time::Duration;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subject::{Meaning, Silence, SubjectArgs};

/// How often a followed log is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// What other processes are told about who looks.
const OWNER: &str = "kapi log";

/// Options of `kapi log`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Keep printing until the work ends
    #[arg(short, long)]
    follow: bool,
    /// Print only what the agents said and did, without events
    #[arg(short, long)]
    transcript: bool,
}

/// Prints a log.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let context = &args.subject.context(context)?;
    match args.subject.find(context, Silence::Latest)? {
        Meaning::Goal(id) => goal::log(context, &id, args),
        Meaning::Workflow(key) => workflow::log(context, &key, args),
        Meaning::Task(id) => task::log(context, id, args.follow),
        Meaning::Launch(location) => launch::log(context, &location, args),
    }
}
