//! The command line as a whole: global options and one variant for each command.
//!
//! What a command's options mean stands in its own file.

pub(crate) mod former;

use clap::{Parser, Subcommand};

use crate::commands::{
    agent, audit, budget, cancel, check, cleanup, clear, completion, dashboard, demo, diff, doctor,
    goal, inbox, launch, log, loops, mcp, prove, resume, sandbox, show, spend, status, task, up,
    wait,
};
use crate::contract::flags;
use crate::modes::command;

/// Run coding agents unattended and get back commits that are proved, not promised
///
/// Exit codes: 0 done, 1 internal, 2 usage or configuration, 3 denied by a rule, 4 the world
/// failed, 5 ended without done, 6 not found, 7 busy, 130 interrupted.
#[derive(Debug, Parser)]
#[command(
    name = "kapi",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
pub(crate) struct Args {
    /// Print JSON on standard output: one document, or one event a line
    #[arg(long, global = true, display_order = 900)]
    pub(crate) json: bool,
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Take a task to a proved commit
    Run(Box<flags::Args>),
    /// Show the main job on a made-up repository, with a scripted agent and no keys
    Demo(demo::Args),
    /// Set goals up, approve them, steer them, and ask about them
    Goal(goal::Args),
    #[command(flatten)]
    Mode(command::Command),
    /// Show everything that waits for you, oldest first
    Inbox(inbox::Args),
    /// List goals and workflows, what waits, and what is not as it should be
    Status(status::Args),
    /// Detach this session from its workflow; nothing else changes
    Clear(clear::Args),
    /// Show one goal, workflow, task or launch in full
    Show(show::Args),
    /// Print what happened to it: events, or what its agent said
    Log(log::Args),
    /// Show what it changed
    Diff(diff::Args),
    /// Wait until it has ended or needs you, and exit as it did
    Wait(wait::Args),
    /// Let a goal go on
    Resume(resume::Args),
    /// Hand single tasks to agents, and see what becomes of them
    Task(task::Args),
    /// Show tasks, loops, lessons and settings of this project on one screen
    Dashboard(dashboard::Args),
    /// List loops, run them, and see what became of their runs
    Loop(loops::Args),
    /// Supervise this project: wake and drive goals, work on tasks, trigger loops
    Up(up::Args),
    /// End a goal, a workflow, a task or a launch for good
    Cancel(cancel::Args),
    /// Show what it may use and has used, or raise its limits
    Budget(budget::Args),
    /// Show where money and tokens went, and what today may still cost
    Spend(spend::Args),
    /// Run the project's own checks: typecheck, lint, format, compile, test, build
    Check(check::Args),
    /// Prove a change that anybody made: a commit, a branch or a range
    Prove(prove::Args),
    /// Run an agent once in a sandbox: no contract, no verdict
    Launch(Box<launch::Args>),
    /// List sandboxes, look into them, take their changes over or drop them
    Sandbox(sandbox::Args),
    /// Remove sandboxes that hold nothing any more
    Cleanup(cleanup::Args),
    /// Use the tools of an agent from a shell: one call, one line of JSON
    #[command(hide = true)]
    Agent(agent::Args),
    /// Serve the tools of an agent over the Model Context Protocol
    Mcp(mcp::Args),
    /// Check that logs are whole and unaltered
    Audit(audit::Args),
    /// Check what this machine can do, and say how to fix what it cannot
    Doctor(doctor::Args),
    /// Print a shell completion script
    Completion(completion::Args),
}

#[cfg(test)]
mod documents;
#[cfg(test)]
mod tests;
