//! Setting a goal up with the agent: it looks at the project and drafts, a person approves.
//!
//! The draft is the agent's wish and approves nothing; it is recorded with its hash and shown whole.

use kapi_core::id::GoalId;
use kapi_core::text::agent_name;
use kapi_goal::record::project::Project;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::event::GoalEvent;
use kapi_goal::rules::state::{Goal, GoalStatus};

use crate::commands::goal::pick::GoalChoice;
use crate::commands::goal::{approve, new, unfinished};
use crate::commands::run::DRAFTS_MAX;
use crate::context::Context;
use crate::contract::{self, ContractDraft, isolation, words};
use crate::driving::{self, WhenParked};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::naming;

/// Lets the agent draft the contract of a new goal, and asks for its approval.
pub(super) fn run(context: &Context, args: &new::Args) -> Result<Exit, Error> {
    for _ in 0..DRAFTS_MAX {
        let draft = contract::draft_for_agent(context, &args.run)?;
        let project = context.project(&draft.root, "kapi goal new");
        let choice = unfinished::choose(context, &project, args.wish())?;
        context.ui.say(&format!(
            "{} is drafting the contract; it can read the project but change nothing.",
            agent_name(&draft.contract.agent)
        ));
        for note in &draft.notes {
            context.ui.say(&format!("note: {note}"));
        }
        let interrupts = driving::interrupts()?;
        let Some(id) = begin(context, &project, &draft)? else {
            continue;
        };
        let begun = project
            .log(&id)
            .map_err(|error| Error::engine(&error, &id.to_string()))?;
        let run = driving::GoalRun {
            project: &project,
            id: &id,
            config: &draft.config,
        };
        let goal = driving::drive_unreported(context, &run, begun, &interrupts, WhenParked::Stay)?;
        if goal.status != GoalStatus::Proposed {
            // The preference has approved it on the way.
            if goal.approval.is_some() {
                unfinished::carry_out(context, &project, &choice, &id)?;
            }
            return Ok(driving::settle(
                context,
                project.layout.root(),
                &goal,
                &interrupts,
            ));
        }
        let picked = GoalChoice {
            project: project.clone(),
            id: id.clone(),
            goal,
        };
        let Some(begun) = approved(context, args, &draft, &picked)? else {
            return Ok(new::waits(context, &picked.goal, &choice));
        };
        unfinished::carry_out(context, &project, &choice, &id)?;
        if args.no_run {
            return Ok(new::rests(context, &new::load(&project, &id)?));
        }
        let when_parked = WhenParked::asked(args.run.park);
        return driving::drive_and(context, &run, begun, &interrupts, when_parked);
    }
    Err(Error::new(Exit::Busy, "other runs keep taking this branch").with_hint("reword the task."))
}

/// Begins the setup, unless another run took the branch since.
fn begin(
    context: &Context,
    project: &Project<'_>,
    draft: &ContractDraft,
) -> Result<Option<GoalId>, Error> {
    let _held = naming::hold(project)?;
    let reserved = naming::reserved(project)?;
    if !naming::is_free(&draft.contract.branch, &draft.survey, &reserved)? {
        return Ok(None);
    }
    project
        .begin_setup(&context.actor, &draft.slug, &draft.contract)
        .map(Some)
        .map_err(|error| Error::engine(&error, ""))
}

/// Shows the draft and asks for its approval; what a person turns down ends there.
fn approved(
    context: &Context,
    args: &new::Args,
    draft: &ContractDraft,
    picked: &GoalChoice<'_>,
) -> Result<Option<Vec<kapi_machine::logged::EventRecord<GoalEvent>>>, Error> {
    let goal: &Goal = &picked.goal;
    let notes = isolation::isolation_note(&goal.contract);
    words::show_whole(context, &goal.contract, &notes);
    let means = match new::means(context, &picked.project, args.run.yes) {
        Ok(Some(means)) => means,
        Ok(None) => return Ok(None),
        Err(error) => {
            if error.exit == Exit::Denied {
                let reason = Some("the contract was rejected".to_owned());
                picked.submit(context, &GoalCommand::Cancel { reason })?;
            }
            return Err(error);
        }
    };
    approve::record(context, &draft.config, picked, means).map(Some)
}
