//! The commands of the modes, in one list.
//!
//! What a command's options mean stands with its mode.

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::modes::{autoresearch, deep_interview, ralph};

/// The commands of the modes.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Turn an idea into an approved spec by interview
    DeepInterview(Box<deep_interview::Args>),
    /// Plan, build and review larger work in parallel
    Ralph(Box<ralph::Args>),
    /// Improve a number by measured experiments
    Autoresearch(Box<autoresearch::Args>),
}

/// Runs the command of a mode.
pub(crate) fn run(context: &Context, command: &Command) -> Result<Exit, Error> {
    match command {
        Command::DeepInterview(args) => deep_interview::run(context, args),
        Command::Ralph(args) => ralph::run(context, args),
        Command::Autoresearch(args) => autoresearch::run(context, args),
    }
}
