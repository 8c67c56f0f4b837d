//! Keeping the inventory true to the streams of workflows, and listing workflows from both.
//!
//! An entry is believed while the log is as long as it says: a log only grows. Any other workflow is
//! read from its stream.

mod driven;
mod file_of_each;

use std::path::PathBuf;
use std::sync::Arc;

use kapi_core::mode::Mode;
use kapi_core::text::one_line;
use kapi_core::workflow_key::WorkflowKey;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_goal::record::error::EngineError;
use kapi_goal::record::inventory::workflow_entry::{WorkflowEntry, WorkflowWait};
use kapi_goal::record::inventory::{Inventory, workflow_ids};
use kapi_goal::record::project::Project;
use kapi_machine::opened::OpenStream;
use kapi_store::timestamp::format_ms;
use kapi_sys::disk::DiskError;

use crate::record::error::WorkflowError;
use crate::record::index::file_of_each::FileOfEach;
use crate::record::machine::{WorkflowMachine, stream};
use crate::rules::mode_spec::WorkflowStage;
use crate::rules::state::Workflow;

/// The most characters of a purpose that the inventory repeats.
const PURPOSE_CHARS_MAX: usize = 120;
/// The most characters of what an interview is about.
const ABOUT_CHARS_MAX: usize = 600;

/// One workflow in a listing.
#[derive(Debug)]
pub struct WorkflowListingEntry {
    /// The workflow.
    pub key: WorkflowKey,
    /// What is known of it.
    pub state: WorkflowSummary,
}

/// What a listing knows of a workflow.
#[derive(Debug)]
pub enum WorkflowSummary {
    /// Its stream is sound. Shared with the inventory that says so.
    Known(Arc<WorkflowEntry>),
    /// Its stream cannot be trusted or read.
    Damaged(WorkflowError),
}

/// Returns every workflow there is, sorted by index.
pub(crate) fn list(
    project: &Project<'_>,
    inventory: Option<&Inventory>,
) -> Result<Vec<WorkflowListingEntry>, EngineError> {
    let mut listed = Vec::new();
    for mode in Mode::ALL {
        let ids = workflow_ids(project.disk, &project.layout, mode, inventory)?;
        let Some(first) = ids.first() else {
            continue;
        };
        let mut log = FileOfEach::of_mode(&project.layout.workflow(mode, first).events());
        let logs: Vec<PathBuf> = ids.iter().map(|id| log.of(id).to_path_buf()).collect();
        let lens = project.disk.lens(&project.layout.mode_dir(mode), &logs);
        for (id, len) in ids.into_iter().zip(lens) {
            let key = WorkflowKey { mode, id };
            let state = state(project, &key, inventory, len);
            listed.push(WorkflowListingEntry { key, state });
        }
    }
    listed.sort_by(|a, b| a.key.id.cmp(&b.key.id));
    Ok(listed)
}

/// Returns the inventory as it is on disk, or one made from the streams, with every workflow in it.
pub(crate) fn read_or_rebuild(project: &Project<'_>) -> Result<Inventory, EngineError> {
    let mut inventory = kapi_goal::record::goal_entries::read_or_rebuild(project)?;
    if inventory.lacks_workflows() {
        inventory.complete(rebuild(project)?);
    }
    Ok(inventory)
}

/// Returns the entries of every sound workflow, read from the streams.
fn rebuild(project: &Project<'_>) -> Result<Vec<WorkflowEntry>, EngineError> {
    let sound = |listed: WorkflowListingEntry| match listed.state {
        WorkflowSummary::Known(entry) => Some(Arc::unwrap_or_clone(entry)),
        // A damaged one keeps its index by its directory, and its fault is told when listed.
        WorkflowSummary::Damaged(_) => None,
    };
    Ok(list(project, None)?.into_iter().filter_map(sound).collect())
}

/// Returns what the inventory repeats of a workflow, apart from when that was and how long its log
/// was.
pub(crate) fn row(workflow: &Workflow) -> WorkflowEntry {
    let (phase, subphase) = workflow.phase();
    let branch = workflow.body.rules().branch();
    WorkflowEntry {
        id: workflow.id.clone(),
        mode: workflow.mode(),
        purpose: cut(&workflow.purpose, PURPOSE_CHARS_MAX),
        status: workflow.status,
        phase: phase.to_owned(),
        subphase: subphase.map(str::to_owned),
        waits: waits(workflow),
        about: about(workflow),
        branch: branch.map(|branch| branch.name.clone()),
        worktree: branch.map(|branch| branch.worktree.clone()),
        links: workflow.links.clone(),
        updated: String::new(),
        log_bytes: 0,
    }
}

pub(super) fn entry(project: &Project<'_>, workflow: &Workflow, log_bytes: u64) -> WorkflowEntry {
    WorkflowEntry {
        updated: format_ms(project.clock.now_ms()),
        log_bytes,
        ..row(workflow)
    }
}

fn state(
    project: &Project<'_>,
    key: &WorkflowKey,
    inventory: Option<&Inventory>,
    log_bytes: Result<Option<u64>, DiskError>,
) -> WorkflowSummary {
    match state_of(project, key, inventory, log_bytes) {
        Ok(entry) => WorkflowSummary::Known(entry),
        Err(error) => WorkflowSummary::Damaged(error),
    }
}

fn state_of(
    project: &Project<'_>,
    key: &WorkflowKey,
    inventory: Option<&Inventory>,
    log_bytes: Result<Option<u64>, DiskError>,
) -> Result<Arc<WorkflowEntry>, WorkflowError> {
    let known = inventory
        .and_then(|inventory| inventory.find_workflow(&key.id))
        .filter(|entry| entry.mode == key.mode);
    if let Some(entry) = known
        && log_bytes? == Some(entry.log_bytes)
    {
        return Ok(Arc::clone(entry));
    }
    let open = OpenStream::<WorkflowMachine>::load(stream(project, key))?;
    let log_bytes = open.log().position().offset;
    let not_found = || WorkflowError::NotFound {
        workflow: key.clone(),
    };
    let workflow = open.into_state().ok_or_else(not_found)?;
    let entry = entry(project, &workflow, log_bytes);
    Ok(Arc::new(since(known.map(Arc::as_ref), entry)))
}

/// Tells whether the inventory may keep what it repeats of a workflow while that goes on.
///
/// A part of a phase that begins alone is no reason to write it: whoever lists workflows sees that the log
/// has grown and reads it, and the last part stands in the inventory once nothing more is done.
pub(super) fn is_listed_alike(before: &WorkflowEntry, workflow: &Workflow) -> bool {
    let mut after = row(workflow);
    after.subphase.clone_from(&before.subphase);
    before.says_the_same(&after)
}

/// Tells whether an entry says the same as another from a log at least as long.
pub(super) fn is_as_new(known: &WorkflowEntry, entry: &WorkflowEntry) -> bool {
    known.log_bytes > entry.log_bytes
        || (known.log_bytes == entry.log_bytes && known.says_the_same(entry))
}

/// Keeps when it last changed, where it has not.
pub(super) fn since(known: Option<&WorkflowEntry>, mut entry: WorkflowEntry) -> WorkflowEntry {
    if let Some(known) = known.filter(|known| known.says_the_same(&entry)) {
        entry.updated.clone_from(&known.updated);
    }
    entry
}

fn waits(workflow: &Workflow) -> Option<WorkflowWait> {
    if let Some(blocked) = &workflow.blocked {
        let reason = blocked.reason.clone();
        return Some(WorkflowWait::Unblocking { reason });
    }
    if workflow.status != WorkflowStatus::Active {
        return None;
    }
    if let Some(pending) = &workflow.pending {
        return Some(WorkflowWait::Decision {
            decision: pending.decision.as_str().to_owned(),
            since_ms: pending.since_ms,
        });
    }
    let question = workflow.body.rules().open_question()?;
    Some(WorkflowWait::Answer {
        round: question.round,
    })
}

/// What was approved and handed over, and nothing was started from.
fn about(workflow: &Workflow) -> Option<String> {
    let mode = workflow.body.rules();
    let (phase, _) = mode.phase();
    if phase.stage != WorkflowStage::Handover || workflow.status != WorkflowStatus::Active {
        return None;
    }
    let spec = mode.handover()?;
    let intents = spec.intent.iter().map(|item| item.text.as_str());
    let words: Vec<&str> = std::iter::once(spec.goal.as_str()).chain(intents).collect();
    Some(cut(&words.join(" "), ABOUT_CHARS_MAX))
}

fn cut(text: &str, chars_max: usize) -> String {
    one_line(text).chars().take(chars_max).collect()
}
