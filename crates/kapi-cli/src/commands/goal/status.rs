//! `/until-done status`: where goals stand, a line each. Where none is unfinished, the last that
//! ended.

use kapi_goal::rules::state::Goal;
use serde::Serialize;

use crate::commands::goal::{answer, pick};
use crate::context::Context;
use crate::error::{Error, optional};
use crate::exit_code::Exit;
use crate::ui::Format;

#[derive(Debug, Serialize)]
struct GoalStatusView<'a> {
    goals: Vec<answer::GoalAnswerView<'a>>,
    /// The last that ended, where none is unfinished.
    ended: Vec<answer::GoalAnswerView<'a>>,
}

/// Goals that have ended and are shown where none is unfinished.
const ENDED_MAX: usize = 10;

/// Shows where every unfinished goal stands.
pub(super) fn run(context: &Context) -> Result<Exit, Error> {
    let (goals, ended) = match optional(context.project_root())? {
        Some(root) => {
            let project = context.project(&root, pick::OWNER);
            let ids = pick::state_so(&project, &|status| !status.is_terminal())?;
            let mut ended = Vec::new();
            if ids.is_empty() {
                ended = pick::state_so(&project, &|status| status.is_terminal())?;
                ended.drain(..ended.len().saturating_sub(ENDED_MAX));
            }
            let goals = pick::load_all(&project, &ids)?;
            (goals, pick::load_all(&project, &ended)?)
        }
        None => (Vec::new(), Vec::new()),
    };
    match context.ui.format {
        Format::Json => context.ui.json(&GoalStatusView {
            goals: goals.iter().map(answer::GoalAnswerView::of).collect(),
            ended: ended.iter().map(answer::GoalAnswerView::of).collect(),
        }),
        Format::Human if goals.is_empty() => {
            context
                .ui
                .line("No active goal. Start one with `kapi goal new \"<intent>\"`.");
            for goal in &ended {
                context.ui.line(&answer::line(goal));
            }
        }
        Format::Human => {
            for goal in &goals {
                context.ui.line(&answer::line(goal));
            }
        }
    }
    Ok(Exit::Success)
}

/// Lists the goals that could be meant by somebody who named none.
pub(super) fn which(context: &Context, goals: &[Goal]) -> Exit {
    match context.ui.format {
        Format::Json => context.ui.json(&GoalStatusView {
            goals: goals.iter().map(answer::GoalAnswerView::of).collect(),
            ended: Vec::new(),
        }),
        Format::Human => {
            for goal in goals {
                context.ui.line(&answer::line(goal));
            }
            context
                .ui
                .say("note: several goals match; name one for details.");
        }
    }
    Exit::Success
}
