//! `kapi goal`: goals as pi-until-done has them, one verb for each of its subcommands and more.
//!
//! Which goal a verb is about is decided once, in `pick`; what it may do is the core's affair.

mod allow;
pub(crate) mod answer;
mod approve;
mod ask;
pub(crate) mod autopilot;
pub(crate) mod detail;
mod help;
pub(crate) mod judge;
pub(crate) mod look;
mod new;
mod park;
pub(crate) mod pause;
pub(crate) mod pick;
mod reject;
pub(crate) mod reopen;
pub(crate) mod resume;
pub(crate) mod say;
mod slash;
mod status;
mod unfinished;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Options of `kapi goal`.
#[derive(Debug, clap::Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Args {
    /// The command
    #[command(subcommand)]
    verb: GoalVerb,
}

#[derive(Debug, clap::Subcommand)]
enum GoalVerb {
    /// Create a goal from options, a file or an agent's draft
    New(Box<new::Args>),
    /// Approve a proposed contract and start the goal
    Approve(approve::Args),
    /// Reject a proposed contract
    Reject(reject::Args),
    /// Print the task list as YAML
    Tasks(pick::Args),
    /// Print the path of tasks.yaml
    Plan(pick::Args),
    /// Show the approved contract
    Northstar(pick::Args),
    /// Show every change of plan with its reason
    ReplanLog(pick::Args),
    /// Ask a question without disturbing the goal
    Ask(ask::Args),
    /// Approve a request of the agent
    Allow(allow::Args),
    /// Park the goal until a condition holds
    Park(Box<park::Args>),
    /// Reject a finished result and continue the goal
    Reopen(reopen::Args),
    /// Turn automatic approval of new goals on or off
    Autopilot(autopilot::Args),
    /// Show or set the judge
    Judge(judge::Args),
    /// Run an /until-done command line
    Slash(slash::Args),
    /// List the subcommands of /until-done
    Help,
}

/// Carries out one verb.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    match &args.verb {
        GoalVerb::New(args) => new::run(context, args),
        GoalVerb::Approve(args) => approve::run(context, args),
        GoalVerb::Reject(args) => reject::run(context, args),
        GoalVerb::Tasks(args) => look::tasks(context, args),
        GoalVerb::Plan(args) => look::plan(context, args),
        GoalVerb::Northstar(args) => look::northstar(context, args),
        GoalVerb::ReplanLog(args) => look::replan_log(context, args),
        GoalVerb::Ask(args) => ask::run(context, args),
        GoalVerb::Allow(args) => allow::run(context, args),
        GoalVerb::Park(args) => park::run(context, args),
        GoalVerb::Reopen(args) => reopen::run(context, args),
        GoalVerb::Autopilot(args) => autopilot::run(context, args),
        GoalVerb::Judge(args) => judge::run(context, args),
        GoalVerb::Slash(args) => slash::run(context, args),
        GoalVerb::Help => Ok(help::run(context)),
    }
}
