//! What a supervisor has to know: which goals there are, and what each of them needs now.
//!
//! Reads logs and ends waits. Drives nothing, and whether a condition holds is not known here: that
//! is the business of whoever calls. All it remembers can be read again, so it may be killed.

use std::collections::BTreeMap;

use kapi_core::actor::Actor;
use kapi_core::id::GoalId;
use kapi_goal::record::error::EngineError;
use kapi_goal::record::project::Project;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_goal::rules::wait::GoalWait;

/// What a goal needs to get any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need<'a> {
    /// A process that drives it.
    Driver,
    /// Somebody who looks whether its wait is over.
    Watcher(&'a GoalWait),
    /// A person: to approve, to answer, to raise a limit, to resume.
    Person,
    /// Nothing: it has ended.
    Nothing,
}

/// Whether a wait was ended by this call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeOutcome {
    /// It was.
    Now,
    /// The goal does not wait for that any more: somebody else was first.
    Before,
}

/// The goals of a project, as far as a supervisor has read them.
#[derive(Debug, Default)]
pub struct Roster {
    goals: BTreeMap<GoalId, RosterEntry>,
    inventory: Option<Vec<u8>>,
}

/// One goal of the roster.
#[derive(Debug)]
pub struct RosterEntry {
    /// The length of its log before it was read.
    log_bytes: u64,
    /// The goal, or why it cannot be read.
    pub goal: Result<Goal, EngineError>,
}

impl RosterEntry {
    /// Tells whether nothing can become of it without an entry in the inventory.
    fn is_over(&self) -> bool {
        let goal = self.goal.as_ref();
        goal.is_ok_and(|goal| need(goal) == Need::Nothing)
    }
}

impl Roster {
    /// Reads what has changed since the last call, and returns which goals those are.
    ///
    /// Costs one look at the inventory and one at the log of every goal that has not ended, unless
    /// something has changed.
    ///
    /// # Errors
    /// When the disk refuses. A goal that is damaged is an entry all the same.
    pub fn refresh(&mut self, project: &Project<'_>) -> Result<Vec<GoalId>, EngineError> {
        let inventory = project.disk.read(&project.layout.inventory(), 0)?;
        // Whatever makes an ended goal go on changes its status there.
        let has_changed = inventory != self.inventory;
        self.inventory = inventory;
        let mut changed = Vec::new();
        for id in project.goal_ids()? {
            let known = self.goals.get(&id);
            if known.is_some_and(RosterEntry::is_over) && !has_changed {
                continue;
            }
            let Some(log_bytes) = project.disk.len(&project.layout.goal(&id).events())? else {
                continue;
            };
            if known.is_some_and(|known| known.log_bytes == log_bytes) {
                continue;
            }
            let goal = project.load(&id);
            self.goals
                .insert(id.clone(), RosterEntry { log_bytes, goal });
            changed.push(id);
        }
        Ok(changed)
    }

    /// Returns a goal as it was read last.
    #[must_use]
    pub fn goal(&self, id: &GoalId) -> Option<&Goal> {
        self.goals.get(id)?.goal.as_ref().ok()
    }

    /// Returns all goals, sorted by index.
    pub fn entries(&self) -> impl Iterator<Item = (&GoalId, &RosterEntry)> {
        self.goals.iter()
    }
}

/// Returns what a goal needs to get any further.
#[must_use]
pub fn need(goal: &Goal) -> Need<'_> {
    if goal.is_driven() {
        return Need::Driver;
    }
    match (goal.status, &goal.wait) {
        (GoalStatus::Waiting, Some(wait)) => Need::Watcher(wait),
        (
            GoalStatus::Setup
            | GoalStatus::Active
            | GoalStatus::Proposed
            | GoalStatus::Waiting
            | GoalStatus::Blocked
            | GoalStatus::Stalled
            | GoalStatus::Paused,
            _,
        ) => Need::Person,
        (
            GoalStatus::Impossible
            | GoalStatus::Cancelled
            | GoalStatus::Unverified
            | GoalStatus::Done,
            _,
        ) => Need::Nothing,
    }
}

/// Ends a wait. However many see at the same time that it is over, one of them ends it.
///
/// # Errors
/// When there is no such goal, its log is damaged, or the disk refuses.
pub fn wake(
    project: &Project<'_>,
    goal: &GoalId,
    number: u32,
    why: &str,
) -> Result<WakeOutcome, EngineError> {
    let why = why.to_owned();
    match project.submit(goal, &Actor::Engine, &GoalCommand::Wake { number, why }) {
        Ok(_) => Ok(WakeOutcome::Now),
        Err(EngineError::Denied(_)) => Ok(WakeOutcome::Before),
        Err(error) => Err(error),
    }
}
