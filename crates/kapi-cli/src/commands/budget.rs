//! `kapi budget`: what a goal, a workflow, a task or a launch may use and has used; raising it.
//!
//! Finds what is meant. Raising does not start anything.

pub(crate) mod goal;
pub(crate) mod launch;
mod task;
mod workflow;

use kapi_goal::rules::budget::Raise;

use crate::amount;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subject::{Meaning, Silence, SubjectArgs};

/// What other processes are told about who holds a lock.
const OWNER: &str = "kapi budget";

/// Options of `kapi budget`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    subject: SubjectArgs,
    #[command(flatten)]
    raise: RaiseArgs,
    /// Set the total number of turns, including turns already taken
    #[arg(long, value_name = "N", conflicts_with = "turns")]
    set_turns: Option<u64>,
    /// Skip the confirmation of a very high number of turns
    #[arg(short, long, requires = "set_turns")]
    yes: bool,
}

/// What is added to limits.
#[derive(Debug, Default, clap::Args)]
#[group(skip)]
pub(crate) struct RaiseArgs {
    /// Turns to add, such as +10
    #[arg(long, value_name = "+N", value_parser = amount::parse_count, allow_hyphen_values = true)]
    turns: Option<u64>,
    /// Tokens to add, such as +500k
    #[arg(long, value_name = "+N", value_parser = amount::parse_count, allow_hyphen_values = true)]
    tokens: Option<u64>,
    /// US dollars to add, such as +2.50
    #[arg(long, value_name = "+USD", value_parser = amount::parse_usd_micros, allow_hyphen_values = true)]
    usd: Option<u64>,
    /// Wall-clock time to add, such as +1h
    #[arg(long, value_name = "+TIME", value_parser = amount::parse_duration_ms, allow_hyphen_values = true)]
    wall: Option<u64>,
}

impl RaiseArgs {
    /// Tells whether anything is added.
    pub(crate) const fn is_raise(&self) -> bool {
        self.turns.is_some() || self.tokens.is_some() || self.usd.is_some() || self.wall.is_some()
    }

    /// Returns what is added to the limits of a goal.
    pub(crate) fn of_goal(&self) -> Result<Raise, Error> {
        Ok(Raise {
            turns: u32::try_from(self.turns.unwrap_or(0))
                .map_err(|_| Error::usage("--turns is larger than the maximum"))?,
            tokens: self.tokens.unwrap_or(0),
            usd_micros: self.usd.unwrap_or(0),
            wall_ms: self.wall.unwrap_or(0),
        })
    }
}

/// Raises the limits, or shows them when nothing is raised.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let context = &args.subject.context(context)?;
    let changes = args.raise.is_raise() || args.set_turns.is_some();
    let silence = if changes {
        Silence::UnderWay
    } else {
        Silence::Latest
    };
    match args.subject.find(context, silence)? {
        Meaning::Goal(id) => match args.set_turns {
            Some(turns) => {
                let goal = goal::set_turns(context, Some(&id.to_string()), turns, args.yes)?;
                Ok(goal::give(context, &goal, changes))
            }
            None => goal::budget(context, &id, &args.raise),
        },
        Meaning::Workflow(_) | Meaning::Task(_) | Meaning::Launch(_)
            if args.set_turns.is_some() || args.raise.turns.is_some() =>
        {
            Err(Error::usage("only a goal has a turn limit"))
        }
        Meaning::Workflow(key) => workflow::budget(context, key, &args.raise),
        Meaning::Task(id) if changes => Err(Error::new(
            Exit::Denied,
            format!("the limits of {id} cannot change after it was submitted"),
        )
        .with_hint("submit it again with other limits; see `kapi task run --help`.")),
        Meaning::Task(id) => task::budget(context, id),
        Meaning::Launch(location) if changes => launch::raise(context, &location, &args.raise),
        Meaning::Launch(location) => launch::budget(context, &location),
    }
}

/// Returns what was spent of a limit, in a line.
fn row(name: &str, spent: &str, limit: Option<String>) -> String {
    let limit = limit.unwrap_or_else(|| "no limit".to_owned());
    format!("{name:<8} {spent} of {limit}")
}
