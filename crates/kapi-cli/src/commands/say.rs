//! `kapi say`: tell an agent something while it works. It cuts into the turn, and the same session goes
//! on with it.
//!
//! Finds whose agent is meant, and says before anything else where no agent would hear it.

mod launch;
mod task;
mod workflow;

use crate::commands::goal::say as goal;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subject::{Meaning, Silence, SubjectArgs};

/// What other processes are told about who holds a lock.
const OWNER: &str = "kapi say";

/// Options of `kapi say`.
#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct Args {
    #[command(flatten)]
    subject: SubjectArgs,
    /// The message
    #[arg(value_name = "TEXT", required = true)]
    text: String,
}

/// Says something to the agent.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("send the agent a message")?;
    let text = args.text.trim();
    if text.is_empty() {
        return Err(Error::usage("the message is empty")
            .with_hint("give a text: `kapi say <REF> \"<text>\"`."));
    }
    let context = &args.subject.context(context)?;
    match args.subject.find(context, Silence::UnderWay)? {
        Meaning::Goal(id) => goal::say(context, &id, text),
        Meaning::Workflow(key) => workflow::say(context, key, text),
        Meaning::Task(id) => task::say(context, id, text),
        Meaning::Launch(location) => launch::say(context, &location, text),
    }
}
