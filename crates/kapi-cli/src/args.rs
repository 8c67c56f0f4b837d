//! The command line as a whole: global options and one variant for each command.
//!
//! What a command's options mean stands in its own file.

use clap::{Parser, Subcommand};

use crate::commands::{
    audit, budget, cancel, cleanup, completion, demo, diff, doctor, explain, image, launch, log,
    resume, run, sandbox, show, status,
};

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
    Run(Box<run::Args>),
    /// Show the main job on a made-up repository, with a scripted agent and no keys
    Demo(demo::Args),
    /// List the goals of this project
    Status(status::Args),
    /// Show one goal: contract, evidence, spend
    Show(show::Args),
    /// Print a goal's events
    Log(log::Args),
    /// Show what a goal changed
    Diff(diff::Args),
    /// Let a goal go on
    Resume(resume::Args),
    /// Stop a goal for good
    Cancel(cancel::Args),
    /// Raise a goal's limits
    Budget(budget::Args),
    /// Run an agent once in a sandbox: no contract, no verdict
    Launch(Box<launch::Args>),
    /// List sandboxes, look into them, take their changes over or drop them
    Sandbox(sandbox::Args),
    /// Remove sandboxes that hold nothing any more
    Cleanup(cleanup::Args),
    /// Build the image that `--sandbox podman` needs
    Image(image::Args),
    /// Check that logs are whole and unaltered
    Audit(audit::Args),
    /// Tell what this machine can do, and how to mend what it cannot
    Doctor(doctor::Args),
    /// Tell what would hold and where each value was said; nothing is started
    Explain(explain::Args),
    /// Print a shell completion script
    Completion(completion::Args),
}
