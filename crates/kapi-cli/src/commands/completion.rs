//! `kapi completion`: a completion script for a shell.

use clap_complete::Shell;

use crate::command_line;
use crate::context::Context;
use crate::exit_code::Exit;

/// Options of `kapi completion`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(context: &Context, args: &Args) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command_line(), "kapi", &mut script);
    context.ui.raw(&script);
    Exit::Success
}
