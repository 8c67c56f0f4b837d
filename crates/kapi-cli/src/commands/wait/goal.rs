//! Waiting for a goal: until it has ended, or a person has to do something for it to go on.

use kapi_core::id::GoalId;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_wire::result::ResultView;

use crate::commands::wait::{OWNER, WaitSubject};
use crate::context::Context;
use crate::driving::exit_of;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::report;
use crate::ui::Format;

/// Waits for a goal.
pub(super) fn wait(context: &Context, id: &GoalId, timeout_ms: Option<u64>) -> Result<Exit, Error> {
    let project = context.project(&context.project_root()?, OWNER);
    let failed = |error| Error::engine(&error, &id.to_string());
    let waited = WaitSubject {
        reference: id.reference(),
        dir: project.layout.goal(id).dir().to_path_buf(),
        timeout_ms,
    };
    let mut is_first = true;
    let rested = waited.until(&mut || {
        let goal = project.load(id).map_err(failed)?;
        if rests(&goal) {
            return Ok(Some(goal));
        }
        if is_first && project.driver(id).map_err(failed)?.is_none() {
            context.ui.say(&format!(
                "note: nothing is driving goal {id}; start it with `kapi resume {}` or `kapi up`.",
                id.reference()
            ));
        }
        is_first = false;
        Ok(None)
    })?;
    let Some(goal) = rested else {
        return Ok(Exit::Interrupted);
    };
    match context.ui.format {
        Format::Json => context.ui.json(&ResultView::from(&goal)),
        Format::Human => report::outcome(context.ui, &goal, None),
    }
    Ok(exit_of(&goal))
}

/// Tells whether nothing more happens to it by itself.
fn rests(goal: &Goal) -> bool {
    match goal.status {
        GoalStatus::Setup | GoalStatus::Active => false,
        GoalStatus::Waiting => goal.waits_for_person(),
        GoalStatus::Done | GoalStatus::Unverified => !goal.is_driven(),
        GoalStatus::Proposed
        | GoalStatus::Blocked
        | GoalStatus::Stalled
        | GoalStatus::Paused
        | GoalStatus::Impossible
        | GoalStatus::Cancelled => true,
    }
}
