//! The command line of `kapi`: composes everything, runs one command, returns its exit code.
//!
//! The program is entered again inside sandboxes; those entries come first and read nothing.
//! A library, so that it is compiled once for the program and once for its own tests.

use std::ffi::OsString;
use std::panic::{self, PanicHookInfo};
use std::process::{self, ExitCode};

use clap::{CommandFactory as _, FromArgMatches as _, Parser as _};
use clap_complete::CompleteEnv;
use kapi_sys::process::environment;

use crate::args::{Args, Command, former, groups};
use crate::commands::{
    acp, agent, audit, budget, cancel, check, cleanup, clear, completion, dashboard, deliver, demo,
    diff, doctor, events, explain, gate as gate_command, goal, inbox, init, launch, log, loops,
    mcp, pause, prove, resume, rpc, run, sandbox, say, setup, show, spend, status, task, up, wait,
};
use crate::context::Context;
use crate::contract::flags;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::charset::Charset;
use crate::ui::screen::{LineStream, ScreenKind};
use crate::ui::{Format, OutputDisposition, Ui, harmless, pass_on};

mod amount;
mod args;
mod command_line;
mod commands;
mod config;
mod container;
mod context;
mod contract;
mod delivering;
mod delivery;
mod driving;
mod error;
mod event_words;
mod exit_code;
mod gate;
mod help;
mod hook;
mod inner;
mod kernel;
mod key_files;
mod live_view;
mod modes;
mod naming;
mod notification;
mod persons_program;
mod profile;
mod progress;
mod report;
mod subdirectory;
mod subject;
mod tool_service;
mod trust;
mod ui;
mod webhook;
mod workflow;

/// Does what the command line asks for and returns the exit code of the process.
#[must_use]
pub fn main() -> ExitCode {
    if let Some(code) = inner::enter() {
        return ExitCode::from(code);
    }
    // A defect has the same exit code whether or not the build unwinds.
    panic::set_hook(Box::new(|found| {
        report_defect(found);
        process::exit(Exit::Internal.code().into());
    }));
    CompleteEnv::with_factory(|| subject::completion::with_references(command_line()))
        .var(completion::VARIABLE)
        .complete();
    let parsed = groups::grouped()
        .try_get_matches()
        .and_then(|matches| Args::from_arg_matches(&matches));
    let args = match parsed {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    let format = if args.json {
        Format::Json
    } else {
        Format::Human
    };
    let exit = answer(format, |context| dispatch(context, &args.command));
    ExitCode::from(exit.code())
}

/// Does something that a person or a host asked for, tells them what went wrong, and returns how it ended.
fn answer(format: Format, act: impl FnOnce(&Context) -> Result<Exit, Error>) -> Exit {
    let ui = ui(format);
    let exit = Context::new(ui)
        .and_then(|context| act(&context))
        .unwrap_or_else(|error| announce(ui, &error));
    if ui.disposition() == OutputDisposition::Failed {
        ui.say("error: failed to write to standard output");
        return Exit::Failed;
    }
    exit
}

/// Returns the door to the terminal that this process was started at.
fn ui(format: Format) -> Ui {
    let env = environment();
    Ui {
        format,
        charset: Charset::of(&env),
        screen: ScreenKind::of(&env),
    }
}

/// Returns the command line with the options of every command, for those who describe it.
fn command_line() -> clap::Command {
    let mut command = Args::command();
    command.build();
    command
}

/// Runs another command line than the one of this process.
fn run_line<T: Into<OsString> + Clone>(
    context: &Context,
    words: impl IntoIterator<Item = T>,
) -> Result<Exit, Error> {
    let parsed = Args::try_parse_from(words)
        .map_err(|error| Error::new(Exit::Internal, error.to_string()))?;
    dispatch(context, &parsed.command)
}

/// Runs a command line that somebody else than a shell wrote.
fn run_typed<'a>(
    context: &Context,
    words: impl IntoIterator<Item = &'a str>,
) -> Result<Exit, Error> {
    dispatch(context, &parsed(words)?)
}

/// Reads the options of `kapi run` that somebody else than a shell wrote.
fn run_flags<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Box<flags::Args>, Error> {
    match parsed(["kapi", "run"].into_iter().chain(words))? {
        Command::Run(args) => Ok(args.into_inner()),
        _ => Err(Error::usage("these are not options of `kapi run`")),
    }
}

fn parsed<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Command, Error> {
    let parsed = Args::try_parse_from(words).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        Error::usage(first.strip_prefix("error: ").unwrap_or(first))
    })?;
    Ok(parsed.command)
}

/// Says what went wrong and what to do about it, and returns how it ended. With `--json` it is the
/// last document as well.
fn announce(ui: Ui, error: &Error) -> Exit {
    ui.say(&format!("error: {error}"));
    if let Some(hint) = &error.hint {
        ui.say(&format!("hint: {hint}"));
    }
    if ui.format == Format::Json {
        ui.json(&error.view());
    }
    error.exit
}

fn dispatch(context: &Context, command: &Command) -> Result<Exit, Error> {
    match command {
        Command::Run(args) if args.explain => explain::run::explain(context, args),
        Command::Run(args) => run::run(context, args),
        Command::Init(args) => init::run(context, args),
        Command::Demo(args) => demo::run(context, args),
        Command::Gate(args) => gate_command::run(context, args),
        Command::Goal(args) => goal::run(context, args),
        Command::Mode(command) => modes::command::run(context, command),
        Command::Inbox(args) => inbox::run(context, args),
        Command::Clear(args) => clear::run(context, args),
        Command::Status(args) => status::run(context, args),
        Command::Show(args) => show::run(context, args),
        Command::Log(args) => log::run(context, args),
        Command::Events(args) => events::run(context, args),
        Command::Loop(args) => loops::run(context, args),
        Command::Diff(args) => diff::run(context, args),
        Command::Wait(args) => wait::run(context, args),
        Command::Say(args) => say::run(context, args),
        Command::Pause(args) => pause::run(context, args),
        Command::Resume(args) => resume::run(context, args),
        Command::Task(args) => task::run(context, args),
        Command::Dashboard(args) => dashboard::run(context, args),
        Command::Up(args) => up::run(context, args),
        Command::Cancel(args) => cancel::run(context, args),
        Command::Budget(args) => budget::run(context, args),
        Command::Deliver(args) => deliver::run(context, args),
        Command::Spend(args) => spend::run(context, args),
        Command::Check(args) => check::run(context, args),
        Command::Prove(args) => prove::run(context, args),
        Command::Launch(args) if args.explain => explain::launch::explain(context, args),
        Command::Launch(args) => launch::run(context, args),
        Command::Sandbox(args) => sandbox::run(context, args),
        Command::Cleanup(args) => cleanup::run(context, args),
        Command::Agent(args) => agent::run(context, args),
        Command::Acp(args) => acp::run(context, args),
        Command::Mcp(args) => mcp::run(context, args),
        Command::Setup(args) => setup::run(context, args),
        Command::Rpc(args) => rpc::run(context, args),
        Command::Audit(args) => audit::run(context, args),
        Command::Doctor(args) => doctor::run(context, args),
        Command::Completion(args) => completion::run(context, args),
    }
}

/// Says what went wrong inside; everything that was accepted is on disk already.
fn report_defect(found: &PanicHookInfo<'_>) {
    live_view::terminal::restore();
    let location = found
        .location()
        .map(|location| format!(" at {location}"))
        .unwrap_or_default();
    let text = found.payload_as_str().unwrap_or("no reason was given");
    let text = harmless(&format!(
        "error: this is a bug in Kapi{location}: {text}\n\
         hint: please report it; nothing recorded is lost, and `kapi resume` continues the work.\n"
    ));
    // Past the live view, which may be what is broken.
    pass_on(LineStream::Error, &text);
}

/// Help and version are data; a wrong command line is talk and exits with 2.
fn usage(error: &clap::Error) -> ExitCode {
    let typed = command_line::typed();
    let ui = ui(format_of(&typed));
    if let Some(error) = former::now(&typed, error) {
        return ExitCode::from(announce(ui, &error).code());
    }
    if error.use_stderr() {
        let text = error.to_string();
        ui.say_page(text.trim_end());
        if ui.format == Format::Json {
            let first = text.lines().next().unwrap_or_default();
            let message = first.strip_prefix("error: ").unwrap_or(first);
            let hint = "`kapi --help` lists the commands, `kapi COMMAND --help` their options.";
            ui.json(&Error::usage(message).with_hint(hint).view());
        }
        ExitCode::from(Exit::Usage.code())
    } else {
        ui.raw(error.to_string().as_bytes());
        ExitCode::from(Exit::Success.code())
    }
}

/// Returns how results are written for a command line that could not be read as a whole.
fn format_of(typed: &[String]) -> Format {
    let mut options = typed.iter().take_while(|word| *word != "--");
    if options.any(|word| word == "--json") {
        Format::Json
    } else {
        Format::Human
    }
}
