//! The plan of a goal: tasks that wait for each other, made once and changed in whole batches.
//!
//! Pure rules: a change gives a new plan or is refused, and then nothing has changed. In every
//! plan ids are unique, dependencies are known and without a circle, `blocks` mirrors them, and a
//! done task stays as it is. Knows no goal, file, clock or model.

pub mod delta;
pub mod denied;
pub mod distilled;
mod draft;
pub mod graph;
pub mod operation;
pub mod patch;
#[cfg(test)]
mod props;
mod sound;
pub mod task;
pub mod task_list;
pub mod tasks_file;
#[cfg(test)]
mod tests;
mod visible;
mod yaml;

use std::collections::BTreeSet;

use kapi_core::text::one_line;
use serde::{Deserialize, Serialize};

use crate::rules::plan::denied::PlanDenied;
use crate::rules::plan::draft::PlanDraft;
use crate::rules::plan::operation::Operation;
use crate::rules::plan::patch::TaskPatch;
use crate::rules::plan::sound::{check_incoming, check_size, sound};
use crate::rules::plan::task::{GoalPlanTask, PlanTaskId, REPLAN_PREFIX, TaskPhase, TaskStatus};

/// The most tasks of a plan.
pub const TASKS_MAX: usize = 1_000;
/// The most text in all tasks of a plan.
pub const PLAN_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most operations of one replan.
pub const OPERATIONS_MAX: usize = 200;
/// How often a plan may be changed: one that never settles is not a plan.
pub const REPLANS_MAX: usize = 1_000;
/// The longest reason of a replan, in bytes: it is repeated in every task it affects.
pub const REASON_BYTES_MAX: usize = 1_000;
/// How often an agent is reminded that all tasks have ended, before the loop pauses.
pub const CLEAN_END_PROMPTS_MAX: u32 = 2;

/// The tasks of a goal, where work on them stands, and why they are these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Unique ids, known dependencies without a circle, `blocks` derived.
    tasks: Vec<GoalPlanTask>,
    /// A task of this plan that has not ended.
    current: Option<PlanTaskId>,
    replan_log: Vec<Replan>,
    clean_end_prompts: u32,
}

/// One change of the plan's structure, for the log that people read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replan {
    /// When, in milliseconds since the epoch.
    pub at_ms: i64,
    /// Why, in one line.
    pub reason: String,
    /// How many operations it had.
    pub operations: u32,
}

/// How many tasks stand where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskCounts {
    /// All of them.
    pub total: u32,
    /// Done.
    pub done: u32,
    /// Under way.
    pub in_progress: u32,
    /// Kept from going on.
    pub blocked: u32,
    /// Not begun.
    pub pending: u32,
    /// Left out on purpose.
    pub skipped: u32,
}

/// What the end of a turn means for the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CleanEnd {
    /// There is a task that has not ended.
    NotYet,
    /// All tasks have ended and the agent has not been reminded often enough.
    Prompt,
    /// All tasks have ended, and reminding did not help: a person takes over.
    Pause,
}

impl Plan {
    /// Makes the plan of a goal that has none.
    ///
    /// What a task says it blocks becomes a dependency of the other; afterwards `blocks` is
    /// derived. Work begins with the first task that is in progress, or else the first ready one.
    ///
    /// # Errors
    /// When there is a plan, or the tasks break a rule.
    pub fn make(existing: Option<&Self>, tasks: &[GoalPlanTask]) -> Result<Self, PlanDenied> {
        if let Some(plan) = existing {
            let done = plan.tasks.iter().filter(|task| is_done(task)).count();
            let tasks = plan.tasks.len();
            return Err(PlanDenied::PlanExists { tasks, done });
        }
        check_incoming(tasks)?;
        let tasks = sound(PlanDraft::incoming(tasks))?;
        let mut plan = Self {
            tasks,
            current: None,
            replan_log: Vec::new(),
            clean_end_prompts: 0,
        };
        plan.settle_current();
        Ok(plan)
    }

    /// Changes the structure of the plan by a batch of operations, all or none.
    ///
    /// They are applied in their order; dependencies are checked for the whole at the end, so one
    /// may name a task that a later one brings in. Every affected task learns the reason.
    ///
    /// # Errors
    /// When the reason is blank, an operation is not legal, or the result would not be sound.
    pub fn replan(
        &self,
        operations: &[Operation],
        reason: &str,
        at_ms: i64,
    ) -> Result<Self, PlanDenied> {
        let reason = self.preflight(operations, reason)?;
        let mut draft = PlanDraft::of(&self.tasks);
        for (index, operation) in operations.iter().enumerate() {
            draft
                .apply(index, operation)
                .map_err(|fault| PlanDenied::Operation {
                    index,
                    name: operation.name(),
                    fault,
                })?;
        }
        let learning = format!("{REPLAN_PREFIX}{reason}");
        for task in &mut draft.tasks {
            let is_affected = draft.written.contains_key(&task.id);
            if is_affected && task.learnings.last() != Some(&learning) {
                task.learnings.push(learning.clone());
            }
        }
        let mut plan = self.clone();
        plan.tasks = sound(draft)?;
        plan.replan_log.push(Replan {
            at_ms,
            reason,
            operations: u32::try_from(operations.len()).unwrap_or(u32::MAX),
        });
        plan.clean_end_prompts = 0;
        plan.settle_current();
        Ok(plan)
    }

    /// Changes one task that is not done; done tasks take nothing more, not even a note.
    ///
    /// Lists replace, `add…` appends, empty notes remove the notes. A patch that would leave a
    /// done task as it is passes, so that a repeated call does no harm.
    ///
    /// # Errors
    /// When there is no such task, it is done, or it would break a rule.
    pub fn update(&self, id: &PlanTaskId, patch: &TaskPatch) -> Result<Self, PlanDenied> {
        let not_found = || PlanDenied::NotFound { task: id.clone() };
        let location = self.tasks.iter().position(|task| task.id == *id);
        let location = location.ok_or_else(not_found)?;
        let mut plan = self.clone();
        let task = &mut plan.tasks[location];
        patch.apply(task).map_err(|fault| PlanDenied::BadTask {
            task: id.clone(),
            fault,
        })?;
        let (is_changed, was_done) = (
            *task != self.tasks[location],
            is_done(&self.tasks[location]),
        );
        if was_done && is_changed {
            return Err(PlanDenied::DoneImmutable { task: id.clone() });
        }
        check_size(&plan.tasks)?;
        match patch.status {
            Some(TaskStatus::InProgress) => plan.current = Some(id.clone()),
            Some(
                TaskStatus::Pending | TaskStatus::Done | TaskStatus::Blocked | TaskStatus::Skipped,
            )
            | None => plan.settle_current(),
        }
        if !plan.all_ended() {
            plan.clean_end_prompts = 0;
        }
        Ok(plan)
    }

    /// Returns the tasks in their order.
    #[must_use]
    pub fn tasks(&self) -> &[GoalPlanTask] {
        &self.tasks
    }

    /// Returns one task.
    #[must_use]
    pub fn task(&self, id: &PlanTaskId) -> Option<&GoalPlanTask> {
        self.tasks.iter().find(|task| task.id == *id)
    }

    /// Returns the task at hand, which has not ended.
    #[must_use]
    pub fn current(&self) -> Option<&GoalPlanTask> {
        self.task(self.current.as_ref()?)
    }

    /// Returns the phase of the task at hand, which the goal follows.
    #[must_use]
    pub fn phase(&self) -> Option<TaskPhase> {
        self.current().map(|task| task.phase)
    }

    /// Returns what was learnt, with the task it was learnt in, in the order of the tasks.
    ///
    /// Reasons of replans are left out: they are in the log.
    #[must_use]
    pub fn learnings(&self) -> Vec<(&PlanTaskId, &str)> {
        let mut lines = self.lines(|task| &task.learnings);
        lines.retain(|(_, line)| !line.starts_with(REPLAN_PREFIX));
        lines
    }

    /// Returns what went wrong, with the task it went wrong in, in the order of the tasks.
    #[must_use]
    pub fn gotchas(&self) -> Vec<(&PlanTaskId, &str)> {
        self.lines(|task| &task.gotchas)
    }

    /// Returns every change of the structure, the first one first.
    #[must_use]
    pub fn replan_log(&self) -> &[Replan] {
        &self.replan_log
    }

    /// Returns the first pending task whose dependencies have all ended.
    ///
    /// A skipped dependency has ended. Prerequisites are the agent's to clear and hold nothing
    /// back here.
    #[must_use]
    pub fn next_ready(&self) -> Option<&GoalPlanTask> {
        let ended = self.ended();
        let is_ready = |task: &&GoalPlanTask| is_ready(task, &ended);
        self.tasks.iter().find(is_ready)
    }

    /// Tells whether every task is done or skipped.
    #[must_use]
    pub fn all_ended(&self) -> bool {
        self.tasks.iter().all(|task| task.status.has_ended())
    }

    /// Counts the tasks by where they stand.
    #[must_use]
    pub fn counts(&self) -> TaskCounts {
        let mut counts = TaskCounts::default();
        for task in &self.tasks {
            counts.total += 1;
            match task.status {
                TaskStatus::Pending => counts.pending += 1,
                TaskStatus::InProgress => counts.in_progress += 1,
                TaskStatus::Done => counts.done += 1,
                TaskStatus::Blocked => counts.blocked += 1,
                TaskStatus::Skipped => counts.skipped += 1,
            }
        }
        counts
    }

    /// Returns what the end of a turn without a claim of completion means.
    #[must_use]
    pub fn clean_end(&self) -> CleanEnd {
        if !self.all_ended() {
            CleanEnd::NotYet
        } else if self.clean_end_prompts < CLEAN_END_PROMPTS_MAX {
            CleanEnd::Prompt
        } else {
            CleanEnd::Pause
        }
    }

    /// Notes that the agent was reminded that all tasks have ended.
    #[must_use]
    pub fn prompted(&self) -> Self {
        let mut plan = self.clone();
        plan.clean_end_prompts = self.clean_end_prompts.saturating_add(1);
        plan
    }

    /// Forgets the reminders, because a person let the goal go on.
    #[must_use]
    pub fn resumed(&self) -> Self {
        let mut plan = self.clone();
        plan.clean_end_prompts = 0;
        plan
    }

    fn lines(&self, list: fn(&GoalPlanTask) -> &Vec<String>) -> Vec<(&PlanTaskId, &str)> {
        self.tasks
            .iter()
            .flat_map(|task| list(task).iter().map(|line| (&task.id, line.as_str())))
            .collect()
    }

    /// Checks what can be checked before any operation, and returns the reason as one line.
    fn preflight(&self, operations: &[Operation], reason: &str) -> Result<String, PlanDenied> {
        let reason = one_line(reason);
        if reason.is_empty() {
            return Err(PlanDenied::NoReason);
        }
        if reason.len() > REASON_BYTES_MAX {
            return Err(PlanDenied::ReasonTooLong);
        }
        if operations.is_empty() {
            return Err(PlanDenied::NoOperations);
        }
        if operations.len() > OPERATIONS_MAX {
            let operations = operations.len();
            return Err(PlanDenied::TooManyOperations { operations });
        }
        if self.replan_log.len() >= REPLANS_MAX {
            return Err(PlanDenied::ReplansUsedUp);
        }
        Ok(reason)
    }

    /// Keeps the task at hand as long as it can be worked on, or else takes the next.
    fn settle_current(&mut self) {
        let ended = self.ended();
        let is_workable =
            |task: &GoalPlanTask| task.status == TaskStatus::InProgress || is_ready(task, &ended);
        if self.current().is_some_and(is_workable) {
            return;
        }
        let under_way = |task: &&GoalPlanTask| task.status == TaskStatus::InProgress;
        let next = self
            .tasks
            .iter()
            .find(under_way)
            .or_else(|| self.next_ready());
        self.current = next.map(|task| task.id.clone());
    }

    fn ended(&self) -> BTreeSet<&PlanTaskId> {
        let ended = self.tasks.iter().filter(|task| task.status.has_ended());
        ended.map(|task| &task.id).collect()
    }
}

fn is_done(task: &GoalPlanTask) -> bool {
    task.status == TaskStatus::Done
}

fn is_ready(task: &GoalPlanTask, ended: &BTreeSet<&PlanTaskId>) -> bool {
    task.status == TaskStatus::Pending && task.dependencies.iter().all(|id| ended.contains(id))
}
