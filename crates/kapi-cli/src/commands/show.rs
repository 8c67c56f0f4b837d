//! `kapi show`: one goal, workflow, task or launch in full, and what to do next.
//!
//! Finds what is meant; how each kind is shown is in a file of its own.

mod goal;
pub(crate) mod launch;
mod task;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subject::{Meaning, Silence, SubjectArgs};
use crate::workflow::located::LocatedWorkflow;
use crate::workflow::report;

/// What other processes are told about who looks.
const OWNER: &str = "kapi show";

/// Options of `kapi show`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Also show everything recorded, and the whole contract of a goal
    #[arg(short, long)]
    all: bool,
}

impl Args {
    /// Returns the options that show something.
    pub(crate) fn of(reference: &str) -> Self {
        Self {
            subject: SubjectArgs::of(reference),
            all: false,
        }
    }
}

/// Shows it.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let context = &args.subject.context(context)?;
    match args.subject.find(context, Silence::Latest)? {
        Meaning::Goal(id) => goal::show(context, &id, args.all),
        Meaning::Workflow(key) => {
            let project = context.project(&context.project_root()?, OWNER);
            let found = LocatedWorkflow::load(project, key)?;
            report::looked_at(context.ui, &found.dir(), &found.workflow);
            Ok(Exit::Success)
        }
        Meaning::Task(id) => task::show(context, id),
        Meaning::Launch(location) => launch::show(context, &location),
    }
}
