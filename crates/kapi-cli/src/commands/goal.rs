//! `kapi goal`: goals as pi-until-done has them, one verb for each of its subcommands and more.
//!
//! Which goal a verb is about is decided once, in `pick`; what it may do is the core's affair.

mod allow;
pub(crate) mod answer;
mod approve;
mod ask;
mod autopilot;
pub(crate) mod detail;
mod help;
mod judge;
mod look;
mod new;
mod park;
mod pause;
pub(crate) mod pick;
mod reject;
pub(crate) mod reopen;
pub(crate) mod resume;
mod say;
mod slash;
mod standing;
mod status;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Options of `kapi goal`.
#[derive(Debug, clap::Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Args {
    /// What to do
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Set a goal up: a contract from flags, a file, or drafted by the agent
    New(Box<new::Args>),
    /// Approve the contract that was shown, and let the goal begin
    Approve(approve::Args),
    /// Turn a proposed contract down
    Reject(reject::Args),
    /// Show the task list as YAML
    Tasks(pick::Args),
    /// Show where tasks.yaml is
    Plan(pick::Args),
    /// Show the locked contract of the goal
    Northstar(pick::Args),
    /// Show every replan and its reason
    ReplanLog(pick::Args),
    /// Stop the loop and keep the goal
    Pause(pick::Args),
    /// Ask a side question without touching the loop
    Ask(ask::Args),
    /// Say something to the agent: it cuts into the turn and the loop goes on with it
    Say(say::Args),
    /// Allow what the agent asked about
    Allow(allow::Args),
    /// Park the goal until something is so; a parked goal costs nothing
    Park(Box<park::Args>),
    /// Not accept a result that is done, and go on
    Reopen(reopen::Args),
    /// Skip the approval dialog of later goals here, or stop skipping it
    Autopilot(autopilot::Args),
    /// Show or set who judges later goals here
    Judge(judge::Args),
    /// Carry out a line as it is typed behind /until-done
    Slash(slash::Args),
    /// Show the list of subcommands of /until-done
    Help,
}

/// Carries out one verb.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    match &args.verb {
        Verb::New(args) => new::run(context, args),
        Verb::Approve(args) => approve::run(context, args),
        Verb::Reject(args) => reject::run(context, args),
        Verb::Tasks(args) => look::tasks(context, args),
        Verb::Plan(args) => look::plan(context, args),
        Verb::Northstar(args) => look::northstar(context, args),
        Verb::ReplanLog(args) => look::replan_log(context, args),
        Verb::Pause(args) => pause::run(context, args),
        Verb::Ask(args) => ask::run(context, args),
        Verb::Say(args) => say::run(context, args),
        Verb::Allow(args) => allow::run(context, args),
        Verb::Park(args) => park::run(context, args),
        Verb::Reopen(args) => reopen::run(context, args),
        Verb::Autopilot(args) => autopilot::run(context, args),
        Verb::Judge(args) => judge::run(context, args),
        Verb::Slash(args) => slash::run(context, args),
        Verb::Help => Ok(help::run(context)),
    }
}
