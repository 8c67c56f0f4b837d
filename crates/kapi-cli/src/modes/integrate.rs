//! `kapi integrate`: from finished work of several workflows and goals to `dev`, with proof.
//!
//! Only the command line of the mode and its words; what its verbs do is shared with the other modes.

mod page;
mod phrases;
mod sources;
mod start;
pub(super) mod words;

use kapi_core::id::GoalId;
use kapi_core::mode::Mode;
use kapi_goal::record::reference;
use kapi_workflow::rules::branch::BranchType;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::modes::ModeCommand;
use kapi_workflow::rules::modes::integrate::command::IntegrateCommand;
use kapi_workflow::rules::modes::integrate::leave::IntegrateLeave;

use crate::commands::workflow::{approve, branch, resume, status};
use crate::config::notify::NotifyArgs;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::workflow::driving::{Conduct, NOTHING_ASKED, nothing_asked};
use crate::workflow::located::LocatedWorkflow;
use crate::workflow::terms::TermFlags;

/// What it does.
static CONDUCT: Conduct = Conduct {
    mode: Mode::Integrate,
    check,
    settle: NOTHING_ASKED,
};

/// Why a source is left out where its person says no more.
const NO_REASON: &str = "not now";

/// Options of `kapi integrate`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    /// Finished workflows and goals; nothing, or 'all', takes every one that is ready
    #[arg(value_name = "SOURCE")]
    sources: Vec<String>,
    #[command(flatten)]
    flags: TermFlags,
    /// Create the workflow without starting it
    #[arg(long)]
    no_drive: bool,
    /// Create dev from this revision if there is none yet, such as main
    #[arg(long, value_name = "FROM")]
    create_dev: Option<String>,
    /// Leave out a source that fails without asking, and land the rest
    #[arg(long)]
    allow_eviction: bool,
    /// Update a clean checkout of dev when dev moves
    #[arg(long)]
    bring_checkout: bool,
    #[command(flatten)]
    notify: NotifyArgs,
    #[command(subcommand)]
    verb: Option<IntegrateVerb>,
}

#[derive(Debug, clap::Subcommand)]
enum IntegrateVerb {
    /// List the integrations of this project
    Status(status::Args),
    /// Continue, revise or abandon an integration
    Resume(IntegrateResumeArgs),
    /// Approve the proposed merge plan
    Approve(approve::Args),
}

#[derive(Debug, clap::Args)]
struct IntegrateResumeArgs {
    #[command(flatten)]
    common: resume::Args,
    /// Leave out a source and continue
    #[arg(long, value_name = "SOURCE", group = "asked")]
    evict: Option<String>,
    /// Why the source is left out
    #[arg(long, value_name = "TEXT", requires = "evict")]
    because: Option<String>,
    /// Say what a source was meant to do, with --meaning
    #[arg(long, value_name = "SOURCE", group = "asked", requires = "meaning")]
    clarify: Option<String>,
    /// What the source was meant to do
    #[arg(long, value_name = "TEXT", requires = "clarify")]
    meaning: Option<String>,
}

/// Starts an integration, or does what the verb says.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    const MODE: Mode = Mode::Integrate;
    match &args.verb {
        None => start::run(
            &context.with_notify(&args.notify),
            &start::IntegrateRequest {
                named: &args.sources,
                flags: &args.flags,
                create_dev: args.create_dev.as_deref(),
                leave: IntegrateLeave {
                    evicts: args.allow_eviction,
                    brings_checkout: args.bring_checkout,
                },
                no_drive: args.no_drive,
            },
        ),
        Some(IntegrateVerb::Status(args)) => status::run(context, MODE, args),
        Some(IntegrateVerb::Resume(args)) => {
            let more = resume::ModeOptions {
                ask: asked(args),
                settle: &nothing_asked,
                watch: None,
            };
            resume::run(context, &CONDUCT, &args.common, more)
        }
        Some(IntegrateVerb::Approve(args)) => approve::run(context, &CONDUCT, args),
    }
}

/// Which source is meant is known once the workflow is.
fn asked(args: &IntegrateResumeArgs) -> Option<resume::ResumeOptions> {
    let (source, make): (String, Box<dyn FnOnce(GoalId) -> IntegrateCommand>) =
        if let Some(source) = &args.evict {
            let why = args.because.clone().unwrap_or_else(|| NO_REASON.to_owned());
            let make = move |source| IntegrateCommand::Evict { source, why };
            (source.clone(), Box::new(make))
        } else {
            let text = args.meaning.clone()?;
            let make = move |source| IntegrateCommand::Clarify { source, text };
            (args.clarify.clone()?, Box::new(make))
        };
    Some(resume::ResumeOptions::Do(Box::new(
        move |context: &Context, found: &mut LocatedWorkflow<'_>| {
            let source = named(found, &source)?;
            let command = WorkflowCommand::Mode(ModeCommand::Integrate(make(source)));
            found.submit(context, &command).map(drop)
        },
    )))
}

fn named(found: &LocatedWorkflow<'_>, token: &str) -> Result<GoalId, Error> {
    let sources = phrases::of(&found.workflow).map_or(&[][..], |state| &state.sources[..]);
    let ids: Vec<GoalId> = sources.iter().map(|source| source.id.clone()).collect();
    reference::find(token, &ids).map_err(|error| {
        let names: Vec<String> = ids.iter().map(GoalId::to_string).collect();
        Error::new(Exit::NotFound, error.to_string())
            .with_hint(format!("its sources are {}.", names.join(", ")))
    })
}

/// Refuses to go on to where the branch is made, if git could not make it.
fn check(context: &Context, found: &LocatedWorkflow<'_>) -> Result<(), Error> {
    let state = phrases::of(&found.workflow);
    match state.filter(|state| state.branch.is_none()) {
        Some(_) => branch::check(context, found, BranchType::Chore),
        None => Ok(()),
    }
}
