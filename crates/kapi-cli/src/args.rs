//! The command line as a whole: global options and one variant for each command.
//!
//! What a command's options mean stands in its own file.

pub(crate) mod deferred;
pub(crate) mod former;
pub(crate) mod groups;

use clap::{Parser, Subcommand};

use self::deferred::DeferredArgs;
use crate::commands::{
    acp, agent, audit, budget, cancel, check, cleanup, clear, completion, dashboard, deliver, demo,
    diff, doctor, events, gate, goal, inbox, init, launch, log, loops, mcp, pause, prove, resume,
    rpc, sandbox, say, setup, show, spend, status, task, up, wait,
};
use crate::contract::flags;
use crate::modes::command;

/// Run coding agents unattended and get back proved commits
///
/// Exit codes: 0 done, 1 internal error, 2 usage or configuration error, 3 denied by a rule, 4
/// environment failure, 5 ended without success, 6 not found, 7 busy, 130 interrupted.
#[derive(Debug, Parser)]
#[command(
    name = "kapi",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
pub(crate) struct Args {
    /// Print JSON to standard output
    #[arg(long, global = true, display_order = 900)]
    pub(crate) json: bool,
    /// The command
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an agent on a task until the result is proved
    Run(DeferredArgs<Box<flags::Args>>),
    /// Set Kapi up: find agents, try them, write a configuration
    Init(DeferredArgs<init::Args>),
    /// Try Kapi on a sample repository, with no API keys
    Demo(DeferredArgs<demo::Args>),
    /// Draft, approve and steer goals
    Goal(DeferredArgs<goal::Args>),
    /// Hold your own agent sessions until the checks pass
    Gate(DeferredArgs<gate::Args>),
    #[command(flatten)]
    Mode(command::ModeVerb),
    /// Show everything that is waiting for you
    Inbox(DeferredArgs<inbox::Args>),
    /// List goals, workflows and launches with their status
    Status(DeferredArgs<status::Args>),
    /// Detach this terminal session from its workflow
    Clear(DeferredArgs<clear::Args>),
    /// Show a goal, workflow, task or launch in detail
    Show(DeferredArgs<show::Args>),
    /// Print events, or an agent's transcript
    Log(DeferredArgs<log::Args>),
    /// Print everything that happens in the project
    Events(DeferredArgs<events::Args>),
    /// Show changed files and lines
    Diff(DeferredArgs<diff::Args>),
    /// Wait until work ends or needs you
    Wait(DeferredArgs<wait::Args>),
    /// Send an agent at work a message, interrupting its turn
    Say(DeferredArgs<say::Args>),
    /// Pause a goal, workflow or launch
    Pause(DeferredArgs<pause::Args>),
    /// Resume a goal or a launch
    Resume(DeferredArgs<resume::Args>),
    /// Run single tasks and manage the task queue
    Task(DeferredArgs<task::Args>),
    /// Watch everything alive in the project on one screen
    Dashboard(DeferredArgs<dashboard::Args>),
    /// Run, schedule and inspect recurring work
    Loop(DeferredArgs<loops::Args>),
    /// Keep goals, tasks and loops running in this project
    Up(DeferredArgs<up::Args>),
    /// Cancel a goal, workflow, task or launch for good
    Cancel(DeferredArgs<cancel::Args>),
    /// Show limits and usage, or raise the limits
    Budget(DeferredArgs<budget::Args>),
    /// Push a finished result, and open a pull request
    Deliver(DeferredArgs<deliver::Args>),
    /// Show spending, and how much of today's caps is left
    Spend(DeferredArgs<spend::Args>),
    /// Run the project's linters, type checks, tests and builds
    Check(DeferredArgs<check::Args>),
    /// Verify a commit, branch or range, whoever wrote it
    Prove(DeferredArgs<prove::Args>),
    /// Run an agent once in a sandbox, without verification
    Launch(DeferredArgs<Box<launch::Args>>),
    /// List, enter, merge and discard sandboxes
    Sandbox(DeferredArgs<sandbox::Args>),
    /// Remove sandboxes that are no longer needed
    Cleanup(DeferredArgs<cleanup::Args>),
    /// Call an agent's tools from a shell
    #[command(hide = true)]
    Agent(DeferredArgs<agent::Args>),
    /// Serve goals to editors over the Agent Client Protocol
    Acp(DeferredArgs<acp::Args>),
    /// Serve Kapi's tools to agents over MCP
    Mcp(DeferredArgs<mcp::Args>),
    /// Add Kapi to another agent or editor, or remove it
    Setup(DeferredArgs<setup::Args>),
    /// Serve a session's goal to its host as JSON lines
    #[command(hide = true)]
    Rpc(DeferredArgs<rpc::Args>),
    /// Check logs for damage and tampering
    Audit(DeferredArgs<audit::Args>),
    /// Diagnose problems with this machine's setup
    Doctor(DeferredArgs<doctor::Args>),
    /// Generate a shell completion script
    Completion(DeferredArgs<completion::Args>),
}

#[cfg(test)]
mod documents;
#[cfg(test)]
mod schemas;
#[cfg(test)]
mod tests;
