//! Workers: what a workflow has at work for it, and nothing it did not create.
//!
//! A record only: who makes, watches and ends them is the world's affair.

use std::fmt;

use kapi_core::id::{EffectId, GoalId};
use kapi_core::task_id::KernelTaskId;
use serde::{Deserialize, Serialize};

/// The most notes that are kept of a worker.
pub const NOTES_MAX: usize = 20;
/// The most pieces of work that are remembered of a worker.
pub const DISPATCHES_MAX: usize = 64;

/// The name of a worker within its workflow, `w1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(pub String);

impl fmt::Display for WorkerId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// What a worker can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// It drives a goal to its proof.
    Goal,
    /// It answers one question, reading only.
    Question,
}

/// Where a worker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerStatus {
    /// Recorded, with nothing to do yet.
    Prepared,
    /// At work.
    Dispatched,
    /// Its work rests: it waits for something outside.
    Waiting,
    /// Its last work ended.
    Idle,
    /// Its workflow has no more work for it.
    Closed,
}

/// What becomes of what a worker leaves when its workflow ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closeout {
    /// Worktree and branch are kept; `kapi cleanup` lists them.
    KeepWorktree,
    /// Nothing is left of it.
    NothingLeft,
}

/// One piece of work a worker was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dispatch {
    /// The effect that does it.
    pub effect: EffectId,
    /// What: the task of the plan.
    pub what: String,
    /// The goal that does it.
    pub goal: Option<GoalId>,
    /// The task of the kernel that drives the goal.
    #[serde(default)]
    pub task: Option<KernelTaskId>,
    /// Since when, in milliseconds since the epoch.
    pub at_ms: i64,
    /// What came of it, once it ended.
    pub ended: Option<String>,
}

/// A worker of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowWorker {
    /// Its name.
    pub id: WorkerId,
    /// What it can do.
    pub capability: Capability,
    /// The project directory it works for.
    pub workspace: Option<String>,
    /// Where it can be watched: a tmux target that Kapi created.
    pub terminal: Option<String>,
    /// The worktree or sandbox it works in.
    pub isolated: Option<String>,
    /// Where it stands.
    pub status: WorkerStatus,
    /// The last things heard of it, newest last, capped.
    pub notes: Vec<String>,
    /// What it was given, oldest first.
    pub dispatches: Vec<Dispatch>,
    /// What becomes of what it leaves.
    pub closeout: Closeout,
}
