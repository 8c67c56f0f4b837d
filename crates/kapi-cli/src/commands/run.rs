//! `kapi run`: from a task to a proved commit, or an honest account of why not.
//!
//! Draws up the contract, shows it, has it approved, and drives the goal to its end.

use kapi_core::id::GoalId;
use kapi_goal::record::project::Project;

use crate::commands::init;
use crate::context::Context;
use crate::contract::flags::Args;
use crate::contract::{self, approval, words};
use crate::driving::WhenParked;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::{driving, naming};

pub(crate) mod race;

/// How often a contract is drawn up again because another run took its branch.
pub(crate) const DRAFTS_MAX: u32 = 10;

/// Runs a task.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("start a goal")?;
    let context = &context.with_notify(&args.notify);
    init::offer(context, args)?;
    args.race.check_delivery(&args.deliver)?;
    if args.race.is_race() {
        return race::run(context, args);
    }
    for _ in 0..DRAFTS_MAX {
        let draft = contract::draft(context, args)?;
        words::show(context, &draft.contract, &draft.notes);
        let project = context.project(&draft.root, "kapi run");
        let means = match approval::in_advance(context, &project, args.yes)? {
            Some(means) => means,
            None => driving::approval(context, &draft.contract, false)?,
        };
        let interrupts = driving::interrupts()?;
        let Some(id) = create(context, &project, &draft)? else {
            let branch = &draft.contract.branch;
            context.ui.say(&format!(
                "note: another run has just taken {branch}; trying again."
            ));
            continue;
        };
        approval::approve(context, &project, &id, &draft.contract, means)?;
        let begun = project
            .log(&id)
            .map_err(|error| Error::engine(&error, &id.to_string()))?;
        let run = driving::GoalRun {
            project: &project,
            id: &id,
            config: &draft.config,
        };
        let when_parked = WhenParked::asked(args.park);
        return driving::drive_and(context, &run, begun, &interrupts, when_parked);
    }
    Err(Error::new(Exit::Busy, "other runs keep taking this branch").with_hint("reword the task."))
}

/// Creates the goal, unless another run took its branch since the contract was drawn up.
pub(crate) fn create(
    context: &Context,
    project: &Project<'_>,
    draft: &contract::ContractDraft,
) -> Result<Option<GoalId>, Error> {
    let _held = naming::hold(project)?;
    if !naming::is_free(
        &draft.contract.branch,
        &draft.survey,
        &naming::reserved(project)?,
    )? {
        return Ok(None);
    }
    project
        .create_goal(&context.actor, &draft.slug, &draft.contract)
        .map(Some)
        .map_err(|error| Error::engine(&error, ""))
}
