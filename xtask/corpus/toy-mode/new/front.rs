//! `kapi scales`: a scale that is described, approved, built and carried.

pub(super) mod words;

use kapi_core::mode::Mode;
use kapi_workflow::rules::modes::scales::command::ScalesCommand;
use kapi_workflow::rules::modes::ModeCommand;

use crate::commands::workflow::{approve, resume, start, status};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::workflow::driving::{Conduct, NOTHING_ASKED, nothing_asked};

/// What it does.
static CONDUCT: Conduct = Conduct {
    mode: Mode::Scales,
    check: |_, _| Ok(()),
    settle: NOTHING_ASKED,
};

/// Options of `kapi scales`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(flatten)]
    start: start::Args,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List the scales of this project
    Status(status::Args),
    /// Go on with one
    Resume(ResumeArgs),
    /// Approve the one that was described
    Approve(approve::Args),
}

#[derive(Debug, clap::Args)]
struct ResumeArgs {
    #[command(flatten)]
    common: resume::Args,
    /// Describe it anew
    #[arg(long)]
    reweigh: bool,
}

/// Starts one, or does what the verb says.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    const MODE: Mode = Mode::Scales;
    match &args.verb {
        None => {
            let wanted = start::StartRequest {
                mode: MODE,
                args: &args.start,
                settle: &nothing_asked,
                source: start::ContextSource::Unlinked,
                plan_approval: start::PlanApprovalName::Ask,
                watch: None,
                first: &start::nothing_first,
            };
            start::run(context, &wanted)
        }
        Some(Verb::Status(args)) => status::run(context, MODE, args),
        Some(Verb::Resume(args)) => {
            let reweigh = || resume::ResumeOptions::Command(ModeCommand::Scales(ScalesCommand::Reweigh));
            let more = resume::ModeOptions {
                ask: args.reweigh.then(reweigh),
                settle: &nothing_asked,
                watch: None,
            };
            resume::run(context, &CONDUCT, &args.common, more)
        }
        Some(Verb::Approve(args)) => approve::run(context, &CONDUCT, args),
    }
}
