//! `kapi diff`: what a goal, a workflow, a task or a launch changed.
//!
//! Finds what is meant; what of each kind is compared with what is in a file of its own.

mod commits;
mod goal;
mod launch;
mod task;
mod workflow;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subject::{Meaning, Silence, SubjectArgs};

/// The most of a patch that is shown.
const PATCH_BYTES_MAX: usize = 64 << 20;
/// What other processes are told about who looks.
const OWNER: &str = "kapi diff";

/// Options of `kapi diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    subject: SubjectArgs,
    /// List only the changed paths
    #[arg(long)]
    stat: bool,
}

/// Prints the change.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let context = &args.subject.context(context)?;
    match args.subject.find(context, Silence::Latest)? {
        Meaning::Goal(id) => goal::diff(context, &id, args.stat),
        Meaning::Workflow(key) => workflow::diff(context, key, args.stat),
        Meaning::Task(id) => task::diff(context, id, args.stat),
        Meaning::Launch(location) => launch::diff(context, &location, args.stat),
    }
}
