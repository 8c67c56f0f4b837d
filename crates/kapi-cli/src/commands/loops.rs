//! `kapi loop`: loops of the project, what sets them off, and what became of their runs.
//!
//! A definition is a file that a person writes; nothing here changes one. When a loop is triggered by
//! itself is the business of `kapi up`.

pub(crate) mod guardrail;
mod history;
mod init;
mod list;
mod policy;
mod run;
mod show;
mod standing;
mod status;
mod switch;
mod wall;

use kapi_core::task_id::LoopName;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Options of `kapi loop`.
#[derive(Debug, clap::Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Args {
    /// Where tasks are kept: `files`, or the servers of a NATS cluster as `nats://host:port,…`
    #[arg(long, value_name = "STORE", global = true)]
    store: Option<String>,
    /// What to do
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List the loops, when they are due next, and what is wrong with their files
    List,
    /// Show a loop as it is understood, and where each value was said
    Show(Reference),
    /// Run a loop now
    Run(Box<run::Args>),
    /// Show where loops stand: name, last run, status, next scheduled
    Status(status::Args),
    /// Let a clock or an event set a loop off again
    Enable(Reference),
    /// Let nothing but a person set a loop off
    Disable(Reference),
    /// Show the last runs of a loop, phase by phase
    History(history::Args),
    /// Keep the lessons that later runs of tasks and loops are told
    Guardrail(guardrail::Args),
    /// Show the rules for tasks and loops, or try them
    Policy(policy::Args),
    /// Write the loops that Kapi brings along to .ilchul/loops, for you to change
    Init(init::Args),
}

/// Names one loop.
#[derive(Debug, clap::Args)]
pub(crate) struct Reference {
    /// The loop
    #[arg(value_name = "LOOP", value_parser = parse)]
    name: LoopName,
}

/// Carries out one verb.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let context = &context.with_store(args.store.as_deref());
    match &args.verb {
        Verb::List => list::run(context),
        Verb::Show(args) => show::run(context, args),
        Verb::Run(args) => run::run(context, args),
        Verb::Status(args) => status::run(context, args),
        Verb::Enable(args) => switch::run(context, args, switch::To::On),
        Verb::Disable(args) => switch::run(context, args, switch::To::Off),
        Verb::History(args) => history::run(context, args),
        Verb::Guardrail(args) => guardrail::run(context, args),
        Verb::Policy(args) => policy::run(context, args),
        Verb::Init(args) => init::run(context, args),
    }
}

/// Reads a loop's name for clap.
fn parse(text: &str) -> Result<LoopName, String> {
    LoopName::parse(text).map_err(|error| error.rule.to_owned())
}
