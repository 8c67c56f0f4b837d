//! `kapi loop guardrail`: the lessons that later runs are told, and what a person says to those learnt.
//!
//! Lessons stand in Markdown files that a person may edit at any time; see `edit`.

mod add;
mod edit;
mod list;
mod settle;

use kapi_sys::lock::LockError;
use kapi_task::record::guardrails::error::MemoryError;

use crate::context::Context;
use crate::error::{Error, chain};
use crate::exit_code::Exit;

/// Options of `kapi loop guardrail`.
#[derive(Debug, clap::Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Args {
    /// What to do
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Add a lesson; what an agent adds waits for a person
    Add(add::Args),
    /// List the lessons
    List(list::Args),
    /// Print the file of a domain, for an editor
    Edit(edit::Args),
    /// Have a proposed lesson told from now on
    Accept(settle::Args),
    /// Have a lesson told no more, and not proposed again
    Reject(settle::Args),
    /// Remove a lesson as if it had never been said
    Remove(settle::Args),
}

/// Carries out one verb.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    match &args.verb {
        Verb::Add(args) => add::run(context, args),
        Verb::List(args) => list::run(context, args),
        Verb::Edit(args) => edit::run(context, args),
        Verb::Accept(args) => settle::run(context, args, settle::To::Accepted),
        Verb::Reject(args) => settle::run(context, args, settle::To::Rejected),
        Verb::Remove(args) => settle::run(context, args, settle::To::Removed),
    }
}

/// Says why the memory could not answer.
pub(crate) fn failed(error: &MemoryError) -> Error {
    let text = format!("failed to {}", chain(error));
    match error {
        MemoryError::Domain(_) | MemoryError::Lesson(_) => Error::usage(error.to_string()),
        MemoryError::Ambiguous { .. } => Error::usage(text).with_hint("type more of the id."),
        MemoryError::OnlyPerson { .. } => Error::new(Exit::Denied, text)
            .with_hint("ask the person to type the command in their own terminal."),
        MemoryError::TooManyProposed { domain } => {
            Error::new(Exit::Denied, text).with_hint(format!(
                "`kapi loop guardrail list {domain} --state proposed` shows them; accept or reject some."
            ))
        }
        MemoryError::TooManyDomains { .. } => Error::new(Exit::Denied, text)
            .with_hint("use a domain that is there: `kapi loop guardrail list`."),
        MemoryError::NotFound { .. } => {
            Error::new(Exit::NotFound, text).with_hint("`kapi loop guardrail list` shows the ids.")
        }
        MemoryError::Lock(LockError::Busy { .. }) => Error::new(Exit::Busy, text),
        MemoryError::IsLink { .. } => {
            Error::new(Exit::Failed, text).with_hint("put a file in the link's place.")
        }
        MemoryError::TooLarge { .. }
        | MemoryError::KeepsChanging { .. }
        | MemoryError::Lock(LockError::Failed { .. })
        | MemoryError::Disk(_) => Error::new(Exit::Failed, text),
    }
}
