//! The same for what is no goal: the branch of a workflow, a task or a launch.
//!
//! By itself only what was proved is delivered: what a person asks for by name is theirs to judge.

use std::path::Path;

use kapi_core::workflow_status::WorkflowStatus;
use kapi_goal::rules::delivery::Delivery;
use kapi_launch::plan::LaunchPlan;
use kapi_launch::record::SandboxRecord;
use kapi_launch::result::LaunchResult;
use kapi_task::rules::task::{End, KernelTask};
use kapi_workflow::rules::documents::documents;
use kapi_workflow::rules::state::Workflow;

use crate::config::Config;
use crate::context::Context;
use crate::delivering::{DeliverySource, body, deliver_source};
use crate::delivery;
use crate::error::Error;
use crate::event_words::first_line;

/// The document of a workflow that says what was decided and why.
const REPORT: &str = "decision-report.md";

/// Where something is delivered from.
#[derive(Clone, Copy)]
pub(crate) struct DeliverySite<'a> {
    /// The command's own.
    pub(crate) context: &'a Context,
    /// The configuration.
    pub(crate) config: &'a Config,
    /// The project.
    pub(crate) root: &'a Path,
}

/// Delivers a workflow that is complete, where its person asked for it at its start.
pub(crate) fn of_workflow(site: DeliverySite<'_>, workflow: &Workflow) -> Result<(), Error> {
    match (&workflow.terms.delivery, workflow.status) {
        (Some(delivery), WorkflowStatus::Completed | WorkflowStatus::Integrated)
            if workflow.body.rules().branch().is_some() =>
        {
            workflow_now(site, workflow, delivery)
        }
        (_, _) => Ok(()),
    }
}

/// Delivers a workflow's branch now.
pub(crate) fn workflow_now(
    site: DeliverySite<'_>,
    workflow: &Workflow,
    delivery: &Delivery,
) -> Result<(), Error> {
    let reference = workflow.id.reference();
    let Some(branch) = workflow.body.rules().branch() else {
        return Err(nothing(&reference));
    };
    let report = documents(workflow)
        .into_iter()
        .find(|one| one.name == REPORT);
    let report = report.map_or_else(String::new, |report| body::report(&report.text));
    let purpose = body::quoted(&workflow.purpose);
    let source = DeliverySource {
        kind: "workflow",
        id: workflow.id.to_string(),
        reference,
        branch: branch.name.clone(),
        pushed: None,
        title: first_line(&workflow.purpose),
        body: format!("{purpose}\n\n{report}"),
    };
    deliver_source(site, &source, delivery)
}

/// Delivers a task that has ended, where the command or the person's file asks for it.
pub(crate) fn of_task(site: DeliverySite<'_>, task: &KernelTask) -> Result<(), Error> {
    let flags = &site.context.deliver;
    let Some(delivery) = delivery::asked(flags, site.config) else {
        return Ok(());
    };
    let Some(report) = task.report.as_deref() else {
        return Ok(());
    };
    // Each goal that a workflow's task drives is delivered by its workflow.
    if report.end != End::Completed || report.work.commit.is_none() || task.goal_drive().is_some() {
        return Ok(());
    }
    if report.work.grade.is_none() && !(flags.push || flags.pr) {
        site.context.ui.say(&format!(
            "note: {0} is not proved, so it was not delivered; `kapi deliver {0}` does it anyway.",
            task.id
        ));
        return Ok(());
    }
    task_now(site, task, &delivery)
}

/// Delivers a task's branch now.
pub(crate) fn task_now(
    site: DeliverySite<'_>,
    task: &KernelTask,
    delivery: &Delivery,
) -> Result<(), Error> {
    let id = task.id.to_string();
    let work = task.report.as_deref().map(|report| &report.work);
    let work = work.filter(|work| work.commit.is_some());
    let Some((work, branch)) = work.and_then(|work| Some((work, work.branch.as_ref()?))) else {
        return Err(nothing(&id));
    };
    if work.is_held_back() {
        return Err(Error::usage(format!(
            "{id} did not end well, so its work is on no branch"
        ))
        .with_hint(format!("`git branch <name> {branch}` makes one.")));
    }
    let request = &task.request;
    let checks = request.verify.iter().map(|command| body::code(command));
    let checks: String = checks.map(|line| format!("- {line}\n")).collect();
    let proof = match work.grade {
        Some(grade) => format!("\nChecks, {}:\n\n{checks}", grade.words()),
        None => "\nNothing was verified.\n".to_owned(),
    };
    let source = DeliverySource {
        kind: "task",
        reference: id.clone(),
        branch: branch.clone(),
        pushed: None,
        title: first_line(&request.description),
        body: format!(
            "{}\n{proof}\nMade by Kapi as `{id}`.\n",
            body::quoted(&request.prompt)
        ),
        id,
    };
    deliver_source(site, &source, delivery)
}

/// Opens a pull request for a launch that pushed its branch and did well.
pub(crate) fn of_launch(
    site: DeliverySite<'_>,
    plan: &LaunchPlan,
    launched: &LaunchResult,
) -> Result<(), Error> {
    let record = &launched.record;
    let is_pushed = record
        .branch
        .as_ref()
        .is_some_and(|branch| branch.pushed.is_some());
    let flags = &site.context.deliver;
    if !(flags.pr && is_pushed && launched.exit_code == 0) {
        return Ok(());
    }
    let delivery = delivery::named(flags, site.config, true);
    launch_now(site, record, &plan.prompt, &delivery)
}

/// Delivers a launch's branch now.
pub(crate) fn launch_now(
    site: DeliverySite<'_>,
    record: &SandboxRecord,
    task: &str,
    delivery: &Delivery,
) -> Result<(), Error> {
    let reference = format!("launch/{}", record.id);
    let branch = record
        .branch
        .as_ref()
        .filter(|branch| branch.commit.is_some());
    let Some(branch) = branch else {
        return Err(nothing(&reference));
    };
    let name = match &branch.pushed {
        // It is there already, under the name that it was given there.
        Some(_) => &branch.remote_name,
        None => branch.stand_in.as_ref().unwrap_or(&branch.name),
    };
    let title = first_line(task);
    let source = DeliverySource {
        kind: "launch",
        id: record.id.clone(),
        branch: name.clone(),
        pushed: branch.pushed.clone(),
        title: if title.is_empty() {
            name.clone()
        } else {
            title
        },
        body: format!(
            "{}\n\nMade by an agent that Kapi launched as `{reference}`. Nothing was verified.\n",
            body::quoted(task)
        ),
        reference,
    };
    deliver_source(site, &source, delivery)
}

fn nothing(reference: &str) -> Error {
    Error::usage(format!(
        "{reference} has no branch with a result to deliver"
    ))
    .with_hint(format!("`kapi show {reference}` shows where it stands."))
}
