//! What a supervisor did and what it leaves, also of one that took over from another in its process.

use std::collections::{BTreeMap, BTreeSet};

use kapi_core::id::GoalId;
use kapi_core::task_id::KernelTaskId;
use kapi_task::rules::task_state::KernelTaskState;

/// What a supervisor did, and what it leaves.
#[derive(Debug, Default)]
pub(super) struct SupervisorTally {
    /// Goals whose wait it ended.
    pub(super) woken: BTreeSet<GoalId>,
    /// Goals that it drove.
    pub(super) driven: BTreeSet<GoalId>,
    /// Goals that it could not read, look at or drive, when it was last tried.
    pub(super) failed: BTreeSet<GoalId>,
    /// Goals that are parked now.
    pub(super) parked: BTreeSet<GoalId>,
    /// Active goals that nobody drives now.
    pub(super) undriven: BTreeSet<GoalId>,
    /// What became of tasks.
    pub(super) tasks: TaskTally,
}

impl SupervisorTally {
    /// Adds what a supervisor did that took over from the one before; what is left is as it says.
    pub(super) fn add(&mut self, later: Self) {
        self.woken.extend(later.woken);
        self.driven.extend(later.driven);
        self.failed = later.failed;
        self.parked = later.parked;
        self.undriven = later.undriven;
        self.tasks.worked.extend(later.tasks.worked);
        self.tasks.waiting = later.tasks.waiting;
    }
}

/// What became of tasks here.
#[derive(Debug, Clone, Default)]
pub(super) struct TaskTally {
    /// Tasks that were worked on here, with where they stand.
    pub(super) worked: BTreeMap<KernelTaskId, KernelTaskState>,
    /// Tasks that wait.
    pub(super) waiting: usize,
}
