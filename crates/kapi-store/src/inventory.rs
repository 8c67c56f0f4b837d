//! `inventory.json`: which goals there are, where they stand, and the next free index.
//!
//! An index is never given twice, even when its directory is deleted. The entries repeat what
//! the streams say and are rebuilt from them; this file does not know how.

use kapi_core::goal::contract::{Race, SandboxLevel};
use kapi_core::goal::state::Status;
use kapi_core::id::{GoalId, Slug};
use kapi_sys::disk::{Disk, replace_durably};
use kapi_sys::lock::Lock;
use serde::{Deserialize, Serialize};

use crate::codec::{Position, decode};
use crate::error::StoreError;
use crate::layout::ProjectLayout;

/// The layout of `inventory.json`.
const INVENTORY_VERSION: u32 = 1;
/// How many indexes in a row are tried when their directories appear meanwhile.
const CLAIM_TRIES_MAX: u32 = 1_000;

/// The goals of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    v: u32,
    next_index: u32,
    goals: Vec<Entry>,
}

/// One goal in the inventory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The goal.
    pub id: GoalId,
    /// Where it stands.
    pub status: Status,
    /// The branch that receives its commit.
    pub branch: String,
    /// Its worktree, once there is one.
    pub worktree: Option<String>,
    /// The isolation around its agent.
    pub sandbox: SandboxLevel,
    /// When this entry last changed, in RFC 3339.
    pub updated: String,
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

    /// Builds an inventory anew; the next index follows the highest directory there is.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn rebuild(
        disk: &dyn Disk,
        layout: &ProjectLayout,
        mut goals: Vec<Entry>,
    ) -> Result<Self, StoreError> {
        goals.sort_by(|a, b| a.id.cmp(&b.id));
        let next_index = highest_index(disk, layout)?.saturating_add(1);
        Ok(Self {
            v: INVENTORY_VERSION,
            next_index,
            goals,
        })
    }

    /// Returns the goals, sorted by index.
    #[must_use]
    pub fn goals(&self) -> &[Entry] {
        &self.goals
    }

    /// Returns a goal's entry.
    #[must_use]
    pub fn find(&self, goal: &GoalId) -> Option<&Entry> {
        self.goals.iter().find(|entry| entry.id == *goal)
    }

    /// Returns the lowest index that was never given.
    #[must_use]
    pub const fn next_index(&self) -> u32 {
        self.next_index
    }

    /// Puts one goal's entry in, or replaces it.
    pub fn put(&mut self, entry: Entry) {
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
        let mut bytes = serde_json::to_vec_pretty(self).map_err(|source| StoreError::Encode {
            file: file.clone(),
            source,
        })?;
        bytes.push(b'\n');
        Ok(replace_durably(disk, &file, &bytes)?)
    }

    /// Claims the next index by making the goal's directory.
    ///
    /// The index is durably spent before the directory appears. A claimed directory without
    /// events is not a goal.
    ///
    /// # Errors
    /// When the disk refuses, or no index is left.
    pub fn claim(
        &mut self,
        disk: &dyn Disk,
        layout: &ProjectLayout,
        slug: &Slug,
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
            let goal = GoalId::new(index, slug.clone());
            if disk.create_dir(layout.goal(&goal).dir())? {
                return Ok(goal);
            }
        }
        Err(StoreError::IndexesUsedUp {
            directory: layout.goals_dir(),
        })
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
        if has_events(disk, layout, &goal)? {
            ids.push(goal);
        }
    }
    ids.sort();
    Ok(ids)
}

/// Tells whether a directory was more than claimed: whoever wrote its first record may not have
/// finished.
fn has_events(disk: &dyn Disk, layout: &ProjectLayout, goal: &GoalId) -> Result<bool, StoreError> {
    let layout = layout.goal(goal);
    // A fold is only ever made of accepted records, so the log need not be read.
    if disk.len(&layout.state())?.is_some() {
        return Ok(true);
    }
    let log = disk.read(&layout.events(), 0)?.unwrap_or_default();
    let tail = decode(&goal.to_string(), &Position::start(), &log);
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
