//! What a replan asks for: the six operations, as an agent writes them.
//!
//! Knows their shape only; whether one is legal is decided against a plan.

use serde::{Deserialize, Serialize};

use crate::rules::plan::task::{GoalPlanTask, PlanTaskId};

/// One change to the structure of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "op",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Operation {
    /// Adds a task that surfaced.
    Insert {
        /// The task.
        task: GoalPlanTask,
        /// The task it is listed after; at the end when nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        insert_after: Option<PlanTaskId>,
    },
    /// Takes out a task that is moot; what depended on it no longer does.
    Remove {
        /// The task.
        task_id: PlanTaskId,
    },
    /// Writes a task anew under its id; what was learnt stays.
    Replace {
        /// The task.
        task_id: PlanTaskId,
        /// What it is from now on.
        task: GoalPlanTask,
    },
    /// Makes several tasks of one.
    ///
    /// A part that names no dependency gets those of the task. What depended on the task depends
    /// on every part. The first part takes over what was learnt.
    Split {
        /// The task.
        task_id: PlanTaskId,
        /// Its parts; one may keep its id.
        into: Vec<GoalPlanTask>,
    },
    /// Makes one task of several.
    ///
    /// If it names no dependency, it gets those of all of them. What depended on any of them
    /// depends on it. It takes over what was learnt.
    Merge {
        /// The tasks.
        task_ids: Vec<PlanTaskId>,
        /// What they become; it may keep one of their ids.
        into: GoalPlanTask,
    },
    /// Gives a task other dependencies.
    Reorder {
        /// The task.
        task_id: PlanTaskId,
        /// What must have ended before it, from now on.
        dependencies: Vec<PlanTaskId>,
    },
}

impl Operation {
    /// Returns the operation's name, as it stands in JSON.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Insert { .. } => "insert",
            Self::Remove { .. } => "remove",
            Self::Replace { .. } => "replace",
            Self::Split { .. } => "split",
            Self::Merge { .. } => "merge",
            Self::Reorder { .. } => "reorder",
        }
    }
}
