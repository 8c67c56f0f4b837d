//! Workflows in a listing: a row each, from the inventory, and how a row looks to a person.
//!
//! No log is read; who drives is asked of the lock, and only where somebody could.

use kapi_core::workflow::state::Status;
use kapi_engine::project::Project;
use kapi_engine::workflow::index::{WorkflowListed, WorkflowStanding};
use kapi_engine::workflow::requests::Standings;
use kapi_store::inventory::workflow_entry::{Waits, WorkflowEntry};
use kapi_wire::workflow::row::WorkflowRow;

use crate::context::Context;
use crate::error::{Error, chain};
use crate::ui::Ui;
use crate::workflow::{session, words};

/// Returns a row for each workflow, sorted by index.
pub(crate) fn rows(
    context: &Context,
    project: &Project<'_>,
    standings: &Standings,
) -> Result<Vec<WorkflowRow>, Error> {
    let session = session::session(context);
    let attached = standings
        .attachments
        .iter()
        .find(|attached| Some(&attached.session) == session.as_ref())
        .map(|attached| attached.workflow.to_string());
    let mut rows = Vec::with_capacity(standings.workflows.len());
    for listed in &standings.workflows {
        let mut row = row(project, listed)?;
        row.attached = attached.as_deref() == Some(row.id.as_str());
        rows.push(row);
    }
    Ok(rows)
}

fn row(project: &Project<'_>, listed: &WorkflowListed) -> Result<WorkflowRow, Error> {
    let key = &listed.key;
    match &listed.standing {
        WorkflowStanding::Known(entry) => {
            let driver = if entry.status == Status::Active {
                project
                    .workflow_driver(key)
                    .map_err(|error| Error::workflow(&error))?
            } else {
                None
            };
            Ok(known(entry, driver))
        }
        WorkflowStanding::Damaged(error) => Ok(WorkflowRow {
            id: key.id.to_string(),
            mode: key.mode.as_str(),
            purpose: String::new(),
            status: "damaged".to_owned(),
            phase: None,
            subphase: None,
            pending: None,
            attached: false,
            driver: None,
            branch: None,
            worktree: None,
            links: Vec::new(),
            updated_ms: None,
            fault: Some(chain(error)),
            next: Some(format!("kapi audit {:03}", key.id.index())),
        }),
    }
}

fn known(entry: &WorkflowEntry, driver: Option<String>) -> WorkflowRow {
    let pending = match &entry.waits {
        Some(Waits::Decision { decision, .. }) => Some(decision.as_str().to_owned()),
        Some(Waits::Answer { .. } | Waits::Unblocking { .. }) | None => None,
    };
    let links = entry.links.iter();
    WorkflowRow {
        id: entry.id.to_string(),
        mode: entry.mode.as_str(),
        purpose: entry.purpose.clone(),
        status: entry.status.as_str().to_owned(),
        phase: Some(entry.phase.clone()),
        subphase: entry.subphase.clone(),
        pending,
        attached: false,
        next: next(entry, driver.is_some()),
        driver,
        branch: entry.branch.clone(),
        worktree: entry.worktree.clone(),
        links: links
            .map(|link| format!("{} {}", link.mode, link.workflow))
            .collect(),
        updated_ms: updated_ms(&entry.updated),
        fault: None,
    }
}

/// Reads a time as the inventory writes it.
pub(crate) fn updated_ms(text: &str) -> Option<i64> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(time.as_millisecond())
}

fn next(entry: &WorkflowEntry, is_driven: bool) -> Option<String> {
    let (mode, index) = (entry.mode, entry.id.index());
    match (&entry.waits, entry.status) {
        (Some(Waits::Decision { .. }), _) => Some(format!("kapi {mode} approve {index:03}")),
        (Some(Waits::Answer { .. } | Waits::Unblocking { .. }), _) => {
            Some(format!("kapi {mode} resume {index:03}"))
        }
        (None, Status::Active) if !is_driven && entry.phase == "branch" => {
            Some(format!("kapi ralph --from {index:03}"))
        }
        (None, Status::Active) if !is_driven => Some(format!("kapi {mode} resume {index:03}")),
        (
            None,
            Status::Active
            | Status::Blocked
            | Status::Completed
            | Status::Failed
            | Status::Abandoned
            | Status::Linked
            | Status::Integrated,
        ) => None,
    }
}

/// Prints rows, with what to type where something waits: in one piece, as there may be thousands.
pub(crate) fn lines(ui: Ui, rows: &[WorkflowRow]) {
    let width = rows.iter().map(|row| row.id.len()).max().unwrap_or(0);
    let modes = rows.iter().map(|row| row.mode.len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for row in rows {
        let here = if row.attached { "  (this session)" } else { "" };
        let branch = row.branch.as_deref().unwrap_or_default();
        let line = format!(
            "{:width$}  {:modes$}  {}{here}  {branch}",
            row.id,
            row.mode,
            standing(row)
        );
        lines.push(line.trim_end().to_owned());
        if let Some(fault) = &row.fault {
            lines.push(format!("{:width$}  failed to {fault}", ""));
        }
        if !row.links.is_empty() {
            lines.push(format!("{:width$}  linked: {}", "", row.links.join(", ")));
        }
        if let Some(next) = &row.next {
            lines.push(format!("{:width$}  next: {next}", ""));
        }
    }
    if !lines.is_empty() {
        ui.line(&lines.join("\n"));
    }
}

fn standing(row: &WorkflowRow) -> String {
    let place = match (&row.phase, &row.subphase) {
        (Some(phase), Some(subphase)) => format!("{phase}/{subphase}"),
        (Some(phase), None) => phase.clone(),
        (None, _) => return row.status.clone(),
    };
    match (row.status.as_str(), &row.pending, &row.driver) {
        ("active", Some(_), _) => format!("{place}, {}", words::WAITS),
        ("active", None, Some(driver)) => format!("{place}, driven by {driver}"),
        ("active", None, None) => place,
        ("blocked", _, _) => format!("blocked in {place}"),
        (status, _, _) => status.to_owned(),
    }
}
