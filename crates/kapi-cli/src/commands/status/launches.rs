//! The launches of a project as `kapi status` shows them.

use std::collections::BTreeMap;

use kapi_core::text::shortened;
use kapi_launch::log;
use kapi_status::file::{ErrorClass, StatusFile, timestamp};
use kapi_status::perform::writer;
use kapi_status::rules::phase::StatusPhase;
use serde::Serialize;

use crate::context::Context;
use crate::error::Error;
use crate::subject::launches::sandboxes;
use crate::subject::launches::standing::{LaunchNeed, LaunchStanding, standings};
use crate::ui::Ui;

/// Characters of a task in a line.
const TASK_CHARS_MAX: usize = 80;

/// One launch.
#[derive(Debug, Serialize)]
pub(super) struct LaunchRow {
    id: String,
    /// `running`, `stopped` (its process was killed), `failed` or `finished`.
    status: &'static str,
    /// Whether a person has to do something about it.
    waits: bool,
    /// Why its log cannot be trusted.
    fault: Option<String>,
    /// Who has it now.
    holder: Option<String>,
    agent: String,
    task: Option<String>,
    branch: Option<String>,
    /// Where it stands, from its status file, while it runs.
    progress: Option<LaunchProgress>,
    exit_code: Option<i32>,
    error: Option<String>,
    error_class: Option<ErrorClass>,
    advice: Option<String>,
    changed: usize,
    updated: String,
    #[serde(skip)]
    need: LaunchNeed,
}

#[derive(Debug, Serialize)]
struct LaunchProgress {
    phase: StatusPhase,
    percent: u8,
    message: String,
    heartbeat_at: String,
}

/// Returns the launches of the project at hand; none for an agent.
pub(super) fn rows(context: &Context) -> Result<Vec<LaunchRow>, Error> {
    if context.require_human("see launches").is_err() {
        return Ok(Vec::new());
    }
    let found = standings(context)?;
    let files = if found.iter().any(|it| it.need == LaunchNeed::Running) {
        status_files(context)
    } else {
        BTreeMap::new()
    };
    Ok(found.into_iter().map(|it| row(it, &files)).collect())
}

/// Returns the status files by project and id. One that cannot be read says nothing.
fn status_files(context: &Context) -> BTreeMap<(String, String), StatusFile> {
    let listed = writer::list(&sandboxes(context).status_dir());
    let files = listed.unwrap_or_default().into_iter();
    files
        .map(|(_, file)| ((file.project.clone(), file.agent_id.clone()), file))
        .collect()
}

fn row(standing: LaunchStanding, files: &BTreeMap<(String, String), StatusFile>) -> LaunchRow {
    let LaunchStanding {
        location,
        record,
        holder,
        need,
    } = standing;
    let project = record.project.file_name().unwrap_or_default();
    let key = (project.to_string_lossy().into_owned(), record.id.clone());
    let file = files.get(&key).filter(|_| need == LaunchNeed::Running);
    let (request, fault) = match log::at(&location).history() {
        Ok(history) => (history.request, None),
        Err(error) => (None, Some(error.message)),
    };
    LaunchRow {
        status: record.state_word(holder.is_some()),
        waits: need.waits() || fault.is_some(),
        fault,
        holder,
        agent: record.agent,
        task: request.map(|request| shortened(&request.task, TASK_CHARS_MAX)),
        branch: record.branch.map(|branch| branch.holder().to_owned()),
        progress: file.map(|file| LaunchProgress {
            phase: file.phase,
            percent: file.progress,
            message: file.message.clone(),
            heartbeat_at: file.heartbeat_at.clone(),
        }),
        exit_code: record.exit_code,
        error: record.error,
        error_class: record.error_class,
        advice: record.advice,
        changed: record.n_changed,
        updated: timestamp(record.updated_at_ms),
        id: record.id,
        need,
    }
}

impl LaunchRow {
    /// Tells whether nobody has to look at it any more.
    pub(super) fn is_over(&self) -> bool {
        self.need == LaunchNeed::Over && !self.waits
    }

    /// Tells whether a person has to do something about it.
    pub(super) const fn waits(&self) -> bool {
        self.waits
    }
}

/// Lists launches for a person.
pub(super) fn lines(ui: Ui, rows: &[&LaunchRow]) {
    let name = |row: &LaunchRow| format!("launch/{}", row.id);
    let width = rows.iter().map(|row| name(row).len()).max().unwrap_or(0);
    for row in rows {
        let state = match row.need {
            LaunchNeed::Running => row.holder.as_ref().map_or_else(
                || "running".to_owned(),
                |holder| format!("running, held by {holder}"),
            ),
            LaunchNeed::Stopped => "stopped: its process was killed".to_owned(),
            LaunchNeed::Failed => match row.exit_code {
                Some(code) => format!("failed, exit code {code}"),
                None => "failed".to_owned(),
            },
            LaunchNeed::Unmerged => "finished, not merged".to_owned(),
            LaunchNeed::Over => "finished".to_owned(),
        };
        let branch = row.branch.as_deref().unwrap_or_default();
        ui.line(&format!("{:width$}  {state}  {branch}", name(row)));
        if let Some(progress) = &row.progress {
            let LaunchProgress {
                percent, message, ..
            } = progress;
            ui.line(&format!("{:width$}  {percent} %, {message}", ""));
        } else if let Some(task) = &row.task {
            ui.line(&format!("{:width$}  {task}", ""));
        }
        if let Some(fault) = &row.fault {
            ui.line(&format!("{:width$}  failed to {fault}", ""));
        }
        if let Some(error) = &row.error {
            ui.line(&format!("{:width$}  because {error}", ""));
        }
    }
}
