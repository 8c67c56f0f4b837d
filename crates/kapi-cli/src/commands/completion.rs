//! `kapi completion`: a completion script for a shell.
//!
//! The script asks `kapi` itself at each completion, so that it knows the references of the project.

use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// The variable by which a shell asks for completions.
pub(crate) const VARIABLE: &str = "KAPI_COMPLETE";

/// Options of `kapi completion`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let name = args.shell.to_string();
    let shells = Shells::builtins();
    let completer = shells
        .completer(&name)
        .ok_or_else(|| Error::usage(format!("there is no completion for {name}")))?;
    let mut script = Vec::new();
    completer
        .write_registration(VARIABLE, "kapi", "kapi", "kapi", &mut script)
        .map_err(|error| Error::failed(&error))?;
    context.ui.raw(&script);
    Ok(Exit::Success)
}
