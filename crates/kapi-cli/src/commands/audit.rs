//! `kapi audit`: whether every log is whole, chained and unaltered. Changes nothing.

use std::path::PathBuf;

use kapi_core::id::GoalId;
use kapi_engine::audit::{GoalAudit, audit_goal};
use kapi_engine::kernel::audit::{KernelAudit, audit_kernel};
use kapi_engine::project::Project;
use kapi_engine::workflow::audit::audit_workflow;
use kapi_engine::workflow::key::WorkflowKey;
use kapi_store::layout::ProjectLayout;
use kapi_world::hidden;
use serde::Serialize;

use crate::config::store::STORE;
use crate::context::Context;
use crate::error::{Error, chain};
use crate::exit_code::Exit;
use crate::kernel::{self, Kernel};
use crate::ui::Format;

/// Options of `kapi audit`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The goal or workflow: its index, its slug, or both; everything if none is named
    reference: Option<String>,
    /// Where tasks are kept: `files`, or the servers of a NATS cluster as `nats://host:port,…`
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
}

#[derive(Debug, Serialize)]
struct View {
    ok: bool,
    goals: Vec<Row>,
    workflows: Vec<Row>,
    /// Its tasks and loops, where there are any.
    kernel: Option<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    id: String,
    file: String,
    events: u64,
    ok: bool,
    torn_bytes: u64,
    faults: Vec<String>,
    stale: Vec<String>,
}

/// Audits the logs.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let context = context.with_store(args.store.as_deref());
    let project = context.project(&root(&context)?, "kapi audit");
    let Asked { goals, workflows } = asked(&project, args.reference.as_deref())?;
    let mut rows = Vec::new();
    for id in goals {
        let audit =
            audit_goal(&project, &id).map_err(|error| Error::engine(&error, &id.to_string()))?;
        let mut row = row(id.to_string(), &audit);
        if let Some(fault) = hidden_fault(&context, &project, &id)? {
            row.ok = false;
            row.faults.push(fault);
        }
        rows.push(row);
    }
    let mut of_workflows = Vec::new();
    for key in workflows {
        let audit = audit_workflow(&project, &key).map_err(|error| Error::workflow(&error))?;
        of_workflows.push(row(key.to_string(), &audit));
    }
    let kernel = match &args.reference {
        Some(_) => None,
        None => kernel_audit(&context, &project)?,
    };
    let kernel = kernel.map(|audit| kernel_row(&audit));
    let ok = rows
        .iter()
        .chain(&of_workflows)
        .chain(&kernel)
        .all(|row| row.ok);
    match context.ui.format {
        Format::Json => context.ui.json(&View {
            ok,
            goals: rows,
            workflows: of_workflows,
            kernel,
        }),
        Format::Human => {
            rows.extend(of_workflows);
            rows.extend(kernel);
            human(&context, &rows);
        }
    }
    Ok(if ok { Exit::Success } else { Exit::Failed })
}

/// What is audited.
struct Asked {
    goals: Vec<GoalId>,
    workflows: Vec<WorkflowKey>,
}

/// Returns what a reference means, or everything.
fn asked(project: &Project<'_>, reference: Option<&str>) -> Result<Asked, Error> {
    let Some(reference) = reference else {
        let listed = project.workflows();
        let listed = listed.map_err(|error| Error::engine(&error, ""))?;
        return Ok(Asked {
            goals: project
                .goal_ids()
                .map_err(|error| Error::engine(&error, ""))?,
            workflows: listed.into_iter().map(|listed| listed.key).collect(),
        });
    };
    let found = project.find_workflow(reference);
    match found.map_err(|error| Error::workflow(&error))? {
        Some(key) => Ok(Asked {
            goals: Vec::new(),
            workflows: vec![key],
        }),
        None => Ok(Asked {
            goals: vec![
                project
                    .resolve(reference)
                    .map_err(|error| Error::resolve(&error))?,
            ],
            workflows: Vec::new(),
        }),
    }
}

/// Returns what is wrong with the hidden checks of a goal that was approved with some.
fn hidden_fault(
    context: &Context,
    project: &Project<'_>,
    id: &GoalId,
) -> Result<Option<String>, Error> {
    // A log that cannot be read has its fault already.
    let Ok(goal) = project.load(id) else {
        return Ok(None);
    };
    let Some(hidden) = goal.contract.hidden.filter(|_| goal.approval.is_some()) else {
        return Ok(None);
    };
    let kept = context.place(project, id)?.hidden;
    let old = project.layout.goal(id).hidden();
    if goal.status.is_terminal() && !kept.exists() && !old.exists() {
        return Ok(None);
    }
    // A goal from before keeps them in the project until they are used.
    let found = if old.is_dir() && !kept.exists() {
        hidden::describe(&old).map(|found| found.sha256 == hidden.sha256)
    } else {
        hidden::verify_kept(&hidden, &kept).map(|()| true)
    };
    Ok(match found {
        Ok(true) => None,
        Ok(false) => Some(format!("{} is not what was approved", old.display())),
        Err(failure) => Some(format!("failed to {}", failure.message)),
    })
}

/// Audits the kernel where it is kept.
fn kernel_audit(context: &Context, project: &Project<'_>) -> Result<Option<KernelAudit>, Error> {
    let config = context.config(Some(project.layout.root()))?;
    let kernel = Kernel::new(context, project, &config)?;
    audit_kernel(project, &kernel.store).map_err(|error| kernel::failed(&error))
}

/// Returns the project: where goals are, or else tasks.
fn root(context: &Context) -> Result<PathBuf, Error> {
    context.project_root().or_else(|error| {
        let root = kernel::root(context)?;
        let has_tasks = ProjectLayout::new(root.clone()).kernel_dir().is_dir()
            || context.store.is_some()
            || context.variable(STORE).is_some();
        if has_tasks { Ok(root) } else { Err(error) }
    })
}

fn kernel_row(audit: &KernelAudit) -> Row {
    let faults = audit.faults.iter().map(|fault| chain(fault));
    let unknown = audit.unknown.iter().map(|error| chain(error));
    let broken = audit.broken.iter().map(|error| chain(error));
    Row {
        id: "kernel".to_owned(),
        file: audit.file.display().to_string(),
        events: audit.records,
        ok: audit.faults.is_empty() && audit.unknown.is_none() && audit.broken.is_none(),
        torn_bytes: audit.torn_bytes,
        faults: faults.chain(broken).chain(unknown).collect(),
        stale: Vec::new(),
    }
}

fn row(id: String, audit: &GoalAudit) -> Row {
    Row {
        id,
        file: audit.file.display().to_string(),
        events: audit.records,
        ok: audit.faults.is_empty(),
        torn_bytes: audit.torn_bytes,
        faults: audit.faults.iter().map(|fault| chain(fault)).collect(),
        stale: audit
            .stale
            .iter()
            .map(|path| path.display().to_string())
            .collect(),
    }
}

fn human(context: &Context, rows: &[Row]) {
    for row in rows {
        let verdict = if row.ok { "whole" } else { "DAMAGED" };
        context
            .ui
            .line(&format!("{}  {} events  {verdict}", row.id, row.events));
        for fault in &row.faults {
            context.ui.line(&format!("  {fault}"));
        }
        if row.torn_bytes > 0 {
            context.ui.line(&format!(
                "  {} bytes at the end of {} were never accepted; the next event cuts them off.",
                row.torn_bytes, row.file
            ));
        }
        for stale in &row.stale {
            context.ui.line(&format!(
                "  {stale} is behind the log; the next command renews it."
            ));
        }
    }
    if rows.iter().any(|row| !row.ok) {
        context
            .ui
            .say("Nothing was changed. Restore the file from a backup, or keep it as evidence.");
    }
}
