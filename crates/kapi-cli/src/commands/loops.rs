//! `kapi loop`: loops of the project, what sets them off, and what became of their runs.
//!
//! A definition is a file that a person writes; nothing here changes one. When a loop is triggered by
//! itself is the business of `kapi up`.

pub(crate) mod guardrail;
mod history;
mod init;
mod list;
pub(crate) mod loop_state;
mod next;
mod policy;
mod run;
mod show;
mod status;
pub(crate) mod switch;
mod wall;

use kapi_core::task_id::LoopName;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Options of `kapi loop`.
#[derive(Debug, clap::Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Args {
    /// Task store: 'files', or NATS servers as 'nats://host:port,…'
    #[arg(long, value_name = "STORE", global = true)]
    store: Option<String>,
    /// The command
    #[command(subcommand)]
    verb: LoopVerb,
}

#[derive(Debug, clap::Subcommand)]
enum LoopVerb {
    /// List loops, their next run and errors in their files
    List,
    /// Show a loop's settings and where each comes from
    Show(LoopArg),
    /// Run a loop now
    Run(Box<run::Args>),
    /// Show each loop's last run, status and next run
    Status(status::Args),
    /// Show when schedules trigger loops next
    Next(next::Args),
    /// Enable a loop's triggers
    Enable(LoopArg),
    /// Disable a loop's triggers; it can still be run by hand
    Disable(LoopArg),
    /// Show a loop's latest runs, phase by phase
    History(history::Args),
    /// Manage the lessons given to later runs
    Guardrail(guardrail::Args),
    /// Show or test the rules for tasks and loops
    Policy(policy::Args),
    /// Copy the built-in loops to .ilchul/loops
    Init(init::Args),
}

/// Names one loop.
#[derive(Debug, clap::Args)]
pub(crate) struct LoopArg {
    /// Loop name
    #[arg(value_name = "LOOP", value_parser = parse)]
    name: LoopName,
}

/// Carries out one verb.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let context = &context.with_store(args.store.as_deref());
    match &args.verb {
        LoopVerb::List => list::run(context),
        LoopVerb::Show(args) => show::run(context, args),
        LoopVerb::Run(args) => run::run(context, args),
        LoopVerb::Status(args) => status::run(context, args),
        LoopVerb::Next(args) => next::run(context, args),
        LoopVerb::Enable(args) => switch::run(context, args, switch::LoopSwitch::On),
        LoopVerb::Disable(args) => switch::run(context, args, switch::LoopSwitch::Off),
        LoopVerb::History(args) => history::run(context, args),
        LoopVerb::Guardrail(args) => guardrail::run(context, args),
        LoopVerb::Policy(args) => policy::run(context, args),
        LoopVerb::Init(args) => init::run(context, args),
    }
}

/// Reads a loop's name for clap.
pub(crate) fn parse(text: &str) -> Result<LoopName, String> {
    LoopName::parse(text).map_err(|error| error.rule.to_owned())
}
