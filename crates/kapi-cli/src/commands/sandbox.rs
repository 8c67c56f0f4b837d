//! `kapi sandbox`: what there is, what is in it, taking it over, dropping it, going into it.
//!
//! Finds the sandbox that is meant; each subcommand is in a file of its own.

mod discard;
mod enter;
pub(crate) mod image;
pub(crate) mod list;
mod merge;
mod profile;

use kapi_run::host_grants::HostGrants;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Options of `kapi sandbox`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// The command
    #[command(subcommand)]
    command: SandboxCommand,
}

#[derive(Debug, Clone, clap::Subcommand)]
enum SandboxCommand {
    /// List the sandboxes of all projects
    List(list::Args),
    /// Open a shell in a sandbox
    Shell(enter::ShellArgs),
    /// Run a command in a sandbox
    Exec(enter::ExecArgs),
    /// Merge a sandbox's changes into its project
    Merge(merge::Args),
    /// Remove a sandbox and everything in it
    Discard(discard::Args),
    /// Build the image for '--sandbox podman'
    Image(image::Args),
    /// Show a launch profile, or list all profiles
    Profile(profile::Args),
}

/// Does what the subcommand says.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    if !matches!(args.command, SandboxCommand::Profile(_)) {
        context.require_human("access sandboxes from outside")?;
    }
    match &args.command {
        SandboxCommand::List(args) => list::run(context, args),
        SandboxCommand::Shell(args) => enter::shell(context, args),
        SandboxCommand::Exec(args) => enter::exec(context, args),
        SandboxCommand::Merge(args) => merge::run(context, args),
        SandboxCommand::Discard(args) => discard::run(context, args),
        SandboxCommand::Image(args) => image::run(context, args),
        SandboxCommand::Profile(args) => profile::run(context, args),
    }
}

/// Returns what programs in sandboxes may use: the person's word.
pub(crate) fn grants(context: &Context) -> Result<HostGrants, Error> {
    Ok(context.grants(&context.config(None)?))
}
