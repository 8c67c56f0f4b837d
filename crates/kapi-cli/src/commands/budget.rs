//! `kapi budget`: raise a goal's limits. Raising does not start it.

use kapi_core::goal::budget::{Budget, Raise};
use kapi_core::goal::command::Command;
use kapi_core::goal::state::Goal;
use serde::Serialize;

use crate::amount;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;

/// Options of `kapi budget`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The goal: its index, its slug, or both
    reference: String,
    /// Turns to add (+10)
    #[arg(long, value_name = "+N", value_parser = amount::parse_count, allow_hyphen_values = true)]
    turns: Option<u64>,
    /// Tokens to add (+500k)
    #[arg(long, value_name = "+N", value_parser = amount::parse_count, allow_hyphen_values = true)]
    tokens: Option<u64>,
    /// US dollars to add (+2.50)
    #[arg(long, value_name = "+USD", value_parser = amount::parse_usd_micros, allow_hyphen_values = true)]
    usd: Option<u64>,
    /// Time to add (+1h)
    #[arg(long, value_name = "+TIME", value_parser = amount::parse_duration_ms, allow_hyphen_values = true)]
    wall: Option<u64>,
}

#[derive(Debug, Serialize)]
struct View {
    id: String,
    budget: Limits,
    spent: Limits,
}

#[derive(Debug, Serialize)]
struct Limits {
    turns: u32,
    tokens: Option<u64>,
    usd_micros: Option<u64>,
    wall_ms: Option<u64>,
}

/// Raises the limits, or shows them when nothing is raised.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let (project, id) = context.find_sound_goal(&args.reference, "kapi budget")?;
    let failed = |error| Error::engine(&error, &id.to_string());
    let raise = Raise {
        turns: u32::try_from(args.turns.unwrap_or(0))
            .map_err(|_| Error::usage("--turns is larger than any turn budget"))?,
        tokens: args.tokens.unwrap_or(0),
        usd_micros: args.usd.unwrap_or(0),
        wall_ms: args.wall.unwrap_or(0),
    };
    let is_raise =
        args.turns.is_some() || args.tokens.is_some() || args.usd.is_some() || args.wall.is_some();
    let goal = if is_raise {
        let command = Command::RaiseBudget(raise);
        project
            .submit(&id, &context.actor, &command)
            .map_err(failed)?
            .goal
    } else {
        project.load(&id).map_err(failed)?
    };
    match context.ui.format {
        Format::Json => context.ui.json(&view(&goal)),
        Format::Human => {
            for line in lines(&goal) {
                context.ui.line(&line);
            }
            if is_raise && !goal.status.is_terminal() {
                context
                    .ui
                    .line(&format!("Go on with `kapi resume {:03}`.", id.index()));
            }
        }
    }
    Ok(Exit::Success)
}

fn view(goal: &Goal) -> View {
    let Budget {
        turns,
        tokens,
        usd_micros,
        wall_ms,
    } = goal.budget;
    let total = goal.spent.total();
    View {
        id: goal.id.to_string(),
        budget: Limits {
            turns,
            tokens,
            usd_micros,
            wall_ms,
        },
        spent: Limits {
            turns: goal.spent.turns,
            tokens: Some(total.tokens()),
            usd_micros: total.usd_micros,
            wall_ms: Some(goal.spent.wall_ms),
        },
    }
}

/// Returns what was spent of each limit, one a line.
pub(crate) fn lines(goal: &Goal) -> Vec<String> {
    let total = goal.spent.total();
    let row = |name: &str, spent: String, limit: Option<String>| {
        format!(
            "{name:<8} {spent} of {}",
            limit.unwrap_or_else(|| "no limit".to_owned())
        )
    };
    let budget = &goal.budget;
    vec![
        row(
            "turns",
            goal.spent.turns.to_string(),
            Some(budget.turns.to_string()),
        ),
        row(
            "tokens",
            amount::tokens(total.tokens()),
            budget.tokens.map(amount::tokens),
        ),
        row(
            "money",
            total
                .usd_micros
                .map_or_else(|| "unknown".to_owned(), amount::usd),
            budget.usd_micros.map(amount::usd),
        ),
        row(
            "time",
            amount::duration(goal.spent.wall_ms),
            budget.wall_ms.map(amount::duration),
        ),
    ]
}
