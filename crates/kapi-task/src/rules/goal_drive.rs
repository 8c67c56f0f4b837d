//! A task that drives a goal of a workflow: which workflow, which task of its plan, which goal.
//!
//! Only names. What the goal demands stands in its own contract, what it used in its own account,
//! and neither is known here.

use kapi_core::id::{EffectId, GoalId};
use kapi_core::mode::Mode;
use kapi_goal::rules::plan::task::PlanTaskId;
use serde::{Deserialize, Serialize};

/// What a task that drives a goal is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoalDrive {
    /// The workflow's mode.
    pub mode: Mode,
    /// The workflow.
    pub workflow: GoalId,
    /// The task of its plan.
    pub task: PlanTaskId,
    /// The effect that asked.
    pub effect: EffectId,
    /// The goal.
    pub goal: GoalId,
    /// The machine and directory where the goal's log is, where the queue is shared by several
    /// machines: nobody else can drive it. Without it whoever reads the queue has the goal too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "place")]
    pub location: Option<String>,
}

impl GoalDrive {
    /// Tells whether whoever is at this place can drive the goal.
    #[must_use]
    pub fn is_within(&self, reach: Option<&str>) -> bool {
        self.location.is_none() || self.location.as_deref() == reach
    }
}
