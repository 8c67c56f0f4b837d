//! `kapi cancel`: end a goal, a workflow, a task or a launch for good. What it did so far is kept.
//!
//! Finds what is meant and asks a person at a terminal once more.

pub(crate) mod goal;
pub(crate) mod launch;
mod task;
mod workflow;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subject::{Meaning, Silence, SubjectArgs};

/// What other processes are told about who holds a lock.
const OWNER: &str = "kapi cancel";

/// Options of `kapi cancel`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    subject: SubjectArgs,
    /// The reason to record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Skip the confirmation
    #[arg(short, long)]
    yes: bool,
}

/// Ends it.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let context = &args.subject.context(context)?;
    let meaning = args.subject.find(context, Silence::UnderWay)?;
    let name = match &meaning {
        Meaning::Goal(id) => format!("goal {id}"),
        Meaning::Workflow(key) => format!("workflow {}", key.id),
        Meaning::Task(id) => id.to_string(),
        Meaning::Launch(location) => format!("launch {}", location.id().as_str()),
    };
    let is_sure =
        args.yes || context.ui.confirm(&format!("Cancel {name} for good?")) != Some(false);
    if !is_sure {
        return Err(Error::new(
            Exit::Denied,
            format!("{name} was not cancelled"),
        ));
    }
    match meaning {
        Meaning::Goal(id) => goal::cancel(context, &id, args.reason.as_deref()),
        Meaning::Workflow(key) => workflow::cancel(context, key, args.reason.as_deref()),
        Meaning::Task(id) => task::cancel(context, id, args.reason.as_deref()),
        Meaning::Launch(location) => launch::cancel(context, &location),
    }
}
