//! `kapi ralph`: from a purpose to a branch on which every criterion has its evidence.
//!
//! Only the command line of the mode and its words; what its verbs do is shared with the other modes.

mod page;
mod phrases;
pub(super) mod words;

use kapi_core::id::GoalId;
use kapi_core::mode::Mode;
use kapi_goal::rules::budget::Raise;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::plan::task::PlanTaskId;
use kapi_goal::rules::state::GoalStatus;
use kapi_workflow::rules::modes::ModeCommand;
use kapi_workflow::rules::modes::ralph::command::RalphCommand;
use kapi_workflow::rules::modes::ralph::state::Stand;

use crate::amount;
use crate::commands::workflow::{approve, branch, resume, start, status};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::workflow::driving::{Conduct, NOTHING_ASKED, nothing_asked};
use crate::workflow::located::LocatedWorkflow;
use crate::workflow::watching::WorkerWatch;

/// What it does.
static CONDUCT: Conduct = Conduct {
    mode: Mode::Ralph,
    check,
    settle: NOTHING_ASKED,
};

/// Options of `kapi ralph`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(flatten)]
    start: start::Args,
    #[command(flatten)]
    context: start::ContextArgs,
    /// How the plan gets approved
    #[arg(long, value_name = "HOW", value_enum, default_value = "ask")]
    approve_plan: start::PlanApprovalName,
    /// Show each worker in its own tmux window
    #[arg(long, value_name = "PLACE", value_enum)]
    watch: Option<WorkerWatch>,
    #[command(subcommand)]
    verb: Option<RalphVerb>,
}

#[derive(Debug, clap::Subcommand)]
enum RalphVerb {
    /// List the Ralph workflows of this project
    Status(status::Args),
    /// Continue, revise, replan or abandon a workflow
    Resume(RalphResumeArgs),
    /// Approve the proposed plan
    Approve(approve::Args),
}

#[derive(Debug, clap::Args)]
struct RalphResumeArgs {
    #[command(flatten)]
    common: resume::Args,
    /// Resume or restart a task that stopped
    #[arg(long, value_name = "TASK", group = "asked")]
    retry: Option<String>,
    /// Land work although it changes paths outside the plan
    #[arg(long, group = "asked")]
    allow_paths: bool,
    /// Replan, because the approved plan is wrong
    #[arg(long, value_name = "REASON", group = "asked")]
    replan: Option<String>,
    /// Turns to add for each task that used up its own, such as +10
    #[arg(long, value_name = "+N", value_parser = amount::parse_count, allow_hyphen_values = true, group = "asked")]
    turns: Option<u64>,
    /// Show each worker in its own tmux window
    #[arg(long, value_name = "PLACE", value_enum)]
    watch: Option<WorkerWatch>,
}

/// Starts a Ralph workflow, or does what the verb says.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    const MODE: Mode = Mode::Ralph;
    match &args.verb {
        None => {
            let wanted = start::StartRequest {
                mode: MODE,
                args: &args.start,
                settle: &nothing_asked,
                source: args.context.source(),
                plan_approval: args.approve_plan,
                watch: args.watch,
                first: &start::nothing_first,
            };
            start::run(context, &wanted)
        }
        Some(RalphVerb::Status(args)) => status::run(context, MODE, args),
        Some(RalphVerb::Resume(args)) => {
            let more = resume::ModeOptions {
                ask: asked(args)?,
                settle: &nothing_asked,
                watch: args.watch,
            };
            resume::run(context, &CONDUCT, &args.common, more)
        }
        Some(RalphVerb::Approve(args)) => approve::run(context, &CONDUCT, args),
    }
}

fn asked(args: &RalphResumeArgs) -> Result<Option<resume::ResumeOptions>, Error> {
    let command = |command| resume::ResumeOptions::Command(ModeCommand::Ralph(command));
    if let Some(task) = &args.retry {
        let task = PlanTaskId::parse(task).map_err(|error| Error::usage(error.to_string()))?;
        return Ok(Some(command(RalphCommand::Retry { task })));
    }
    if args.allow_paths {
        return Ok(Some(command(RalphCommand::AllowPaths)));
    }
    if let Some(turns) = args.turns {
        let turns = u32::try_from(turns);
        let turns = turns.map_err(|_| Error::usage("--turns is larger than the maximum"))?;
        let add = move |context: &Context, found: &mut LocatedWorkflow<'_>| {
            add_turns(context, found, turns)
        };
        return Ok(Some(resume::ResumeOptions::Do(Box::new(add))));
    }
    let reason = args.replan.clone();
    Ok(reason.map(|reason| command(RalphCommand::ReopenPlan { reason })))
}

/// Adds turns to the goals of tasks that used up theirs.
fn add_turns(context: &Context, found: &LocatedWorkflow<'_>, turns: u32) -> Result<(), Error> {
    let ralph = phrases::of(&found.workflow);
    let tasks = ralph.into_iter().flat_map(|ralph| ralph.tasks.values());
    let goals: Vec<&GoalId> = tasks
        .filter(|task| {
            matches!(
                &task.stand,
                Stand::Rested {
                    status: GoalStatus::Paused,
                    ..
                }
            )
        })
        .filter_map(|task| task.goal.as_ref())
        .collect();
    if goals.is_empty() {
        let text = format!("no task of workflow {} has used up its turns", found.key.id);
        return Err(Error::new(Exit::Denied, text)
            .with_hint("leave out `--turns`; a new task gets the turns of the workflow's terms."));
    }
    let raise = Raise {
        turns,
        ..Raise::default()
    };
    for goal in goals {
        let command = GoalCommand::RaiseBudget(raise);
        let submitted = found.project.submit(goal, &context.actor, &command);
        submitted.map_err(|error| Error::engine(&error, &goal.to_string()))?;
    }
    Ok(())
}

/// Refuses to go on to where the branch of the plan is made, if git could not make it.
fn check(context: &Context, found: &LocatedWorkflow<'_>) -> Result<(), Error> {
    let ralph = phrases::of(&found.workflow);
    let plan = ralph.and_then(|ralph| ralph.plan.as_ref().filter(|_| ralph.branch.is_none()));
    match plan {
        Some(plan) => branch::check(context, found, plan.branch_type),
        None => Ok(()),
    }
}
