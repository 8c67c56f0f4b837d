//! What is not as it should be in a project, and what ended workflows left behind.
//!
//! Tells only; nothing is mended and nothing removed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::{fs, io};

use kapi_core::failure::chain;
use kapi_core::id::GoalId;
use kapi_goal::record::damage::Damage;
use kapi_goal::record::goal_listing::ListingStatus;
use kapi_goal::record::project::Project;
use kapi_launch::look::size;
use kapi_workflow::record::index::WorkflowSummary;
use kapi_workflow::record::requests::WorkflowOverview;
use serde::Serialize;

use crate::commands::loops::loop_state::troubles;
use crate::commands::status::StatusRow;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel;

/// The directory of the layout before this one.
const OLD_DIRECTORY: &str = ".kapi";

/// Something that is not as it should be.
#[derive(Debug, Serialize)]
pub(super) struct Health {
    /// What.
    pub(super) what: String,
    /// How one sees it.
    pub(super) detail: String,
    /// What to do about it.
    pub(super) hint: Option<String>,
}

/// The worktree of a workflow that has ended.
#[derive(Debug, Serialize)]
pub(super) struct Leftover {
    /// The workflow.
    pub(super) workflow: String,
    /// Its branch, which stays whatever becomes of the worktree.
    pub(super) branch: Option<String>,
    /// The worktree.
    pub(super) worktree: String,
    /// Bytes on disk, working files included.
    pub(super) bytes: u64,
    /// What a person can type to remove it; it stays where its branch is not merged or its files
    /// are in no commit.
    pub(super) command: &'static str,
}

/// Returns what is not as it should be.
pub(super) fn of(
    context: &Context,
    project: &Project<'_>,
    standings: &WorkflowOverview,
) -> Vec<Health> {
    let mut health = Vec::new();
    for listed in &standings.goals {
        if let ListingStatus::Damaged(error) = &listed.state {
            health.push(damaged(&format!("goal {}", listed.id), &listed.id, error));
        }
    }
    for listed in &standings.workflows {
        if let WorkflowSummary::Damaged(error) = &listed.state {
            let what = format!("workflow {}", listed.key);
            health.push(damaged(&what, &listed.key.id, error));
        }
    }
    let old = project.layout.root().join(OLD_DIRECTORY);
    if old.is_dir() && old != context.home.join(OLD_DIRECTORY) {
        health.push(Health {
            what: "old state".to_owned(),
            detail: format!(
                "{} has an older layout; Kapi neither reads nor changes it",
                old.display()
            ),
            hint: Some("remove it yourself when you no longer need it.".to_owned()),
        });
    }
    health
}

/// Returns the loops whose file has an error, that were denied, or whose last run failed.
pub(super) fn loops(context: &Context) -> Vec<Health> {
    let found = kernel::with(context, "kapi status", |kernel| {
        let faults = kernel.loops().faults.into_iter().map(|fault| Health {
            what: fault.file.clone(),
            detail: fault.to_string(),
            hint: Some("until then, nothing triggers this loop.".to_owned()),
        });
        let troubles = troubles(kernel)?.into_iter().map(|trouble| Health {
            what: format!("loop {}", trouble.name),
            detail: trouble.what,
            hint: Some(format!(
                "`kapi loop history {}` shows its runs.",
                trouble.name
            )),
        });
        Ok(faults.chain(troubles).collect())
    });
    match found {
        Ok(health) => health,
        Err(error) if error.exit == Exit::NotFound => Vec::new(),
        Err(error) => vec![Health {
            what: "loops".to_owned(),
            detail: format!("they cannot be listed: {error}"),
            hint: error.hint,
        }],
    }
}

/// Returns what the last audits found, and the branches that are not where a proof left them. One
/// that was deleted is no fault: that is what becomes of a branch that was merged.
pub(super) fn doubts(rows: &[StatusRow], damage: &Damage) -> Vec<Health> {
    let found = damage.iter().map(|(subject, findings)| Health {
        what: subject.clone(),
        detail: format!(
            "the last audit failed to {}",
            findings.first().map_or("trust it", String::as_str)
        ),
        hint: Some("run `kapi audit` for the current state and all findings.".to_owned()),
    });
    let moved = rows.iter().filter_map(|row| {
        let (moved, branch) = (row.moved_branch.as_ref()?, row.branch.as_ref()?);
        moved.is_elsewhere().then(|| Health {
            what: format!("goal {}", row.id),
            detail: moved.sentence(branch),
            hint: Some(format!(
                "`kapi show {}` explains how to use the proved commit.",
                row.id.split('-').next().unwrap_or(&row.id)
            )),
        })
    });
    found.chain(moved).collect()
}

fn damaged(what: &str, id: &GoalId, error: &dyn std::error::Error) -> Health {
    Health {
        what: what.to_owned(),
        detail: format!("its log cannot be trusted: failed to {}", chain(error)),
        hint: Some(format!("`kapi audit {}` lists the damage.", id.reference())),
    }
}

/// Returns the worktrees that workflows which have ended left behind: those in the places where Kapi
/// makes them, whatever a record names.
pub(super) fn leftovers(
    context: &Context,
    project: &Project<'_>,
    standings: &WorkflowOverview,
) -> Result<Vec<Leftover>, Error> {
    let ended = standings.workflows.iter().filter_map(|listed| {
        let WorkflowSummary::Known(entry) = &listed.state else {
            return None;
        };
        (entry.status.is_terminal() && entry.worktree.is_some()).then_some(entry)
    });
    let mut found = Vec::new();
    let mut there: Option<BTreeSet<OsString>> = None;
    for entry in ended {
        let name = OsString::from(entry.id.to_string());
        if there.as_ref().is_some_and(|there| !there.contains(&name)) {
            continue;
        }
        let location = context.location(project, &entry.id)?;
        if there.is_none() {
            // Most were removed long ago: one look at the directory says which.
            there = location.worktree.parent().and_then(names_in);
        }
        if !location.worktree.is_dir() {
            continue;
        }
        found.push(Leftover {
            workflow: entry.id.to_string(),
            branch: entry.branch.clone(),
            bytes: size(&location.worktree) + size(&location.scratch),
            worktree: location.worktree.display().to_string(),
            command: "kapi cleanup",
        });
    }
    Ok(found)
}

/// Returns the names in a directory; `None` where it cannot be read, so that each is looked for.
fn names_in(directory: &Path) -> Option<BTreeSet<OsString>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(BTreeSet::new()),
        Err(_) => return None,
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    names.collect::<Result<_, _>>().ok()
}
