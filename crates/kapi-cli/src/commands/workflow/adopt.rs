//! Making a workflow one's own that came from elsewhere: everything that is trusted by that is shown
//! first, and only a person can say yes to it.
//!
//! The workflow itself stays as it is; the leave is kept in the person's home.

use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::spent;
use kapi_workflow::rules::state::Workflow;
use kapi_workflow::rules::terms::{PlanApproval, WorkflowTerms};

use crate::context::Context;
use crate::contract::words::{self, budget_words};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;
use crate::workflow::located::LocatedWorkflow;
use crate::{amount, modes};

/// How a person gives their leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdoptApproval {
    /// They are asked at their terminal.
    Asked,
    /// They gave it with the command.
    Given,
}

/// Records a person's leave for a workflow, of exactly what it says of itself now.
pub(crate) fn adopt(
    context: &Context,
    found: &LocatedWorkflow<'_>,
    grant: AdoptApproval,
) -> Result<(), Error> {
    let ui = context.ui;
    let workflow = &found.workflow;
    let lack = Workflows::of(&found.project).unapproved_workflow(workflow);
    let Some(lack) = lack.map_err(|error| Error::engine(&error, ""))? else {
        ui.say("note: it is already yours.");
        return Ok(());
    };
    if ui.format == Format::Human {
        ui.line(&format!("Workflow {}: {lack}.", found.key));
        ui.line("By adopting it you trust:");
        for line in words::lines(&trusted(workflow)) {
            ui.line(&line);
        }
    }
    if grant == AdoptApproval::Asked {
        ask(context, found)?;
    }
    Workflows::of(&found.project)
        .adopt_workflow(&context.actor, workflow)
        .map_err(|error| Error::workflow(&error))?;
    ui.say(&format!("Workflow {} is yours now.", found.key.id));
    Ok(())
}

fn ask(context: &Context, found: &LocatedWorkflow<'_>) -> Result<(), Error> {
    match context.ui.confirm("Adopt it?") {
        Some(true) => Ok(()),
        Some(false) => Err(Error::new(Exit::Denied, "the workflow was not adopted")
            .with_hint("nothing has changed; start a workflow of your own.")),
        None => {
            let (mode, index) = (found.key.mode, found.key.id.index());
            Err(Error::usage(
                "adopting a workflow needs confirmation, and there is no terminal to ask on",
            )
            .with_hint(format!(
                "read the lines above, then run `kapi {mode} resume {index:03} --adopt --yes`."
            )))
        }
    }
}

/// Returns everything that going on with a workflow would carry out or rest on.
fn trusted(workflow: &Workflow) -> Vec<(&'static str, String)> {
    let mut lines = vec![("purpose", workflow.purpose.clone())];
    lines.push(("started by", workflow.started_by.clone()));
    of_terms(&workflow.terms, &mut lines);
    lines.extend(whole(workflow).map(|text| ("the whole", text)));
    for approval in &workflow.approvals {
        let artifact = approval.decision.words();
        lines.push((
            "approved",
            format!("{artifact} ({}) by {}", approval.sha256, approval.by),
        ));
    }
    if let Some(front) = modes::front(workflow.mode()) {
        lines.extend((front.trusted)(workflow));
    }
    lines
}

/// Returns what the whole may use, where that is limited.
fn whole(workflow: &Workflow) -> Option<String> {
    let limit = spent::limit(workflow);
    let tokens = limit
        .tokens
        .map(|n| format!("{} tokens", amount::tokens(n)));
    let usd = limit.usd_micros.map(amount::usd);
    let time = spent::time_limit_ms(workflow).map(amount::duration);
    let parts: Vec<String> = [tokens, usd, time].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("at most {}", parts.join(", ")))
}

fn of_terms(terms: &WorkflowTerms, lines: &mut Vec<(&'static str, String)>) {
    lines.push(("agent", terms.agent.clone()));
    lines.push(("reviewer", terms.reviewer().to_owned()));
    lines.push(("judge", terms.judge.to_string()));
    lines.push((
        "sandbox",
        format!("{}, network {}", terms.sandbox, terms.network),
    ));
    for command in &terms.verify {
        lines.push(("runs", command.clone()));
    }
    for path in &terms.protect {
        lines.push(("protects", path.clone()));
    }
    lines.push(("each goal", budget_words(&terms.budget)));
    if terms.plan_approval == PlanApproval::InAdvance {
        let text = "automatically, for every plan that reaches consensus";
        lines.push(("approves", text.to_owned()));
    }
}
