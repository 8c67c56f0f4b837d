//! The limits of a goal and what was used of them; raising them, or setting the number of turns.

use kapi_core::id::GoalId;
use kapi_goal::rules::budget::Budget;
use kapi_goal::rules::command::{GoalCommand, PersonCommand};
use kapi_goal::rules::contract::TURNS_MAX;
use kapi_goal::rules::state::Goal;
use serde::Serialize;

use crate::amount;
use crate::commands::budget::{OWNER, RaiseArgs, row};
use crate::commands::goal::pick;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;

/// The most turns that are set without being asked.
const TURNS_ASKED_ABOVE: u32 = 500;

#[derive(Debug, Serialize)]
struct GoalBudgetView {
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
pub(super) fn budget(context: &Context, id: &GoalId, raise: &RaiseArgs) -> Result<Exit, Error> {
    let (project, id) = context.find_sound_goal(&id.to_string(), OWNER)?;
    let failed = |error| Error::engine(&error, &id.to_string());
    let more = raise.of_goal()?;
    let goal = if raise.is_raise() {
        let command = GoalCommand::RaiseBudget(more);
        project
            .submit(&id, &context.actor, &command)
            .map_err(failed)?
            .goal
    } else {
        project.load(&id).map_err(failed)?
    };
    Ok(give(context, &goal, raise.is_raise()))
}

/// Shows the limits, and how to go on where they were changed.
pub(super) fn give(context: &Context, goal: &Goal, is_changed: bool) -> Exit {
    match context.ui.format {
        Format::Json => context.ui.json(&view(goal)),
        Format::Human => {
            for line in lines(goal) {
                context.ui.line(&line);
            }
            if is_changed && !goal.status.is_terminal() {
                context.ui.line(&format!(
                    "Resume it with `kapi resume {}`.",
                    goal.id.reference()
                ));
            }
        }
    }
    Exit::Success
}

/// Sets the turn budget to a number that may be far too large.
pub(crate) fn set_turns(
    context: &Context,
    reference: Option<&str>,
    turns: u64,
    yes: bool,
) -> Result<Goal, Error> {
    context.require_human("set the number of turns")?;
    let within = u32::try_from(turns)
        .ok()
        .filter(|turns| (1..=TURNS_MAX).contains(turns));
    let Some(turns) = within else {
        return Err(Error::usage(format!(
            "the turn budget must be 1 to {TURNS_MAX}"
        )));
    };
    let picked = pick::to_change(context, reference)?;
    if turns > TURNS_ASKED_ABOVE && !yes {
        let question = format!("{turns} turns may cost much time and money. Set them?");
        match context.ui.confirm(&question) {
            Some(true) => {}
            Some(false) => return Err(Error::new(Exit::Denied, "the turn limit was not changed")),
            None => {
                return Err(Error::new(
                    Exit::Denied,
                    format!(
                        "more than {TURNS_ASKED_ABOVE} turns need confirmation, and there is no \
                         terminal to ask on"
                    ),
                )
                .with_hint("add `--yes` to confirm."));
            }
        }
    }
    let command = GoalCommand::Person(PersonCommand::SetTurns { turns });
    picked.submit(context, &command)
}

fn view(goal: &Goal) -> GoalBudgetView {
    let Budget {
        turns,
        tokens,
        usd_micros,
        wall_ms,
    } = goal.budget;
    let total = goal.spent.total();
    GoalBudgetView {
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
    let budget = &goal.budget;
    vec![
        row(
            "turns",
            &goal.spent.turns.to_string(),
            Some(budget.turns.to_string()),
        ),
        row(
            "tokens",
            &amount::tokens(total.tokens()),
            budget.tokens.map(amount::tokens),
        ),
        row(
            "money",
            &amount::spent(&total),
            budget.usd_micros.map(amount::usd),
        ),
        row(
            "time",
            &amount::duration(goal.spent.wall_ms),
            budget.wall_ms.map(amount::duration),
        ),
    ]
}
