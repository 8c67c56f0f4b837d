//! `kapi deep-interview`: what a person wants, asked until it is clear, written down as a spec.
//!
//! Only the command line of the mode, its dialog and its words; what its verbs do is shared with the
//! other modes.

mod answers;
mod dialog;
mod question;
mod reply;
pub(super) mod words;

use std::path::PathBuf;

use kapi_core::mode::Mode;
use kapi_workflow::rules::modes::ModeCommand;
use kapi_workflow::rules::modes::interview::command::InterviewCommand;

use crate::commands::workflow::{approve, resume, start, status};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::modes::deep_interview::answers::Answers;
use crate::modes::deep_interview::reply::DialogReply;
use crate::workflow::driving::{Conduct, Settle};

/// What it does.
static CONDUCT: Conduct = Conduct {
    mode: Mode::DeepInterview,
    check: |_, _| Ok(()),
    settle: &|context, found, keyboard| dialog::settle(context, found, None, keyboard),
};

/// Options of `kapi deep-interview`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(flatten)]
    start: start::Args,
    /// YAML file of answers to use before asking
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
    #[command(subcommand)]
    verb: Option<InterviewVerb>,
}

#[derive(Debug, clap::Subcommand)]
enum InterviewVerb {
    /// List the interviews of this project
    Status(status::Args),
    /// Continue, revise, reopen or abandon an interview
    Resume(InterviewResumeArgs),
    /// Approve the drafted spec
    Approve(approve::Args),
}

#[derive(Debug, clap::Args)]
struct InterviewResumeArgs {
    #[command(flatten)]
    common: resume::Args,
    /// Answer the open question; an empty answer accepts the proposal
    ///
    /// /later, /back and /enough work as they do at the prompt.
    #[arg(long, value_name = "TEXT", group = "asked", allow_hyphen_values = true)]
    answer: Option<String>,
    /// YAML file of answers to use before asking
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
    /// Reopen an approved spec on which no other work is based yet
    #[arg(long, value_name = "REASON", group = "asked")]
    reopen: Option<String>,
}

/// Starts an interview, or does what the verb says.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    const MODE: Mode = CONDUCT.mode;
    match &args.verb {
        None => start::run(
            context,
            &start::StartRequest {
                mode: MODE,
                args: &args.start,
                settle: &|context| from_file(context, args.answers.as_ref()),
                source: start::ContextSource::Unlinked,
                plan_approval: start::PlanApprovalName::Ask,
                watch: None,
                first: &start::nothing_first,
            },
        ),
        Some(InterviewVerb::Status(args)) => status::run(context, MODE, args),
        Some(InterviewVerb::Resume(args)) => {
            let ask = match (&args.answer, &args.reopen) {
                (Some(text), _) => Some(answer(text.clone())),
                (None, Some(reason)) => {
                    let reason = reason.clone();
                    let command = InterviewCommand::Reopen { reason };
                    Some(resume::ResumeOptions::Command(ModeCommand::Interview(
                        command,
                    )))
                }
                (None, None) => None,
            };
            let more = resume::ModeOptions {
                ask,
                settle: &|context| from_file(context, args.answers.as_ref()),
                watch: None,
            };
            resume::run(context, &CONDUCT, &args.common, more)
        }
        Some(InterviewVerb::Approve(args)) => approve::run(context, &CONDUCT, args),
    }
}

/// Returns the dialog, which takes its answers from a file first.
fn from_file(context: &Context, file: Option<&PathBuf>) -> Result<Box<Settle>, Error> {
    let answers = file.map(|path| Answers::read(context, path)).transpose()?;
    Ok(Box::new(move |context, found, keyboard| {
        dialog::settle(context, found, answers.as_ref(), keyboard)
    }))
}

/// Returns a reply to the open question.
fn answer(text: String) -> resume::ResumeOptions {
    resume::ResumeOptions::Do(Box::new(move |context, found| {
        let reply = DialogReply::read(&text);
        dialog::answer(context, found, reply, dialog::Replier::Person).map(drop)
    }))
}
