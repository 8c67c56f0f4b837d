//! `kapi task`: hand work to agents and see what becomes of it.
//!
//! Which task is worked on when, and by whom, is the kernel's affair; nothing here decides it. Looking
//! at one, waiting for it and ending it are verbs of every kind of work.

mod adopt;
pub(crate) mod answer;
pub(crate) mod follow;
mod list;
mod retry;
mod run;
pub(crate) mod submitted;

use clap_complete::engine::ArgValueCandidates;
use kapi_core::task_id::KernelTaskId;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subject::completion;

/// Options of `kapi task`.
#[derive(Debug, clap::Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Args {
    /// Task store: 'files', or NATS servers as 'nats://host:port,…'
    #[arg(long, value_name = "STORE", global = true)]
    store: Option<String>,
    /// The command
    #[command(subcommand)]
    verb: TaskCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TaskCommand {
    /// Submit a task and run it
    Run(Box<run::Args>),
    /// List unfinished tasks
    List(list::Args),
    /// Submit a finished task again
    Retry(retry::Args),
    /// Adopt a queue from a copied directory or archive
    Adopt,
}

/// Names one task.
#[derive(Debug, clap::Args)]
pub(crate) struct TaskArg {
    /// Task: 'task_17' or '17'
    #[arg(value_name = "TASK", value_parser = parse, add = ArgValueCandidates::new(completion::tasks))]
    id: KernelTaskId,
}

/// Carries out one verb.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let context = &context.with_store(args.store.as_deref());
    match &args.verb {
        TaskCommand::Run(args) => run::run(context, args),
        TaskCommand::List(args) => list::run(context, args),
        TaskCommand::Retry(args) => retry::run(context, args),
        TaskCommand::Adopt => adopt::run(context),
    }
}

/// Returns a description in one line of bounded length.
pub(crate) fn short(text: &str) -> String {
    answer::short(text)
}

/// Reads a task's id for clap.
fn parse(text: &str) -> Result<KernelTaskId, String> {
    KernelTaskId::parse(text).map_err(|error| error.rule.to_owned())
}
