//! `kapi deep-interview`: what a person wants, asked until it is clear, written down as a spec.
//!
//! Only the command line of the mode; what its verbs do is shared with the other modes.

use std::path::PathBuf;

use kapi_core::workflow::modes::Mode;

use crate::commands::workflow::{approve, resume, start, status};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Options of `kapi deep-interview`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(flatten)]
    start: start::Args,
    /// A YAML file of answers, taken before anybody is asked
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List the interviews of this project
    Status(status::Args),
    /// Go on with an interview: answer, revise, reopen or give up
    Resume(ResumeArgs),
    /// Approve the spec that was drafted
    Approve(approve::Args),
}

#[derive(Debug, clap::Args)]
struct ResumeArgs {
    #[command(flatten)]
    common: resume::Args,
    /// Answer the open question; empty accepts what is proposed; /later, /back, /enough as typed
    #[arg(long, value_name = "TEXT", group = "asked", allow_hyphen_values = true)]
    answer: Option<String>,
    /// A YAML file of answers, taken before anybody is asked
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
    /// Interview further from an approved spec that nothing was started from yet
    #[arg(long, value_name = "REASON", group = "asked")]
    reopen: Option<String>,
}

/// Starts an interview, or does what the verb says.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    const MODE: Mode = Mode::DeepInterview;
    match &args.verb {
        None => start::run(
            context,
            &start::Wanted {
                mode: MODE,
                args: &args.start,
                answers: args.answers.as_deref(),
                source: start::Source::Unlinked,
                plan_approval: start::PlanApprovalName::Ask,
                watch: None,
            },
        ),
        Some(Verb::Status(args)) => status::run(context, MODE, args),
        Some(Verb::Resume(args)) => {
            let ask = match (&args.answer, &args.reopen) {
                (Some(text), _) => Some(resume::Ask::Answer(text.clone())),
                (None, Some(reason)) => Some(resume::Ask::Reopen(reason.clone())),
                (None, None) => None,
            };
            let answers = args.answers.as_deref();
            let more = resume::More {
                ask,
                answers,
                watch: None,
            };
            resume::run(context, MODE, &args.common, more)
        }
        Some(Verb::Approve(args)) => approve::run(context, MODE, args),
    }
}
