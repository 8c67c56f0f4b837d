//! `kapi sandbox shell` and `kapi sandbox exec`: programs of the person's in a sandbox.
//!
//! At a terminal the program gets one of its own. Otherwise its output is passed on line by line.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};

use kapi_launch::context::{LaunchHandlers, never_stopped};
use kapi_launch::enter;
use kapi_launch::enter::ProgramConsole;
use kapi_machine::watch::{Activity, unlimited};
use kapi_status::rules::mapping::Mapping;
use kapi_sys::process::OutputLine;

use super::super::launch::passed_on;
use super::grants;
use crate::context::Context;
use crate::driving;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subject::launches::LaunchArgs;

/// Options of `kapi sandbox shell`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ShellArgs {
    #[command(flatten)]
    meant: LaunchArgs,
}

/// Options of `kapi sandbox exec`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ExecArgs {
    #[command(flatten)]
    meant: LaunchArgs,
    /// The command, after '--'
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Opens a shell.
pub(crate) fn shell(context: &Context, args: &ShellArgs) -> Result<Exit, Error> {
    if !io::stdin().is_terminal() {
        return Err(Error::usage("a shell needs a terminal")
            .with_hint("run one command with `kapi sandbox exec <id> -- <command>`."));
    }
    attend(context, &args.meant, &[])
}

/// Runs a command.
pub(crate) fn exec(context: &Context, args: &ExecArgs) -> Result<Exit, Error> {
    attend(context, &args.meant, &args.command)
}

fn attend(context: &Context, meant: &LaunchArgs, command: &[OsString]) -> Result<Exit, Error> {
    let location = meant.find(context)?;
    let grants = grants(context)?;
    let interrupts = driving::interrupts()?;
    let ui = context.ui;
    let notice = |activity: Activity| {
        if let Activity::Note { text } = activity {
            ui.say(&format!("note: {text}"));
        }
    };
    let mapping = Mapping::built_in();
    let stage = LaunchHandlers {
        room: &unlimited,
        stopped: &never_stopped,
        clock: &context.clock,
        cancel: &interrupts.cancel(),
        notice: &notice,
        mapping: &mapping,
    };
    let mut pass_on = |line: OutputLine<'_>| match line {
        OutputLine::Stdout(bytes) => ui.raw(&[bytes, b"\n"].concat()),
        OutputLine::Stderr(bytes) => ui.say_page(&String::from_utf8_lossy(bytes)),
    };
    let attended = if io::stdin().is_terminal() && io::stdout().is_terminal() {
        ProgramConsole::Terminal
    } else {
        ProgramConsole::Lines(&mut pass_on)
    };
    enter::enter(&grants, &location, command, attended, &stage)
        .map(passed_on)
        .map_err(|error| Error::launch(&error))
}
