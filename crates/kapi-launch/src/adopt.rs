//! Finishing a launch whose launcher was killed after its agent had ended well: its work is committed
//! where it was not, and the agent is not run again.
//!
//! Only for launches that nobody goes on with by hand. Whether the work is still wanted is the caller's
//! to know.

use kapi_core::agent_end::AgentEnd;
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session::RepositorySession;
use kapi_sys::cancel::Cancel;
use kapi_sys::process::ProcessEnd;

use super::agent::AgentEnding;
use super::branch::local;
use super::error::LaunchError;
use super::event::LaunchHistory;
use super::finish::SandboxWork;
use super::kept::{changes, commit_time_ms, list, published, take};
use super::paths::SandboxPaths;
use super::record::{LaunchState, SandboxRecord, WorkState};
use super::result::{LaunchResult, conclude};
use super::{ended, log, prepare, progress};

/// A commit as a launch makes it.
#[derive(Debug, Clone, Copy)]
pub struct CommitNote<'a> {
    /// What it says.
    pub message: &'a str,
    /// When it is made, in milliseconds since the epoch.
    pub now_ms: i64,
}

/// Finishes a launch; `None` where its agent has not ended well, somebody uses the sandbox, or what it
/// made is not where it was put.
///
/// # Errors
/// When the work cannot be read or committed.
pub fn adopt(
    grants: &HostGrants,
    location: &SandboxPaths,
    note: CommitNote<'_>,
) -> Result<Option<LaunchResult>, LaunchError> {
    let Ok(_held) = location.hold("kapi task") else {
        return Ok(None);
    };
    ended::bring_in(location, note.now_ms)?;
    let log = log::at(location);
    let Some(record) = log.held()? else {
        return Ok(None);
    };
    let Some(agent) = finished(&log.history()?) else {
        return Ok(None);
    };
    if !record.project.is_dir() {
        return Ok(None);
    }
    let mut launched = conclude(&agent, record);
    let is_there = match &launched.record.branch {
        Some(_) => {
            let project = launched.record.project.clone();
            let repo = RepositorySession::open(grants, &project, &Cancel::new())?;
            committed(grants, location, &repo, note, &mut launched)?
        }
        None => {
            let layer = prepare::open_layer(location)?;
            let lower = prepare::lower(&launched.record)?;
            list(&layer, &lower, &mut launched)?;
            true
        }
    };
    if !is_there {
        return Ok(None);
    }
    launched.record.exit_code = Some(0);
    launched.record.n_changed = launched.changed.len();
    if launched.record.state == LaunchState::Running {
        let LaunchResult { record, usage, .. } = &launched;
        launched.record = log.end(record.clone(), *usage, note.now_ms)?;
    }
    Ok(Some(launched))
}

/// Tells whether the agent of a launch has ended well, and nobody has what came of it on record. Work
/// that could not be committed is done again.
#[must_use]
pub fn is_unsettled(location: &SandboxPaths) -> bool {
    let is_finished = |history: LaunchHistory| {
        let is_lacking = |sandbox: &SandboxRecord| {
            let is_pending = sandbox.work == WorkState::Pending && sandbox.branch.is_some();
            is_pending && sandbox.state == LaunchState::Finished
        };
        history.finished_agent().is_some() && !history.sandbox.as_ref().is_some_and(is_lacking)
    };
    ended::is_there(location) || log::at(location).history().is_ok_and(is_finished)
}

/// Puts on record that what came of a launch is known where it was asked for.
///
/// # Errors
/// When the log is damaged, or the disk refuses.
pub fn settle(location: &SandboxPaths, now_ms: i64) -> Result<(), LaunchError> {
    log::at(location).settle(now_ms)?;
    ended::forget(location)
}

/// Returns how the agent of the last launch ended, if it ended well.
pub(crate) fn finished(history: &LaunchHistory) -> Option<AgentEnding> {
    let agent = history.finished_agent()?;
    Some(AgentEnding {
        exit_code: agent.exit_code,
        agent_end: Some(AgentEnd::Finished),
        process_end: ProcessEnd::Exited(agent.exit_code),
        error: None,
        message: agent.message.clone(),
        grade: agent.grade.clone(),
        usage: history.run_used.unwrap_or_default(),
    })
}

/// Finds the commit of the work, or makes it; tells whether it is on its branch.
fn committed(
    grants: &HostGrants,
    location: &SandboxPaths,
    repo: &RepositorySession,
    note: CommitNote<'_>,
    launched: &mut LaunchResult,
) -> Result<bool, LaunchError> {
    let Some(branch) = launched.record.branch.clone() else {
        return Ok(false);
    };
    let repository = &repo.repository;
    let is_finished = launched.record.state == LaunchState::Finished;
    let commit = match launched.record.work {
        WorkState::Committed if is_finished => branch.commit.clone(),
        // It could not be committed, and why was reported.
        WorkState::Pending if is_finished => return Ok(false),
        WorkState::Committed | WorkState::Pending => published(&launched.record, repo),
    };
    if let Some(commit) = commit {
        if local(repository, branch.holder()).is_none_or(|at| at.as_str() != commit) {
            return Ok(false);
        }
        launched.changed = changes(repository, &branch.start, &commit)?;
        take(launched, Some(commit));
        return Ok(true);
    }
    if is_finished {
        take(launched, None);
        return Ok(true);
    }
    let ready = prepare::found(location, &launched.record, Some(repo))?;
    progress::forget(&ready.written)?;
    let work = SandboxWork {
        repo,
        ready: &ready,
        record: &launched.record,
    };
    let at_ms = commit_time_ms(repo, &launched.record, note.now_ms);
    let made = work.commit(grants, location, note.message, at_ms)?;
    if made.landed.is_some() {
        return Ok(false);
    }
    launched.changed = made.changed;
    launched.left_out = made.left_out;
    take(launched, made.commit.map(|commit| commit.to_string()));
    Ok(true)
}
