//! Keeping the inventory true to the streams of goals, and listing goals from both.
//!
//! A goal that has ended cannot change, so its entry is believed; any other is read from its
//! stream.

use kapi_store::timestamp::format_ms;

use crate::record::error::EngineError;
use crate::record::goal_listing::{GoalListingEntry, ListingStatus};
use crate::record::inventory::{GoalEntry, Inventory, goal_ids};
use crate::record::project::Project;
use crate::rules::state::Goal;

/// Returns the inventory as it is on disk, or one made from the streams of goals.
pub fn read_or_rebuild(project: &Project<'_>) -> Result<Inventory, EngineError> {
    if let Some(inventory) = Inventory::read(project.disk, &project.layout)? {
        return Ok(inventory);
    }
    let mut goals = Vec::new();
    for id in goal_ids(project.disk, &project.layout)? {
        // A damaged goal keeps its index by its directory, and its fault is told when listed.
        if let Ok(goal) = project.load(&id) {
            goals.push(entry(project, &goal));
        }
    }
    Ok(Inventory::rebuild(project.disk, &project.layout, goals)?)
}

/// Brings a goal's entry up to date, if it is not.
pub(crate) fn note(project: &Project<'_>, goal: &Goal) -> Result<(), EngineError> {
    let is_noted = |inventory: &Inventory| {
        inventory.find(&goal.id).is_some_and(|known| {
            known.status == goal.status
                && known.branch == goal.contract.branch
                && known.worktree == goal.workspace
                && known.commit == goal.result
        })
    };
    if Inventory::read(project.disk, &project.layout)?
        .as_ref()
        .is_some_and(is_noted)
    {
        return Ok(());
    }
    let held = project.lock()?;
    let mut inventory = read_or_rebuild(project)?;
    inventory.put(entry(project, goal));
    Ok(inventory.write(project.disk, &project.layout, &held)?)
}

/// Lists every goal there is.
pub(crate) fn list(project: &Project<'_>) -> Result<Vec<GoalListingEntry>, EngineError> {
    let inventory = Inventory::read(project.disk, &project.layout)?;
    list_with(project, inventory.as_ref())
}

/// Lists every goal there is, with an inventory that was read before.
pub fn list_with(
    project: &Project<'_>,
    inventory: Option<&Inventory>,
) -> Result<Vec<GoalListingEntry>, EngineError> {
    let ids = goal_ids(project.disk, &project.layout)?;
    let state = |id| {
        let known = inventory.and_then(|inventory| inventory.find(id));
        match known.filter(|entry| entry.status.is_terminal()) {
            Some(entry) => ListingStatus::Known(entry.clone()),
            None => match project.load(id) {
                Ok(goal) => ListingStatus::Known(entry_since(project, &goal, known)),
                Err(error) => ListingStatus::Damaged(error),
            },
        }
    };
    Ok(ids
        .iter()
        .map(|id| GoalListingEntry {
            id: id.clone(),
            state: state(id),
        })
        .collect())
}

fn entry_since(project: &Project<'_>, goal: &Goal, known: Option<&GoalEntry>) -> GoalEntry {
    let mut entry = entry(project, goal);
    if let Some(known) = known.filter(|known| known.status == goal.status) {
        entry.updated.clone_from(&known.updated);
    }
    entry
}

fn entry(project: &Project<'_>, goal: &Goal) -> GoalEntry {
    GoalEntry {
        id: goal.id.clone(),
        status: goal.status,
        branch: goal.contract.branch.clone(),
        worktree: goal.workspace.clone(),
        sandbox: goal.contract.sandbox,
        updated: format_ms(project.clock.now_ms()),
        commit: goal.result.clone(),
        race: goal.contract.race.clone(),
    }
}
