//! `kapi show`: one goal, workflow, task or launch in full, and what to do next.
//!
//! Finds what is meant; how each kind is shown is in a file of its own.

mod goal;
pub(crate) mod launch;
mod task;

use kapi_core::failure::chain;
use kapi_workflow::record::audit::audit_workflow;
use kapi_workflow::record::workflows::Workflows;

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
            let driver = Workflows::of(&found.project).workflow_driver(&found.key);
            let driver = driver.map_err(|error| Error::workflow(&error))?;
            let (dir, workflow) = (found.dir(), &found.workflow);
            report::looked_at(context.ui, &dir, workflow, driver.as_deref());
            if driver.is_none() {
                warn_of_damage(context, &found);
            }
            Ok(Exit::Success)
        }
        Meaning::Task(id) => task::show(context, id),
        Meaning::Launch(location) => launch::show(context, &location),
    }
}

/// Says what an audit finds in the log of a workflow that is shown; listings show it from now on. A
/// document that the person edits is theirs.
fn warn_of_damage(context: &Context, found: &LocatedWorkflow<'_>) {
    let faults: Vec<String> = match audit_workflow(&found.project, &found.key) {
        Ok(audit) => audit.faults.iter().map(|fault| chain(fault)).collect(),
        Err(error) => vec![chain(&error)],
    };
    let log = found.dir().join("events.jsonl").display().to_string();
    let faults: Vec<String> = faults.into_iter().filter(|it| it.contains(&log)).collect();
    let Some(first) = faults.first() else {
        return;
    };
    let (mode, id) = (found.key.mode, &found.key.id);
    context.ui.say(&format!(
        "warning: {mode} {id} cannot be trusted: failed to {first}; see `kapi audit`."
    ));
    let damage = [(format!("{mode} {id}"), faults)].into();
    // Shown here in any case.
    drop(found.project.remember_damage(&damage));
}
