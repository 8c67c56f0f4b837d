//! `kapi audit`: whether every log is whole, chained and unaltered. Changes nothing.

use std::path::PathBuf;

use kapi_engine::audit::{GoalAudit, audit_goal};
use kapi_engine::kernel::audit::{KernelAudit, audit_kernel};
use kapi_engine::reference::ResolveError;
use kapi_store::layout::ProjectLayout;
use serde::Serialize;

use crate::context::Context;
use crate::error::{Error, chain};
use crate::exit_code::Exit;
use crate::kernel;
use crate::ui::Format;

/// Options of `kapi audit`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The goal: its index, its slug, or both; all goals if none is named
    reference: Option<String>,
}

#[derive(Debug, Serialize)]
struct View {
    ok: bool,
    goals: Vec<Row>,
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
    let project = context.project(&root(context)?, "kapi audit");
    let resolved = |error: ResolveError| Error::resolve(&error);
    let ids = match &args.reference {
        Some(reference) => vec![project.resolve(reference).map_err(resolved)?],
        None => project
            .goal_ids()
            .map_err(|error| Error::engine(&error, ""))?,
    };
    let mut rows = Vec::new();
    for id in ids {
        let audit =
            audit_goal(&project, &id).map_err(|error| Error::engine(&error, &id.to_string()))?;
        rows.push(row(id.to_string(), &audit));
    }
    let kernel = match &args.reference {
        Some(_) => None,
        None => audit_kernel(&project).map_err(|error| kernel::failed(&error))?,
    };
    let kernel = kernel.map(|audit| kernel_row(&audit));
    let ok = rows.iter().chain(&kernel).all(|row| row.ok);
    match context.ui.format {
        Format::Json => context.ui.json(&View {
            ok,
            goals: rows,
            kernel,
        }),
        Format::Human => {
            rows.extend(kernel);
            human(context, &rows);
        }
    }
    Ok(if ok { Exit::Success } else { Exit::Failed })
}

/// Returns the project: where goals are, or else tasks.
fn root(context: &Context) -> Result<PathBuf, Error> {
    context.project_root().or_else(|error| {
        let root = kernel::root(context)?;
        let has_tasks = ProjectLayout::new(root.clone()).kernel_dir().is_dir();
        if has_tasks { Ok(root) } else { Err(error) }
    })
}

fn kernel_row(audit: &KernelAudit) -> Row {
    let faults = audit.faults.iter().map(|fault| chain(fault));
    let unknown = audit.unknown.iter().map(|error| chain(error));
    Row {
        id: "kernel".to_owned(),
        file: audit.file.display().to_string(),
        events: audit.records,
        ok: audit.faults.is_empty() && audit.unknown.is_none(),
        torn_bytes: audit.torn_bytes,
        faults: faults.chain(unknown).collect(),
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
