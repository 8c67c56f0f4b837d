//! `kapi ralph`: from a purpose to a branch on which every criterion has its evidence.
//!
//! Only the command line of the mode; what its verbs do is shared with the other modes.

use kapi_core::workflow::modes::Mode;

use crate::commands::workflow::{approve, resume, start, status};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::workflow::watching::Watch;

/// Options of `kapi ralph`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(flatten)]
    start: start::Args,
    /// The approved interview that gives it its context
    #[arg(long, value_name = "INTERVIEW", conflicts_with = "unlinked")]
    from: Option<String>,
    /// Begin without an interview, also where one would fit
    #[arg(long)]
    unlinked: bool,
    /// 'auto' approves a plan in advance that reaches consensus, which is recorded as such
    #[arg(long, value_name = "HOW", value_enum, default_value = "ask")]
    approve_plan: start::PlanApprovalName,
    /// Show each worker in a window of a tmux session while it is driven
    #[arg(long, value_name = "PLACE", value_enum)]
    watch: Option<Watch>,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List the Ralph workflows of this project
    Status(status::Args),
    /// Go on with a workflow: revise, retry, plan anew or give up
    Resume(ResumeArgs),
    /// Approve the plan that was proposed
    Approve(approve::Args),
}

#[derive(Debug, clap::Args)]
struct ResumeArgs {
    #[command(flatten)]
    common: resume::Args,
    /// Let a task that came to rest go on, or be done anew
    #[arg(long, value_name = "TASK", group = "asked")]
    retry: Option<String>,
    /// Plan anew: the approved plan is materially wrong
    #[arg(long, value_name = "REASON", group = "asked")]
    replan: Option<String>,
    /// Show each worker in a window of a tmux session while it is driven
    #[arg(long, value_name = "PLACE", value_enum)]
    watch: Option<Watch>,
}

/// Starts a Ralph workflow, or does what the verb says.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    const MODE: Mode = Mode::Ralph;
    match &args.verb {
        None => {
            let source = match (&args.from, args.unlinked) {
                (Some(reference), _) => start::Source::Interview(reference),
                (None, true) => start::Source::Unlinked,
                (None, false) => start::Source::Search,
            };
            let wanted = start::Wanted {
                mode: MODE,
                args: &args.start,
                answers: None,
                source,
                plan_approval: args.approve_plan,
                watch: args.watch,
            };
            start::run(context, &wanted)
        }
        Some(Verb::Status(args)) => status::run(context, MODE, args),
        Some(Verb::Resume(args)) => {
            let ask = match (&args.retry, &args.replan) {
                (Some(task), _) => Some(resume::Ask::Retry(task.clone())),
                (None, Some(reason)) => Some(resume::Ask::Replan(reason.clone())),
                (None, None) => None,
            };
            let more = resume::More {
                ask,
                answers: None,
                watch: args.watch,
            };
            resume::run(context, MODE, &args.common, more)
        }
        Some(Verb::Approve(args)) => approve::run(context, MODE, args),
    }
}
