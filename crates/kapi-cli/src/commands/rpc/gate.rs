//! Tools of a session's model: whether one may run, and calls of Kapi's own.

use kapi_core::actor::Actor;
use kapi_goal::perform::session::{asked_first, call_tool};
use kapi_goal::rules::command::{GoalCommand, PersonCommand};
use kapi_goal::rules::state::Goal;
use kapi_goal::tools::GoalTool;
use kapi_goal::tools::answer::is_refusal;
use kapi_wire::rpc::{DialogView, RpcNotice, ToolPermission, ToolReply, ToolUse};
use serde_json::{Value, json};

use crate::commands::rpc::attached::AttachedGoal;
use crate::commands::rpc::dialog::{self, PendingDialog, ToolConsent};
use crate::commands::rpc::host::{Host, TURN_WAIT};
use crate::commands::rpc::view;
use crate::error::Error;
use crate::subdirectory::Subdirectory;

/// Decides whether a tool may run. Whatever goes wrong is a no.
pub(super) fn ask(host: &Host<'_>, used: &ToolUse) -> ToolPermission {
    permission(host, used).unwrap_or_else(|error| {
        refused(format!(
            "Kapi cannot decide about this tool, so it does not run: {}. The user can end this with \
             /until-done cancel.",
            error.message
        ))
    })
}

fn permission(host: &Host<'_>, used: &ToolUse) -> Result<ToolPermission, Error> {
    let Some(attached) = host.attached() else {
        return Ok(ToolPermission::default());
    };
    let goal = attached.goal()?;
    if view::is_over(&goal) {
        return Ok(ToolPermission::default());
    }
    let asked = match asked_first(&goal, &used.tool, &used.input) {
        Ok(asked) => asked,
        Err(reason) => return Ok(refused(reason)),
    };
    let Some(asked) = asked else {
        host.seat.uses(&used.tool);
        return Ok(ToolPermission::default());
    };
    let consent = ToolConsent {
        entry: asked.entry,
        shown: asked.shown,
        tool: used.tool.clone(),
    };
    if !host.has_ui() {
        record_refused(&attached, &goal, &consent)?;
        return Ok(refused(format!(
            "the user must allow {:?} first (`kapi goal allow {} {:?}`): it is on the contract's \
             ask-before list. Do not try it in another way.",
            consent.entry,
            goal.id.reference(),
            consent.entry
        )));
    }
    Ok(ToolPermission {
        refused: None,
        dialog: Some(question(host, consent)),
    })
}

fn question(host: &Host<'_>, consent: ToolConsent) -> DialogView {
    let (title, message) = (
        format!("Allow {:?} for this goal?", consent.entry),
        format!("The model wants to run: {}", consent.shown),
    );
    host.ask(
        PendingDialog::Tool(consent),
        dialog::confirm(title, message),
    )
}

/// Takes the person's answer; silence is a no.
pub(super) fn answered(
    host: &Host<'_>,
    consent: &ToolConsent,
    is_yes: bool,
) -> Result<ToolPermission, Error> {
    let attached = host.require_attached()?;
    if is_yes {
        let what = consent.entry.clone();
        let command = GoalCommand::Person(PersonCommand::Allow { what });
        attached.submit(host.context, &command)?;
        host.seat.uses(&consent.tool);
        return Ok(ToolPermission::default());
    }
    record_refused(&attached, &attached.goal()?, consent)?;
    Ok(refused(format!(
        "user denied {:?}: do not try it in another way; continue with something else.",
        consent.entry
    )))
}

fn record_refused(
    attached: &AttachedGoal<'_>,
    goal: &Goal,
    consent: &ToolConsent,
) -> Result<(), Error> {
    let Some(in_flight) = &goal.in_flight else {
        // Nothing is under way that could be charged with it.
        return Ok(());
    };
    let run = goal.run_name(&in_flight.effect);
    let command = GoalCommand::AskConsent {
        pattern: consent.entry.clone(),
        command: consent.shown.clone(),
    };
    attached
        .project
        .submit(&attached.id, &Actor::Agent { run }, &command)
        .map(drop)
        .map_err(|error| Error::engine(&error, &attached.id.reference()))
}

const fn refused(reason: String) -> ToolPermission {
    ToolPermission {
        refused: Some(reason),
        dialog: None,
    }
}

/// Performs a call of a goal's tool in the name of the turn under way.
pub(super) fn call(host: &Host<'_>, used: &ToolUse) -> Result<ToolReply, Error> {
    let attached = host.require_attached()?;
    let awaited = host.seat.awaited(TURN_WAIT);
    let goal = attached.goal()?;
    let effect = awaited.or_else(|| goal.in_flight.as_ref().map(|it| it.effect.clone()));
    let run = effect.map_or_else(|| "no turn".to_owned(), |effect| goal.run_name(&effect));
    let mut input = used.input.clone();
    if used.tool == GoalTool::Set.name() {
        say_from_top(host, &attached, &mut input);
    }
    let mut answer = call_tool(&attached.real, &attached.id, &run, &used.tool, input);
    if let Ok(goal) = attached.goal() {
        if used.tool == GoalTool::Set.name() && goal.is_driven() {
            // A draft that the person approved in advance goes on at once.
            host.drive();
        }
        host.notify(&RpcNotice::Goal(view::of(&goal)));
    }
    let refused = is_refusal(&answer);
    if answer["reason"] == json!("not_confirmed") {
        // How a person approves here is the host's to show.
        answer["message"] = json!("the draft is recorded, and the user is shown it; end your turn");
    }
    Ok(ToolReply {
        text: answer.to_string(),
        refused,
    })
}

/// Has the command of a draft run where the session is, which is where its model tried it.
fn say_from_top(host: &Host<'_>, attached: &AttachedGoal<'_>, draft: &mut Value) {
    let Some(Value::String(command)) = draft.get_mut("verifyCommand") else {
        return;
    };
    if command.trim().is_empty() {
        return;
    }
    let here = Subdirectory::of(&host.context.cwd, attached.project.layout.root());
    *command = here.command(command.trim());
}
