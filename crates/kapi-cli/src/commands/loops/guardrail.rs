//! `kapi loop guardrail`: the lessons that later runs are told, and what a person says to those learnt.
//!
//! Lessons stand in Markdown files that a person may edit at any time; see `edit`.

mod add;
mod edit;
mod list;
mod settle;

use kapi_core::failure::chain;
use kapi_sys::lock::LockError;
use kapi_task::record::guardrails::error::MemoryError;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Options of `kapi loop guardrail`.
#[derive(Debug, clap::Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Args {
    /// The command
    #[command(subcommand)]
    verb: GuardrailVerb,
}

#[derive(Debug, clap::Subcommand)]
enum GuardrailVerb {
    /// Add a lesson
    Add(add::Args),
    /// List lessons
    List(list::Args),
    /// Print the path of a domain's lesson file
    Edit(edit::Args),
    /// Accept a proposed lesson
    Accept(settle::Args),
    /// Reject a lesson and prevent further proposals of it
    Reject(settle::Args),
    /// Remove a lesson
    Remove(settle::Args),
}

/// Carries out one verb.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    match &args.verb {
        GuardrailVerb::Add(args) => add::run(context, args),
        GuardrailVerb::List(args) => list::run(context, args),
        GuardrailVerb::Edit(args) => edit::run(context, args),
        GuardrailVerb::Accept(args) => {
            settle::run(context, args, settle::LessonSettlement::Accepted)
        }
        GuardrailVerb::Reject(args) => {
            settle::run(context, args, settle::LessonSettlement::Rejected)
        }
        GuardrailVerb::Remove(args) => {
            settle::run(context, args, settle::LessonSettlement::Removed)
        }
    }
}

/// Says why the memory could not answer.
pub(crate) fn failed(error: &MemoryError) -> Error {
    let text = format!("failed to {}", chain(error));
    match error {
        MemoryError::Domain(_) | MemoryError::Lesson(_) => Error::usage(error.to_string()),
        MemoryError::Ambiguous { .. } => {
            Error::usage(text).with_hint("give more characters of the id.")
        }
        MemoryError::OnlyPerson { .. } => Error::new(Exit::Denied, text)
            .with_hint("ask the user to run the command in their own terminal."),
        MemoryError::TooManyProposed { domain } => {
            Error::new(Exit::Denied, text).with_hint(format!(
                "list them with `kapi loop guardrail list {domain} --state proposed` and accept \
                 or reject some."
            ))
        }
        MemoryError::TooManyDomains { .. } => Error::new(Exit::Denied, text)
            .with_hint("use an existing domain; see `kapi loop guardrail list`."),
        MemoryError::NotFound { .. } => Error::new(Exit::NotFound, text)
            .with_hint("list the ids with `kapi loop guardrail list`."),
        MemoryError::Lock(LockError::Busy { .. }) => Error::new(Exit::Busy, text),
        MemoryError::IsLink { .. } => {
            Error::new(Exit::Failed, text).with_hint("replace the symbolic link with a file.")
        }
        MemoryError::TooLarge { .. }
        | MemoryError::KeepsChanging { .. }
        | MemoryError::Lock(LockError::Failed { .. })
        | MemoryError::Disk(_) => Error::new(Exit::Failed, text),
    }
}
