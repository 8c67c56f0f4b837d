//! How a workflow came out or where it rests, for a person: what was built, on what evidence, and
//! what to type next.
//!
//! Everything here stands in the workflow's own documents, which are named.

use std::path::Path;

use kapi_core::workflow_status::WorkflowStatus;
use kapi_wire::workflow::{Viewer, WorkflowView};
use kapi_workflow::rules::next_command::{is_handed_over, next_commands};
use kapi_workflow::rules::spent;
use kapi_workflow::rules::state::Workflow;

use crate::event_words::first_line;
use crate::exit_code::Exit;
use crate::ui::{Format, Ui};
use crate::workflow::words;
use crate::{amount, modes};

/// Prints how a workflow came out, and returns what the process exits with.
pub(crate) fn outcome(ui: Ui, dir: &Path, workflow: &Workflow) -> Exit {
    match ui.format {
        Format::Json => ui.json(&WorkflowView::of(
            workflow,
            Viewer::Last,
            next_commands(workflow),
        )),
        Format::Human => {
            summary(ui, dir, workflow);
            next(ui, workflow);
        }
    }
    exit_of(workflow)
}

/// Prints a workflow for whoever looks at it.
pub(crate) fn looked_at(ui: Ui, dir: &Path, workflow: &Workflow, driver: Option<&str>) {
    // Whoever drives it keeps everybody else from it; it can be followed.
    let follow = format!("kapi log {:03} --follow", workflow.id.index());
    match (ui.format, driver) {
        (Format::Json, _) => {
            let next = driver.map_or_else(|| next_commands(workflow), |_| vec![follow]);
            ui.json(&WorkflowView::of(workflow, Viewer::At, next).driven_by(driver));
        }
        (Format::Human, _) => {
            summary(ui, dir, workflow);
            cost(ui, workflow);
            if let Some(front) = modes::front(workflow.mode()) {
                (front.details)(ui, workflow);
            }
            match driver {
                Some(driver) => {
                    ui.line(&format!("  driven   by {driver}"));
                    ui.line(&format!("  next     {follow}"));
                }
                None => next(ui, workflow),
            }
        }
    }
}

/// Prints what all of it used, once something was.
fn cost(ui: Ui, workflow: &Workflow) {
    let used = spent::used(workflow);
    if used.tokens() == 0 {
        return;
    }
    let tokens = format!("{} tokens", amount::tokens(used.tokens()));
    let parts: Vec<String> = [tokens].into_iter().chain(amount::cost(&used)).collect();
    ui.line(&format!("  used     {}", parts.join(", ")));
}

/// Returns the exit code for where a workflow came to rest.
pub(crate) fn exit_of(workflow: &Workflow) -> Exit {
    match workflow.status {
        WorkflowStatus::Completed | WorkflowStatus::Linked | WorkflowStatus::Integrated => {
            Exit::Success
        }
        // A spec is approved; what comes next is another workflow.
        WorkflowStatus::Active if is_handed_over(workflow) => Exit::Success,
        WorkflowStatus::Active
        | WorkflowStatus::Blocked
        | WorkflowStatus::Failed
        | WorkflowStatus::Abandoned => Exit::NotDone,
    }
}

fn summary(ui: Ui, dir: &Path, workflow: &Workflow) {
    ui.line(&format!(
        "Workflow {} ({}): {}",
        workflow.id,
        workflow.mode(),
        words::state(workflow)
    ));
    ui.line(&format!("  purpose  {}", first_line(&workflow.purpose)));
    if let Some(blocked) = &workflow.blocked {
        ui.line(&format!("  because  {}", first_line(&blocked.reason)));
        // Not cut: it holds commands to type.
        let hint = blocked.unblock.trim().lines().next().unwrap_or_default();
        ui.line(&format!("  hint     {hint}"));
    }
    if let Some(question) = workflow.body.rules().open_question() {
        ui.line(&format!("  question {}", first_line(question.text)));
    }
    if let Some(pending) = &workflow.pending {
        let artifact = pending.decision.words();
        ui.line(&format!("  waits    {artifact}, hash {}", pending.sha256));
        for risk in &pending.risks {
            ui.line(&format!("  risk     {}", first_line(risk)));
        }
    }
    for link in &workflow.links {
        ui.line(&format!("  linked   {} {}", link.mode, link.workflow));
    }
    for conflict in &workflow.conflicts {
        ui.line(&format!("  conflict {}", first_line(&conflict.words())));
    }
    if let Some(front) = modes::front(workflow.mode()) {
        (front.summary)(ui, workflow);
    }
    ui.line(&format!("  files    {}", dir.display()));
}

fn next(ui: Ui, workflow: &Workflow) {
    for command in next_commands(workflow) {
        ui.line(&format!("  next     {command}"));
    }
    for command in modes::front(workflow.mode()).map_or_else(Vec::new, |it| (it.next)(workflow)) {
        ui.line(&format!("  next     {command}"));
    }
}
