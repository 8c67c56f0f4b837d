//! `kapi audit`: whether every log is whole, chained and unaltered, with the files of runs that the
//! logs remember, the hidden checks, the launches and the spend ledger.
//!
//! Changes nothing of what it looks at; what it finds is remembered for listings.

mod evidence;
mod launches;

use std::path::PathBuf;

use kapi_core::failure::chain;
use kapi_core::id::GoalId;
use kapi_core::task_id::KernelTaskId;
use kapi_core::text::counted;
use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::record::audit::audit_goal;
use kapi_goal::record::damage::{Damage, KERNEL};
use kapi_goal::record::project::Project;
use kapi_launch::paths::SandboxPaths;
use kapi_machine::audit::StreamAudit;
use kapi_store::layout::ProjectLayout;
use kapi_task::record::audit::audit_kernel;
use kapi_workflow::record::audit::audit_workflow;
use kapi_workflow::record::workflows::Workflows;
use serde::Serialize;

use crate::config::store::STORE;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, ProjectKernel};
use crate::subject::{Meaning, Silence, SubjectArgs};
use crate::ui::Format;

/// Options of `kapi audit`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Goal, workflow, task or launch to audit [default: everything]
    #[arg(value_name = "REF")]
    reference: Option<String>,
    /// Task store: 'files', or NATS servers as 'nats://host:port,…'
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
}

#[derive(Debug, Serialize)]
struct AuditView {
    ok: bool,
    goals: Vec<AuditRow>,
    workflows: Vec<AuditRow>,
    /// The launches of the project.
    launches: Vec<AuditRow>,
    /// Its tasks and loops, where there are any.
    kernel: Option<AuditRow>,
    /// The machine's spend ledger, where there is one.
    spend: Option<AuditRow>,
    /// What the person prefers for the project, where they said so.
    preferences: Option<AuditRow>,
    /// The record of the runs that were cleaned away, where there were any.
    pruned: Option<AuditRow>,
}

#[derive(Debug, Serialize)]
struct AuditRow {
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
    let AuditSubject {
        goals,
        workflows,
        launches,
        kernel,
    } = asked(&context, &project, args.reference.as_deref())?;
    let mut rows = Vec::new();
    for id in goals {
        let audit =
            audit_goal(&project, &id).map_err(|error| Error::engine(&error, &id.to_string()))?;
        let mut row = row(id.to_string(), &audit);
        if row.ok {
            row.add(evidence::of_goal(&context, &project, &id)?);
        }
        rows.push(row);
    }
    let mut of_workflows = Vec::new();
    for key in workflows {
        let audit = audit_workflow(&project, &key).map_err(|error| Error::workflow(&error))?;
        of_workflows.push(row(key.to_string(), &audit));
    }
    let launches = launches::rows(&launches)?;
    let kernel = kernel.map(|audit| row(KERNEL.to_owned(), &audit));
    let spend = evidence::spend_row(&context, &project, &mut rows)?;
    let (preferences, pruned) = match &args.reference {
        Some(_) => (None, None),
        None => evidence::home_rows(&context, &project)?,
    };
    let others = [&kernel, &spend, &preferences, &pruned];
    remember(&project, [&rows[..], &of_workflows, &launches], others);
    let mut all = rows.iter().chain(&of_workflows).chain(&launches);
    let ok = all.all(|row| row.ok) && others.into_iter().flatten().all(|row| row.ok);
    match context.ui.format {
        Format::Json => context.ui.json(&AuditView {
            ok,
            goals: rows,
            workflows: of_workflows,
            launches,
            kernel,
            spend,
            preferences,
            pruned,
        }),
        Format::Human => {
            rows.extend(of_workflows);
            rows.extend(launches);
            rows.extend(kernel);
            rows.extend(spend);
            rows.extend(preferences);
            rows.extend(pruned);
            human(&context, &rows);
        }
    }
    Ok(if ok { Exit::Success } else { Exit::Failed })
}

/// What is audited.
#[derive(Default)]
struct AuditSubject {
    goals: Vec<GoalId>,
    workflows: Vec<WorkflowKey>,
    launches: Vec<SandboxPaths>,
    /// The log of tasks and loops, where there is one.
    kernel: Option<StreamAudit>,
}

/// Returns what a reference means, or everything.
fn asked(
    context: &Context,
    project: &Project<'_>,
    reference: Option<&str>,
) -> Result<AuditSubject, Error> {
    let Some(reference) = reference else {
        let listed = Workflows::of(project).workflows();
        let listed = listed.map_err(|error| Error::engine(&error, ""))?;
        let goals = project.goal_ids();
        return Ok(AuditSubject {
            goals: goals.map_err(|error| Error::engine(&error, ""))?,
            workflows: listed.into_iter().map(|listed| listed.key).collect(),
            launches: launches::all(context)?,
            kernel: kernel_audit(context, project, None)?,
        });
    };
    let mut asked = AuditSubject::default();
    match SubjectArgs::of(reference).find(context, Silence::Latest)? {
        Meaning::Goal(id) => asked.goals.push(id),
        Meaning::Workflow(key) => asked.workflows.push(key),
        Meaning::Task(id) => asked.kernel = kernel_audit(context, project, Some(id))?,
        Meaning::Launch(location) => {
            context.require_human("audit launches")?;
            asked.launches.push(location);
        }
    }
    Ok(asked)
}

/// Audits the log of tasks and loops where it is kept; `task` is one that it has to have.
fn kernel_audit(
    context: &Context,
    project: &Project<'_>,
    task: Option<KernelTaskId>,
) -> Result<Option<StreamAudit>, Error> {
    let config = context.config(Some(project.layout.root()))?;
    let kernel = ProjectKernel::new(context, project, &config)?;
    if let Some(id) = task {
        let found = kernel.queue()?.find(id);
        let found = found.map_err(|error| kernel::failed(&error))?;
        found.ok_or_else(|| kernel::no_task(id))?;
    }
    let runs_of = evidence::runs_of(context, project, &kernel.store)?;
    audit_kernel(project, &kernel.store, &runs_of).map_err(|error| kernel::failed(&error))
}

/// Returns the project: where goals are, or else tasks or launches.
fn root(context: &Context) -> Result<PathBuf, Error> {
    context.project_root().or_else(|error| {
        let root = kernel::root(context)?;
        let has_tasks = ProjectLayout::new(root.clone()).kernel_dir().is_dir()
            || context.store.is_some()
            || context.variable(STORE).is_some()
            || !launches::all(context)?.is_empty();
        if has_tasks { Ok(root) } else { Err(error) }
    })
}

fn row(id: String, audit: &StreamAudit) -> AuditRow {
    AuditRow {
        id,
        file: audit.file.display().to_string(),
        events: audit.records,
        ok: audit.is_whole(),
        torn_bytes: audit.torn_bytes,
        faults: audit.faults.iter().map(|fault| chain(fault)).collect(),
        stale: audit
            .stale
            .iter()
            .map(|path| path.display().to_string())
            .collect(),
    }
}

impl AuditRow {
    /// Adds findings.
    fn add(&mut self, findings: Vec<String>) {
        self.ok &= findings.is_empty();
        self.faults.extend(findings);
    }
}

/// Remembers what was found, for listings. One that cannot be remembered is shown all the same.
fn remember(project: &Project<'_>, rows: [&[AuditRow]; 3], others: [&Option<AuditRow>; 4]) {
    let rows = rows.into_iter().flatten();
    let rows = rows.chain(others.into_iter().flatten());
    let found: Damage = rows
        .map(|row| (row.id.clone(), row.faults.clone()))
        .collect();
    drop(project.remember_damage(&found));
}

fn human(context: &Context, rows: &[AuditRow]) {
    for row in rows {
        let verdict = if row.ok { "whole" } else { "DAMAGED" };
        context.ui.line(&format!(
            "{}  {}  {verdict}",
            row.id,
            counted(row.events, "event")
        ));
        for fault in &row.faults {
            context.ui.line(&format!("  {fault}"));
        }
        if row.torn_bytes > 0 {
            context.ui.line(&format!(
                "  {} ends in an incomplete write of {}; the next event removes it.",
                row.file,
                counted(row.torn_bytes, "byte")
            ));
        }
        for stale in &row.stale {
            context.ui.line(&format!(
                "  {stale} is behind the log; the next command updates it."
            ));
        }
    }
    if rows.iter().any(|row| !row.ok) {
        context
            .ui
            .say("Nothing was changed. Restore the file from a backup, or keep it as evidence.");
    }
}
