//! Telling the agents of a workflow something: those that work on its goals. Whoever is only asked a
//! question for it hears nothing.

use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::rules::state::Goal;

use crate::commands::goal::say as goal;
use crate::commands::say::OWNER;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;
use crate::workflow::located::LocatedWorkflow;
use crate::workflow::report;

/// Says something to the agents that work on the goals of a workflow.
pub(super) fn say(context: &Context, key: WorkflowKey, text: &str) -> Result<Exit, Error> {
    let project = context.project(&context.project_root()?, OWNER);
    context.require_own_state(project.layout.root())?;
    let found = LocatedWorkflow::load(project, key)?;
    let hears = |goal: &Goal| !goal.status.is_terminal() && goal.approval.is_some();
    let mut told = Vec::new();
    for id in found.workflow.goals() {
        // What cannot be read is reported by whoever drives it.
        let goal = found.project.load(&id).ok();
        if goal.is_some_and(|goal| hears(&goal)) {
            told.push(goal::tell(context, &id, text)?);
        }
    }
    if told.is_empty() {
        return Err(unheard(&found));
    }
    match context.ui.format {
        Format::Json => {
            report::outcome(context.ui, &found.dir(), &found.workflow);
        }
        Format::Human => {
            for goal in told {
                context.ui.line(&format!(
                    "The agent of goal {} gets the message at the start of its next turn.",
                    goal.id
                ));
            }
        }
    }
    Ok(Exit::Success)
}

fn unheard(found: &LocatedWorkflow<'_>) -> Error {
    let (id, mode) = (&found.workflow.id, found.key.mode);
    let text = format!("no message reaches workflow {id}: no agent works on a goal of it now");
    let hint = if found.workflow.status.is_terminal() {
        "it has ended.".to_owned()
    } else {
        format!(
            "its agents are only asked questions now; change what it does with `kapi {mode} resume \
             {} --revise \"<text>\"` when it waits for you.",
            id.reference()
        )
    };
    Error::new(Exit::Denied, text).with_hint(hint)
}
