//! The modes on the command line, in one list: the command of each, and what it says of its workflows.
//!
//! What every mode shares of reading, asking, driving and showing stands in [`crate::workflow`].

use kapi_core::mode::Mode;
use kapi_workflow::rules::modes::ModeEvent;
use kapi_workflow::rules::state::Workflow;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Ui;
use crate::workflow::driving::Settle;
use crate::workflow::found::Found;

pub(crate) mod autoresearch;
pub(crate) mod deep_interview;
pub(crate) mod ralph;

/// The commands of the modes.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Ask what is wanted until it is clear, and write it down as a spec to approve
    DeepInterview(Box<deep_interview::Args>),
    /// Plan, have the plan approved, build it in parallel, review it, account for it
    Ralph(Box<ralph::Args>),
    /// Search for a better number: have experiments made, measured, kept or put back
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

/// Returns what a mode says; `None` for one that there is only by name yet.
pub(crate) fn front(mode: Mode) -> Option<&'static Front> {
    match mode {
        Mode::DeepInterview => Some(&deep_interview::FRONT),
        Mode::Ralph => Some(&ralph::FRONT),
        Mode::Autoresearch => Some(&autoresearch::FRONT),
        _ => None,
    }
}

/// What a mode says of its workflows, and asks of their person.
pub(crate) struct Front {
    /// Returns a fact of the mode in words; `None` for what is only bookkeeping.
    pub(crate) describe: fn(&ModeEvent) -> Option<String>,
    /// Tells whether a fact is what a person at the keyboard is shown whole right after it.
    pub(crate) is_shown_next: fn(&ModeEvent) -> bool,
    /// Prints what it came to, for whoever sees it end or rest.
    pub(crate) summary: fn(Ui, &Workflow),
    /// Prints more, for whoever looks at it.
    pub(crate) details: fn(Ui, &Workflow),
    /// Returns commands of other programs that make sense now.
    pub(crate) next: fn(&Workflow) -> Vec<String>,
    /// Returns what one trusts besides by taking one over.
    pub(crate) trusted: fn(&Workflow) -> Vec<(&'static str, String)>,
    /// Returns what it asks its person now, apart from decisions.
    pub(crate) waits_for: fn(&Workflow) -> Option<WaitsFor>,
    /// Refuses to go on to what could not be done.
    pub(crate) check: fn(&Context, &Found<'_>) -> Result<(), Error>,
    /// Settles what it asks its person at the keyboard.
    pub(crate) settle: &'static Settle,
}

/// What a workflow asks its person, as a list of what waits shows it.
#[derive(Debug)]
pub(crate) struct WaitsFor {
    /// Its kind.
    pub(crate) kind: &'static str,
    /// What it is, in a line.
    pub(crate) what: String,
    /// What happens when it is settled.
    pub(crate) on_yes: &'static str,
    /// The options of `resume` that settle it otherwise.
    pub(crate) change: &'static [&'static str],
}
