//! `inventory.json`: which goals and workflows there are, where they stand, which sessions are
//! attached, and the next free index.
//!
//! An index is never given twice, even when its directory is deleted. The entries repeat what
//! the streams say and are rebuilt from them; this file does not know how.

mod shared;
pub mod workflow_entry;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kapi_core::id::{GoalId, PART_NUMBERS_MAX, Slug};
use kapi_core::isolation::SandboxLevel;
use kapi_core::mode::Mode;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_store::codec::{LogPosition, decode};
use kapi_store::error::StoreError;
use kapi_store::layout::ProjectLayout;
use kapi_sys::disk::{Disk, replace_durably};
use kapi_sys::lock::Lock;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use crate::record::inventory::workflow_entry::{Attachment, WorkflowConnection, WorkflowEntry};
use crate::rules::contract::Race;
use crate::rules::state::GoalStatus;

/// The layout of `inventory.json`.
const INVENTORY_VERSION: u32 = 1;
/// How many indexes in a row are tried when their directories appear meanwhile.
const CLAIM_TRIES_MAX: u32 = 1_000;

/// The most sessions that are remembered as attached; the oldest is forgotten then.
const ATTACHMENTS_MAX: usize = 256;

/// The goals and workflows of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    v: u32,
    next_index: u32,
    goals: Vec<GoalEntry>,
    /// Shared with whoever lists them: a project may have thousands.
    #[serde(default, with = "shared")]
    workflows: Vec<Arc<WorkflowEntry>>,
    /// Whether it was made anew from the goals alone; whoever knows workflows puts theirs in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    lacks_workflows: bool,
    /// Which sessions are attached to what: the only thing here that no stream repeats. Losing it
    /// detaches, and nothing else.
    #[serde(default)]
    attachments: Vec<Attachment>,
    // What follows is derived from the workflows at every writing, for those who only read files;
    // Kapi itself passes over it.
    #[serde(default, deserialize_with = "pass_over")]
    active: Vec<GoalId>,
    #[serde(default, deserialize_with = "pass_over")]
    resumable: Vec<GoalId>,
    #[serde(default, deserialize_with = "pass_over")]
    links: Vec<WorkflowConnection>,
}

/// A directory that is to be claimed for a goal or workflow.
#[derive(Debug)]
pub struct NewDirectory<'a> {
    /// The directory above it.
    pub parent: PathBuf,
    /// The name after its index.
    pub slug: &'a Slug,
}

/// One goal in the inventory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoalEntry {
    /// The goal.
    pub id: GoalId,
    /// Where it stands.
    pub status: GoalStatus,
    /// The branch that receives its commit.
    pub branch: String,
    /// Its worktree, once there is one.
    pub worktree: Option<String>,
    /// The isolation around its agent.
    pub sandbox: SandboxLevel,
    /// When this entry last changed, in RFC 3339.
    pub updated: String,
    /// The commit that was proved or accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The race that it is a lane of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub race: Option<Race>,
}

impl Inventory {
    /// Reads the inventory; `None` when it is missing, damaged or of another version.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn read(disk: &dyn Disk, layout: &ProjectLayout) -> Result<Option<Self>, StoreError> {
        let Some(bytes) = disk.read(&layout.inventory(), 0)? else {
            return Ok(None);
        };
        let inventory: Option<Self> = serde_json::from_slice(&bytes).ok();
        Ok(inventory.filter(|inventory| inventory.v == INVENTORY_VERSION))
    }

    /// Builds an inventory anew from the goals; the next index follows the highest directory there is.
    /// It lacks the workflows until [`Self::complete`] puts them in.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn rebuild(
        disk: &dyn Disk,
        layout: &ProjectLayout,
        mut goals: Vec<GoalEntry>,
    ) -> Result<Self, StoreError> {
        goals.sort_by(|a, b| a.id.cmp(&b.id));
        let next_index = highest_index(disk, layout)?.saturating_add(1);
        Ok(Self {
            v: INVENTORY_VERSION,
            next_index,
            goals,
            workflows: Vec::new(),
            lacks_workflows: true,
            attachments: Vec::new(),
            active: Vec::new(),
            resumable: Vec::new(),
            links: Vec::new(),
        })
    }

    /// Returns the goals, sorted by index.
    #[must_use]
    pub fn goals(&self) -> &[GoalEntry] {
        &self.goals
    }

    /// Returns a goal's entry.
    #[must_use]
    pub fn find(&self, goal: &GoalId) -> Option<&GoalEntry> {
        self.goals.iter().find(|entry| entry.id == *goal)
    }

    /// Returns the lowest index that was never given.
    #[must_use]
    pub const fn next_index(&self) -> u32 {
        self.next_index
    }

    /// Puts one goal's entry in, or replaces it.
    pub fn put(&mut self, entry: GoalEntry) {
        self.next_index = self.next_index.max(entry.id.index().saturating_add(1));
        match self.goals.binary_search_by(|known| known.id.cmp(&entry.id)) {
            Ok(idx) => {
                if let Some(known) = self.goals.get_mut(idx) {
                    *known = entry;
                }
            }
            Err(idx) => self.goals.insert(idx, entry),
        }
    }

    /// Returns the workflows, sorted by index.
    #[must_use]
    pub fn workflows(&self) -> &[Arc<WorkflowEntry>] {
        &self.workflows
    }

    /// Returns a workflow's entry.
    #[must_use]
    pub fn find_workflow(&self, workflow: &GoalId) -> Option<&Arc<WorkflowEntry>> {
        let idx = self
            .workflows
            .binary_search_by(|known| known.id.cmp(workflow));
        self.workflows.get(idx.ok()?)
    }

    /// Returns the entry of the workflow whose directory has this name, without reading the name as
    /// an id first.
    #[must_use]
    pub fn find_workflow_named(&self, name: &str) -> Option<&Arc<WorkflowEntry>> {
        let (index, slug) = split_name(name)?;
        let idx = self
            .workflows
            .binary_search_by(|known| sort_key(&known.id).cmp(&(index, slug)));
        self.workflows.get(idx.ok()?)
    }

    /// Tells whether it was made anew from the goals alone.
    #[must_use]
    pub const fn lacks_workflows(&self) -> bool {
        self.lacks_workflows
    }

    /// Puts in every workflow there is, where it was made anew from the goals alone.
    pub fn complete(&mut self, workflows: Vec<WorkflowEntry>) {
        for entry in workflows {
            self.put_workflow(entry);
        }
        self.lacks_workflows = false;
    }

    /// Puts one workflow's entry in, or replaces it.
    pub fn put_workflow(&mut self, entry: WorkflowEntry) {
        self.next_index = self.next_index.max(entry.id.index().saturating_add(1));
        let location = self
            .workflows
            .binary_search_by(|known| known.id.cmp(&entry.id));
        match location {
            Ok(idx) => {
                if let Some(known) = self.workflows.get_mut(idx) {
                    *known = Arc::new(entry);
                }
            }
            Err(idx) => self.workflows.insert(idx, Arc::new(entry)),
        }
    }

    /// Returns what every session is attached to, oldest first.
    #[must_use]
    pub fn attachments(&self) -> &[Attachment] {
        &self.attachments
    }

    /// Attaches a session, which lets go of whatever it was attached to.
    pub fn attach(&mut self, attachment: Attachment) {
        self.detach(&attachment.session);
        self.attachments.push(attachment);
        let n_old = self.attachments.len().saturating_sub(ATTACHMENTS_MAX);
        self.attachments.drain(..n_old);
    }

    /// Detaches a session, and returns what it was attached to.
    pub fn detach(&mut self, session: &str) -> Option<Attachment> {
        let idx = self
            .attachments
            .iter()
            .position(|known| known.session == session)?;
        Some(self.attachments.remove(idx))
    }

    /// Writes the inventory, durably: it alone remembers the indexes of deleted goals.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn write(
        &self,
        disk: &dyn Disk,
        layout: &ProjectLayout,
        _held: &Lock,
    ) -> Result<(), StoreError> {
        let file = layout.inventory();
        let mut derived = self.clone();
        derived.derive();
        let mut bytes =
            serde_json::to_vec_pretty(&derived).map_err(|source| StoreError::Encode {
                file: file.clone(),
                source,
            })?;
        bytes.push(b'\n');
        Ok(replace_durably(disk, &file, &bytes)?)
    }

    /// Claims the next index by making the directory of a goal or workflow.
    ///
    /// The index is durably spent before the directory appears. A claimed directory without
    /// events is neither.
    ///
    /// # Errors
    /// When the disk refuses, or no index is left.
    pub fn claim(
        &mut self,
        disk: &dyn Disk,
        layout: &ProjectLayout,
        new: &NewDirectory<'_>,
        held: &Lock,
    ) -> Result<GoalId, StoreError> {
        let highest = highest_index(disk, layout)?;
        for _ in 0..CLAIM_TRIES_MAX {
            let index = self.next_index.max(highest.saturating_add(1)).max(1);
            let Some(after) = index.checked_add(1) else {
                break;
            };
            self.next_index = after;
            self.write(disk, layout, held)?;
            let id = GoalId::new(index, new.slug.clone());
            if disk.create_dir(&new.parent.join(id.to_string()))? {
                return Ok(id);
            }
        }
        Err(StoreError::IndexesUsedUp {
            directory: new.parent.clone(),
        })
    }

    /// Claims the next name of a goal of a workflow's task, by making its directory. No index is
    /// spent; one that was claimed and holds no events is claimed again.
    ///
    /// # Errors
    /// When the disk refuses, or no name is left.
    pub fn claim_part(
        disk: &dyn Disk,
        layout: &ProjectLayout,
        workflow: &GoalId,
        task: &str,
        _: &Lock,
    ) -> Result<GoalId, StoreError> {
        let directory = layout.goals_dir();
        for number in 1..=PART_NUMBERS_MAX {
            let Ok(id) = GoalId::part_of(workflow, task, number) else {
                break;
            };
            let goal = layout.goal(&id);
            if disk.create_dir(goal.dir())?
                || !has_events(disk, &id, &goal.state(), &goal.events())?
            {
                return Ok(id);
            }
        }
        Err(StoreError::IndexesUsedUp { directory })
    }

    /// Makes the lists that follow from the workflows.
    fn derive(&mut self) {
        let of = |fits: &dyn Fn(&WorkflowEntry) -> bool| -> Vec<GoalId> {
            let fitting = self.workflows.iter().filter(|entry| fits(entry));
            fitting.map(|entry| entry.id.clone()).collect()
        };
        let active = of(&|entry| entry.status == WorkflowStatus::Active);
        let resumable = of(&|entry| !entry.status.is_terminal());
        let links = self.workflows.iter().flat_map(|entry| entry.connections());
        self.links = links.collect();
        self.active = active;
        self.resumable = resumable;
    }
}

/// Returns the goals, sorted by index: the directories whose log has a finished record, or is
/// damaged.
///
/// # Errors
/// When the disk refuses.
pub fn goal_ids(disk: &dyn Disk, layout: &ProjectLayout) -> Result<Vec<GoalId>, StoreError> {
    let mut ids = Vec::new();
    for name in disk.list(&layout.goals_dir())? {
        let Ok(goal) = GoalId::parse(&name) else {
            continue;
        };
        let goal_layout = layout.goal(&goal);
        if has_events(disk, &goal, &goal_layout.state(), &goal_layout.events())? {
            ids.push(goal);
        }
    }
    ids.sort();
    Ok(ids)
}

/// Returns the workflows of a mode, sorted by index: the directories whose log has a finished
/// record, or is damaged. What the inventory knows already is not looked at again.
///
/// # Errors
/// When the disk refuses.
pub fn workflow_ids(
    disk: &dyn Disk,
    layout: &ProjectLayout,
    mode: Mode,
    known: Option<&Inventory>,
) -> Result<Vec<GoalId>, StoreError> {
    let mut ids = Vec::new();
    for name in disk.list(&layout.mode_dir(mode))? {
        let entry = known.and_then(|known| known.find_workflow_named(&name));
        if let Some(entry) = entry.filter(|entry| entry.mode == mode) {
            ids.push(entry.id.clone());
            continue;
        }
        let Ok(id) = GoalId::parse(&name) else {
            continue;
        };
        let workflow = layout.workflow(mode, &id);
        if has_events(disk, &id, &workflow.state(), &workflow.events())? {
            ids.push(id);
        }
    }
    ids.sort();
    Ok(ids)
}

/// Returns the index and the slug of a directory's name, if it is written as an id is.
fn split_name(name: &str) -> Option<(u32, &str)> {
    let (digits, slug) = name.split_once('-')?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    // An index has three digits, and more only where it needs them.
    let is_short = digits.len() == 3 || (digits.len() > 3 && !digits.starts_with('0'));
    let index = digits.parse().ok()?;
    (is_number && is_short).then_some((index, slug))
}

/// Returns the key by which ids are sorted.
fn sort_key(id: &GoalId) -> (u32, &str) {
    (id.index(), id.slug().as_str())
}

/// Passes over a list without reading what is in it.
fn pass_over<'de, D: Deserializer<'de>, T>(list: D) -> Result<Vec<T>, D::Error> {
    IgnoredAny::deserialize(list)?;
    Ok(Vec::new())
}

/// Tells whether a directory was more than claimed: whoever wrote its first record may not have
/// finished.
fn has_events(
    disk: &dyn Disk,
    id: &GoalId,
    state: &Path,
    events: &Path,
) -> Result<bool, StoreError> {
    // A fold is only ever made of accepted records, so the log need not be read.
    if disk.len(state)?.is_some() {
        return Ok(true);
    }
    let log = disk.read(events, 0)?.unwrap_or_default();
    let tail = decode(&id.to_string(), &LogPosition::start(), &log);
    Ok(tail.map_or(true, |tail| !tail.records.is_empty()))
}

/// Returns the highest index of any directory of goals or workflows, claimed ones included.
fn highest_index(disk: &dyn Disk, layout: &ProjectLayout) -> Result<u32, StoreError> {
    let mut names = disk.list(&layout.goals_dir())?;
    for mode in disk.list(&layout.workflows_dir())? {
        names.extend(disk.list(&layout.workflows_dir().join(mode))?);
    }
    let index = |name: &String| GoalId::parse(name).ok().map(|id| id.index());
    Ok(names.iter().filter_map(index).max().unwrap_or(0))
}
