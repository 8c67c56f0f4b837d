//! `kapi autoresearch`: from a purpose to a better number that was measured, kept and proved.
//!
//! Only the command line of the mode and its words; what its verbs do is shared with the other modes.

mod contract;
mod import;
mod machine;
mod page;
mod phrases;
pub(super) mod words;

use std::path::PathBuf;

use kapi_core::mode::Mode;
use kapi_workflow::rules::branch::BranchType;
use kapi_workflow::rules::modes::ModeCommand;
use kapi_workflow::rules::modes::autoresearch::command::AutoresearchCommand;

use crate::commands::workflow::{approve, branch, resume, start, status};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::workflow::driving::{Conduct, NOTHING_ASKED, nothing_asked};
use crate::workflow::located::LocatedWorkflow;

/// What it does.
static CONDUCT: Conduct = Conduct {
    mode: Mode::Autoresearch,
    check,
    settle: NOTHING_ASKED,
};

/// Options of `kapi autoresearch`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(flatten)]
    start: start::Args,
    #[command(flatten)]
    context: start::ContextArgs,
    #[command(flatten)]
    contract: contract::Flags,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List the searches of this project
    Status(status::Args),
    /// Continue, revise, finish or abandon a search
    Resume(ResumeArgs),
    /// Approve the proposed contract, benchmark and checks
    Approve(approve::Args),
}

#[derive(Debug, clap::Args)]
struct ResumeArgs {
    #[command(flatten)]
    common: resume::Args,
    /// End the search and finish with what was kept
    #[arg(long, group = "asked")]
    finish: bool,
    /// Add an idea to the backlog
    #[arg(long, value_name = "IDEA", group = "asked")]
    idea: Option<String>,
    /// Confirm gains of the proposed contract by inputs no agent sees
    #[arg(long, value_name = "DIR", group = "asked")]
    held_back: Option<PathBuf>,
}

/// Starts a search, or does what the verb says.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    const MODE: Mode = Mode::Autoresearch;
    match &args.verb {
        None => {
            let wanted = start::StartRequest {
                mode: MODE,
                args: &args.start,
                settle: &nothing_asked,
                source: args.context.source(),
                plan_approval: start::PlanApprovalName::Ask,
                watch: None,
                first: &|purpose| args.contract.commands(context, purpose),
            };
            start::run(context, &wanted)
        }
        Some(Verb::Status(args)) => status::run(context, MODE, args),
        Some(Verb::Resume(args)) => {
            let more = resume::ModeOptions {
                ask: asked(args),
                settle: &nothing_asked,
                watch: None,
            };
            resume::run(context, &CONDUCT, &args.common, more)
        }
        Some(Verb::Approve(args)) => approve::run(context, &CONDUCT, args),
    }
}

fn asked(args: &ResumeArgs) -> Option<resume::ResumeOptions> {
    if let Some(dir) = args.held_back.clone() {
        let hold_back = move |context: &Context, found: &mut LocatedWorkflow<'_>| {
            machine::hold_back(context, found, &dir)
        };
        return Some(resume::ResumeOptions::Do(Box::new(hold_back)));
    }
    let command = if args.finish {
        AutoresearchCommand::Finish {}
    } else {
        let idea = args.idea.clone()?;
        AutoresearchCommand::Note { idea }
    };
    let command = ModeCommand::Autoresearch(command);
    Some(resume::ResumeOptions::Command(command))
}

/// Refuses to go on to where the branch is made, if git could not make it, and to measurements that
/// this machine cannot make.
fn check(context: &Context, found: &LocatedWorkflow<'_>) -> Result<(), Error> {
    let search = phrases::of(&found.workflow);
    if let Some(contract) = search.and_then(|search| search.contract.as_deref()) {
        machine::ready(context, found, contract)?;
    }
    match search.filter(|search| search.branch.is_none()) {
        Some(_) => branch::check(context, found, BranchType::Perf),
        None => Ok(()),
    }
}
