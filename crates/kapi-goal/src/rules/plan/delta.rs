//! The difference between two plans, whole enough to be recorded as an event.
//!
//! Holds the tasks as they became, not what was asked: applying it follows no rule, so a plan that
//! was recorded stays true when rules change.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::rules::plan::task::{GoalPlanTask, PlanTaskId};
use crate::rules::plan::{Plan, Replan};

/// What became of a plan in one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanDelta {
    /// The tasks that are new or have changed, whole.
    pub written: Vec<GoalPlanTask>,
    /// The ids of all tasks in their order, if that is another than before; others are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Vec<PlanTaskId>>,
    /// The task at hand from now on.
    pub current: Option<PlanTaskId>,
    /// The change of structure this was, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replan: Option<Replan>,
    /// How often the agent was reminded that all tasks have ended.
    pub clean_end_prompts: u32,
}

impl PlanDelta {
    /// Returns the difference between a plan before and after one step.
    #[must_use]
    pub fn between(before: Option<&Plan>, after: &Plan) -> Self {
        let tasks_before = before.map_or(&[][..], |plan| &plan.tasks);
        let known: BTreeMap<&PlanTaskId, &GoalPlanTask> = by_id(tasks_before).collect();
        let is_written = |task: &&GoalPlanTask| known.get(&task.id) != Some(task);
        let is_same_order = tasks_before
            .iter()
            .map(|task| &task.id)
            .eq(after.tasks.iter().map(|task| &task.id));
        let log_before = before.map_or(0, |plan| plan.replan_log.len());
        Self {
            written: after.tasks.iter().filter(is_written).cloned().collect(),
            order: (!is_same_order).then(|| after.tasks.iter().map(|t| t.id.clone()).collect()),
            current: after.current.clone(),
            replan: after.replan_log.get(log_before).cloned(),
            clean_end_prompts: after.clean_end_prompts,
        }
    }

    /// Returns the plan after this step; total, as what was recorded is true.
    #[must_use]
    pub fn apply(&self, before: Option<&Plan>) -> Plan {
        let tasks_before = before.map_or(&[][..], |plan| &plan.tasks);
        let mut tasks: BTreeMap<&PlanTaskId, &GoalPlanTask> = by_id(tasks_before).collect();
        tasks.extend(by_id(&self.written));
        let in_order = |ids: &mut dyn Iterator<Item = &PlanTaskId>| -> Vec<GoalPlanTask> {
            ids.filter_map(|id| tasks.get(id).copied())
                .cloned()
                .collect()
        };
        let tasks = match &self.order {
            Some(order) => in_order(&mut order.iter()),
            None => in_order(&mut tasks_before.iter().map(|task| &task.id)),
        };
        let mut replan_log = before.map_or_else(Vec::new, |plan| plan.replan_log.clone());
        replan_log.extend(self.replan.clone());
        Plan {
            tasks,
            current: self.current.clone(),
            replan_log,
            clean_end_prompts: self.clean_end_prompts,
        }
    }
}

fn by_id(tasks: &[GoalPlanTask]) -> impl Iterator<Item = (&PlanTaskId, &GoalPlanTask)> {
    tasks.iter().map(|task| (&task.id, task))
}
