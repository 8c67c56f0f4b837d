//! What a person may ask of a toy: to have it described anew.

use kapi_core::actor::Actor;

use crate::rules::decide::human;
use crate::rules::decision_context::DecisionContext;
use crate::rules::denied::WorkflowRule;
use crate::rules::event::WorkflowEvent;
use crate::rules::mode_rules::ModeRules as _;
use crate::rules::modes::toy::command::ToyCommand;
use crate::rules::modes::toy::state::Toy;
use crate::rules::state::Workflow;

/// Decides a request.
pub(crate) fn ask(
    workflow: &Workflow,
    toy: &Toy,
    actor: &Actor,
    command: &ToyCommand,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    let ToyCommand::Reweigh = command;
    human(actor, "describe a scale anew")?;
    let text = "Describe it anew.".to_owned();
    let at_ms = given.now_ms;
    let mut events = vec![WorkflowEvent::Revised { text, at_ms }];
    events.extend(toy.after_revision(workflow, "", given)?);
    Ok(events)
}
