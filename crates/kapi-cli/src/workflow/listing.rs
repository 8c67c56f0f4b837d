//! Workflows in a listing: a row each, from the inventory, and how a row looks to a person.
//!
//! No log is read; who drives is asked of the lock, and only where somebody could.

use std::iter;

use kapi_core::failure::chain;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_goal::record::inventory::workflow_entry::{WorkflowEntry, WorkflowWait};
use kapi_goal::record::project::Project;
use kapi_wire::workflow::row::WorkflowRow;
use kapi_workflow::record::index::{WorkflowListingEntry, WorkflowSummary};
use kapi_workflow::record::requests::WorkflowOverview;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::mode_spec::ModeSpec;

use crate::error::Error;
use crate::ui::Ui;
use crate::workflow::words;

/// How many bytes of lines are at least collected before they are written.
const PIECE_BYTES: usize = 16 * 1024;

/// Returns what a session is attached to.
pub(crate) fn attached(standings: &WorkflowOverview, session: Option<&str>) -> Option<String> {
    let mut all = standings.attachments.iter();
    let attached = all.find(|attached| Some(attached.session.as_str()) == session);
    attached.map(|attached| attached.workflow.to_string())
}

/// Returns a row for each workflow, sorted by index; `attached` is the one of this session.
pub(crate) fn rows(
    project: &Project<'_>,
    standings: &WorkflowOverview,
    attached: Option<&str>,
) -> Result<Vec<WorkflowRow>, Error> {
    let drivers = Workflows::of(project)
        .workflow_drivers(&standings.workflows)
        .map_err(|error| Error::workflow(&error))?;
    let rows = standings.workflows.iter().zip(drivers);
    let rows = rows.map(|(listed, driver)| {
        let mut row = row(listed, driver);
        row.attached = attached == Some(row.id.as_str());
        row
    });
    Ok(rows.collect())
}

fn row(listed: &WorkflowListingEntry, driver: Option<String>) -> WorkflowRow {
    let key = &listed.key;
    match &listed.state {
        WorkflowSummary::Known(entry) => known(entry, driver),
        WorkflowSummary::Damaged(error) => WorkflowRow {
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
        },
    }
}

fn known(entry: &WorkflowEntry, driver: Option<String>) -> WorkflowRow {
    let pending = match &entry.waits {
        Some(WorkflowWait::Decision { decision, .. }) => Some(decision.clone()),
        Some(WorkflowWait::Answer { .. } | WorkflowWait::Unblocking { .. }) | None => None,
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
        (Some(WorkflowWait::Decision { .. }), _) => Some(format!("kapi {mode} approve {index:03}")),
        (Some(WorkflowWait::Answer { .. } | WorkflowWait::Unblocking { .. }), _) => {
            Some(format!("kapi {mode} resume {index:03}"))
        }
        (None, WorkflowStatus::Active) if !is_driven && entry.about.is_some() => {
            let taker = ModeSpec::takers().next()?;
            Some(format!("kapi {taker} --from {index:03}"))
        }
        (None, WorkflowStatus::Active) if !is_driven => {
            Some(format!("kapi {mode} resume {index:03}"))
        }
        (
            None,
            WorkflowStatus::Active
            | WorkflowStatus::Blocked
            | WorkflowStatus::Completed
            | WorkflowStatus::Failed
            | WorkflowStatus::Abandoned
            | WorkflowStatus::Linked
            | WorkflowStatus::Integrated,
        ) => None,
    }
}

/// Prints rows, with what to type where something waits: many in one piece, as there may be
/// thousands.
pub(crate) fn lines(ui: Ui, rows: &[WorkflowRow]) {
    let width = rows.iter().map(|row| row.id.len()).max().unwrap_or(0);
    let modes = rows.iter().map(|row| row.mode.len()).max().unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        if text.len() >= PIECE_BYTES {
            ui.page(&text);
            text.clear();
        }
        begin(&mut text, &row.id, width);
        text.push_str("  ");
        padded(&mut text, row.mode, modes);
        text.push_str("  ");
        state(&mut text, row);
        if row.attached {
            text.push_str("  (this session)");
        }
        if let Some(branch) = &row.branch {
            text.push_str("  ");
            text.push_str(branch);
        }
        if let Some(fault) = &row.fault {
            begin(&mut text, "", width);
            text.push_str("  failed to ");
            text.push_str(fault);
        }
        for (location, link) in row.links.iter().enumerate() {
            if location == 0 {
                begin(&mut text, "", width);
                text.push_str("  linked: ");
            } else {
                text.push_str(", ");
            }
            text.push_str(link);
        }
        if let Some(next) = &row.next {
            begin(&mut text, "", width);
            text.push_str("  next: ");
            text.push_str(next);
        }
    }
    if !text.is_empty() {
        ui.page(&text);
    }
}

/// Begins a line with a word that has a column of its own.
fn begin(text: &mut String, word: &str, width: usize) {
    if !text.is_empty() {
        text.push('\n');
    }
    padded(text, word, width);
}

fn padded(text: &mut String, word: &str, width: usize) {
    text.push_str(word);
    text.extend(iter::repeat_n(' ', width.saturating_sub(word.len())));
}

fn state(text: &mut String, row: &WorkflowRow) {
    let Some(phase) = &row.phase else {
        text.push_str(&row.status);
        return;
    };
    let location = match &row.subphase {
        Some(subphase) => [phase, "/", subphase],
        None => [phase, "", ""],
    };
    let words: &[&str] = match (row.status.as_str(), &row.pending, &row.driver) {
        ("active", Some(_), _) => &[&location[..], &[", ", words::WAITS]].concat(),
        ("active", None, Some(driver)) => &[&location[..], &[", driven by ", driver]].concat(),
        ("active", None, None) => &location,
        ("blocked", _, _) => &[&["blocked in "], &location[..]].concat(),
        (status, _, _) => &[status],
    };
    text.extend(words.iter().copied());
}
