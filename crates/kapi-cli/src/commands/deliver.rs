//! `kapi deliver`: the branch of something finished at the remote, with a pull request where that is
//! asked for.
//!
//! May be repeated: what is there already stays.

use std::fs;

use kapi_goal::rules::delivery::Delivery;
use kapi_goal::rules::state::GoalStatus;
use kapi_launch::look;

use crate::commands::goal::pick;
use crate::config::deliver::DeliverArgs;
use crate::context::Context;
use crate::delivering::others::{self, DeliverySite};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, failed, no_task};
use crate::subject::{Meaning, Silence, SubjectArgs};
use crate::workflow::located::LocatedWorkflow;
use crate::{delivering, delivery};

/// What other processes are told about who holds a lock.
const OWNER: &str = "kapi deliver";
/// The task of a launch, in the directory of its run.
const TASK_FILE: &str = "task-spec.md";

/// Options of `kapi deliver`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    subject: SubjectArgs,
    #[command(flatten)]
    deliver: DeliverArgs,
}

/// Delivers something that has ended well; without a name, the only goal that has.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("deliver a result")?;
    let context = &args.subject.context(context)?;
    if !args.subject.is_named() {
        return goal(context, None, &args.deliver);
    }
    match args.subject.find(context, Silence::Latest)? {
        Meaning::Goal(id) => goal(context, Some(&id.to_string()), &args.deliver),
        Meaning::Workflow(key) => {
            let project = context.project(&context.project_root()?, OWNER);
            context.require_own_state(project.layout.root())?;
            let found = LocatedWorkflow::load(project, key)?;
            let root = found.project.layout.root();
            let config = context.config(Some(root))?;
            let site = DeliverySite {
                context,
                config: &config,
                root,
            };
            let recorded = found.workflow.terms.delivery.clone();
            let wanted = wanted(site, &args.deliver, recorded);
            others::workflow_now(site, &found.workflow, &wanted).map(|()| Exit::Success)
        }
        Meaning::Task(id) => kernel::with(context, OWNER, |kernel| {
            let found = kernel.queue()?.find(id).map_err(|error| failed(&error))?;
            let task = found.ok_or_else(|| no_task(id))?;
            kernel.bring_home(&task);
            let site = DeliverySite {
                context,
                config: kernel.config,
                root: kernel.project.layout.root(),
            };
            let wanted = wanted(site, &args.deliver, None);
            others::task_now(site, &task, &wanted).map(|()| Exit::Success)
        }),
        Meaning::Launch(location) => {
            let known = look::known(&location).map_err(|error| Error::launch(&error))?;
            let record = &known.record;
            let config = context.config(Some(&record.project))?;
            let site = DeliverySite {
                context,
                config: &config,
                root: &record.project,
            };
            // Without it, the request is named after the branch.
            let spec = location
                .runs()
                .join(record.launches.to_string())
                .join(TASK_FILE);
            let task = fs::read_to_string(spec).unwrap_or_default();
            let wanted = wanted(site, &args.deliver, None);
            others::launch_now(site, record, &task, &wanted).map(|()| Exit::Success)
        }
    }
}

fn goal(context: &Context, reference: Option<&str>, flags: &DeliverArgs) -> Result<Exit, Error> {
    let picked = pick::one_of(context, reference, "done", &|status| {
        matches!(status, GoalStatus::Done | GoalStatus::Unverified)
    })?;
    let root = picked.project.layout.root().to_path_buf();
    context.require_own_state(&root)?;
    let config = context.config(Some(&root))?;
    let site = DeliverySite {
        context,
        config: &config,
        root: &root,
    };
    let goal = &picked.goal;
    let wanted = wanted(site, flags, goal.contract.delivery.clone());
    let delivered = delivering::deliver(context, &config, &picked.project, goal, &wanted);
    delivering::show(context, &picked.project, goal);
    delivered?;
    Ok(Exit::Success)
}

/// Returns where it goes: where options or the configuration say, where it was to go, or the remote.
fn wanted(site: DeliverySite<'_>, flags: &DeliverArgs, recorded: Option<Delivery>) -> Delivery {
    delivery::asked(flags, site.config)
        .or(recorded)
        .unwrap_or_else(|| delivery::named(flags, site.config, false))
}
