//! `kapi goal slash`: one line as it is typed behind `/until-done`, carried out.
//!
//! What the line means is decided in the core, by the specification's rules; each meaning is one of
//! the verbs beside this file.

use kapi_core::text::counted;
use kapi_goal::rules::slash::{Slash, SlashJudgeForm, parse, parse_arguments};

use crate::commands::goal::{
    answer, approve, ask, autopilot, detail, help, judge, look, new, pause, pick, resume, status,
};
use crate::commands::{budget, cancel};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Options of `kapi goal slash`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The command line, with or without '/until-done'
    #[arg(value_name = "LINE", allow_hyphen_values = true)]
    line: String,
}

/// Carries out a line.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let slash = parse(&args.line).unwrap_or_else(|| parse_arguments(&args.line));
    let only = pick::Args { reference: None };
    match slash {
        Slash::Help => Ok(help::run(context)),
        Slash::Status => status::run(context),
        Slash::Detail => detail::run(context, &only),
        Slash::Tasks => look::tasks(context, &only),
        Slash::Plan => look::plan(context, &only),
        Slash::Northstar => look::northstar(context, &only),
        Slash::ReplanLog => look::replan_log(context, &only),
        Slash::Pause => pause::pause(context, None),
        Slash::Resume => resume::run(context),
        Slash::Cancel => end(context),
        Slash::Approve => approve::run(context, &arguments(&[])?),
        Slash::Autopilot => autopilot::set(context, None),
        Slash::Budget { turns } => set_turns(context, turns),
        Slash::Ask { question } => ask::put(context, None, &question),
        Slash::Judge(SlashJudgeForm::Show) => judge::show(context),
        Slash::Judge(SlashJudgeForm::Same) => judge::set(context, Some("same")),
        Slash::Judge(SlashJudgeForm::Clear) => judge::set(context, None),
        Slash::Judge(SlashJudgeForm::Model { provider, model }) => {
            judge::set(context, Some(&format!("{provider}/{model}")))
        }
        Slash::Judge(SlashJudgeForm::Malformed(text)) => {
            Err(Error::usage(format!("{text:?} is not a judge"))
                .with_hint("use `provider/model`, `same` or `clear`; nothing was changed."))
        }
        Slash::Intent(intent) => {
            let args: new::Args = arguments(&["--", &intent])?;
            new::run(context, &args)
        }
    }
}

/// Ends the goal; a person at a terminal is asked once more.
fn end(context: &Context) -> Result<Exit, Error> {
    context.require_human("cancel a goal")?;
    let picked = pick::to_change(context, None)?;
    let question = format!("Cancel goal {} for good?", picked.id);
    if context.ui.confirm(&question) == Some(false) {
        return Err(Error::new(Exit::Denied, "the goal was not cancelled"));
    }
    let goal = cancel::goal::end(context, &picked.project, &picked.id, None)?;
    Ok(answer::give(context, &goal, &cancel::goal::lines(&goal)))
}

/// Sets the number of turns.
fn set_turns(context: &Context, turns: u64) -> Result<Exit, Error> {
    let goal = budget::goal::set_turns(context, None, turns, false)?;
    let line = format!(
        "Goal {} may take {}; it has taken {}.",
        goal.id,
        counted(turns, "turn"),
        goal.spent.turns
    );
    Ok(answer::give(context, &goal, &[line]))
}

/// Returns the options of a verb as they are when these words are typed behind it.
fn arguments<T: clap::Args>(words: &[&str]) -> Result<T, Error> {
    let command = T::augment_args(clap::Command::new("kapi").no_binary_name(true));
    command
        .try_get_matches_from(words)
        .and_then(|matches| T::from_arg_matches(&matches))
        .map_err(|error| Error::usage(error.to_string()))
}
