//! A plan while a batch of operations is applied to it, one after the other.
//!
//! Each operation is checked where it stands; whether the whole is sound is checked once, at the
//! end, so that tasks of one batch may name each other. A draft that failed is thrown away.

use std::collections::{BTreeMap, BTreeSet};

use crate::rules::plan::denied::OperationFault;
use crate::rules::plan::operation::Operation;
use crate::rules::plan::task::{GoalPlanTask, PlanTaskId, TaskStatus, without_repeats};

/// The tasks so far. Their `blocks` hold only what was stated and names a task that is not there
/// yet.
#[derive(Debug)]
pub(crate) struct PlanDraft {
    pub(crate) tasks: Vec<GoalPlanTask>,
    /// Which operation, counted from 0, last wrote a task.
    pub(crate) written: BTreeMap<PlanTaskId, usize>,
}

impl PlanDraft {
    /// Begins with the tasks of a plan.
    pub(crate) fn of(tasks: &[GoalPlanTask]) -> Self {
        let mut tasks = tasks.to_vec();
        for task in &mut tasks {
            task.blocks.clear();
        }
        let written = BTreeMap::new();
        Self { tasks, written }
    }

    /// Begins with tasks that come in, all at once and none of them done.
    pub(crate) fn incoming(tasks: &[GoalPlanTask]) -> Self {
        let tasks = tasks.iter().map(normal).collect();
        let written = BTreeMap::new();
        let mut draft = Self { tasks, written };
        let settled = draft.settle_statements();
        assert!(
            settled.is_ok(),
            "no task that comes in is done, and only a done task refuses a dependency"
        );
        draft
    }

    /// Applies one operation.
    pub(crate) fn apply(
        &mut self,
        index: usize,
        operation: &Operation,
    ) -> Result<(), OperationFault> {
        let mut written = match operation {
            Operation::Insert { task, insert_after } => self.insert(task, insert_after.as_ref()),
            Operation::Remove { task_id } => self.remove(task_id),
            Operation::Replace { task_id, task } => self.replace(task_id, task),
            Operation::Split { task_id, into } => self.split(task_id, into),
            Operation::Merge { task_ids, into } => self.merge(task_ids, into),
            Operation::Reorder {
                task_id,
                dependencies,
            } => self.reorder(task_id, dependencies),
        }?;
        written.append(&mut self.settle_statements()?);
        self.written
            .extend(written.into_iter().map(|id| (id, index)));
        Ok(())
    }

    fn insert(
        &mut self,
        task: &GoalPlanTask,
        insert_after: Option<&PlanTaskId>,
    ) -> Result<Vec<PlanTaskId>, OperationFault> {
        self.check_new(task, &[])?;
        let location = match insert_after {
            Some(anchor) => self.location(anchor)? + 1,
            None => self.tasks.len(),
        };
        self.tasks.insert(location, normal(task));
        Ok(vec![task.id.clone()])
    }

    fn remove(&mut self, id: &PlanTaskId) -> Result<Vec<PlanTaskId>, OperationFault> {
        let location = self.open_location(id)?;
        match self.tasks[location].status {
            TaskStatus::Pending | TaskStatus::Blocked => {}
            status @ (TaskStatus::InProgress | TaskStatus::Done | TaskStatus::Skipped) => {
                let task = id.clone();
                return Err(OperationFault::NotRemovable { task, status });
            }
        }
        self.tasks.remove(location);
        self.redirect(id, &[])
    }

    fn replace(
        &mut self,
        id: &PlanTaskId,
        task: &GoalPlanTask,
    ) -> Result<Vec<PlanTaskId>, OperationFault> {
        let location = self.open_location(id)?;
        if task.id != *id {
            return Err(OperationFault::OtherId {
                task: id.clone(),
                given: task.id.clone(),
            });
        }
        self.check_new(task, std::slice::from_ref(id))?;
        let before = self.tasks.remove(location);
        let mut after = normal(task);
        inherit_learnt(&mut after, &[before]);
        self.put(location, after)
    }

    fn split(
        &mut self,
        id: &PlanTaskId,
        into: &[GoalPlanTask],
    ) -> Result<Vec<PlanTaskId>, OperationFault> {
        let location = self.open_location(id)?;
        if into.len() < 2 {
            return Err(OperationFault::TooFewParts {
                task: id.clone(),
                parts: into.len(),
            });
        }
        let ids: Vec<PlanTaskId> = into.iter().map(|part| part.id.clone()).collect();
        check_distinct(&ids)?;
        for part in into {
            self.check_new(part, std::slice::from_ref(id))?;
        }
        let before = self.tasks.remove(location);
        let mut written = self.redirect(id, &ids)?;
        for (offset, part) in into.iter().enumerate() {
            let mut part = normal(part);
            if part.dependencies.is_empty() {
                part.dependencies.clone_from(&before.dependencies);
            }
            part.blocks.extend(before.blocks.iter().cloned());
            if offset == 0 {
                inherit_learnt(&mut part, std::slice::from_ref(&before));
            }
            written.append(&mut self.put(location + offset, part)?);
        }
        Ok(written)
    }

    fn merge(
        &mut self,
        ids: &[PlanTaskId],
        into: &GoalPlanTask,
    ) -> Result<Vec<PlanTaskId>, OperationFault> {
        if ids.len() < 2 {
            return Err(OperationFault::TooFewToMerge {
                into: into.id.clone(),
                tasks: ids.len(),
            });
        }
        check_distinct(ids)?;
        let mut location = self.tasks.len();
        for id in ids {
            location = location.min(self.open_location(id)?);
        }
        self.check_new(into, ids)?;
        let mut before = Vec::new();
        for id in ids {
            let at = self.location(id)?;
            before.push(self.tasks.remove(at));
        }
        let mut written = Vec::new();
        for id in ids {
            written.append(&mut self.redirect(id, std::slice::from_ref(&into.id))?);
        }
        let mut merged = normal(into);
        if merged.dependencies.is_empty() {
            let inherited = before.iter().flat_map(|task| &task.dependencies);
            let outer: Vec<PlanTaskId> =
                inherited.filter(|id| !ids.contains(id)).cloned().collect();
            merged.dependencies = without_repeats(&outer);
        }
        for task in &before {
            merged.blocks.extend(task.blocks.iter().cloned());
        }
        inherit_learnt(&mut merged, &before);
        written.append(&mut self.put(location, merged)?);
        Ok(written)
    }

    fn reorder(
        &mut self,
        id: &PlanTaskId,
        dependencies: &[PlanTaskId],
    ) -> Result<Vec<PlanTaskId>, OperationFault> {
        let location = self.open_location(id)?;
        self.tasks[location].dependencies = without_repeats(dependencies);
        Ok(vec![id.clone()])
    }

    /// Checks a task that comes in; it may have one of the names that become free.
    fn check_new(&self, task: &GoalPlanTask, freed: &[PlanTaskId]) -> Result<(), OperationFault> {
        let id = || task.id.clone();
        if !freed.contains(&task.id) && self.location(&task.id).is_ok() {
            return Err(OperationFault::Taken { task: id() });
        }
        if task.status == TaskStatus::Done {
            return Err(OperationFault::DoneAlready { task: id() });
        }
        match task.fault() {
            Some(fault) => Err(OperationFault::BadTask { task: id(), fault }),
            None => Ok(()),
        }
    }

    fn location(&self, id: &PlanTaskId) -> Result<usize, OperationFault> {
        let location = self.tasks.iter().position(|task| task.id == *id);
        location.ok_or_else(|| OperationFault::Unknown { task: id.clone() })
    }

    /// Returns where a task stands that may be changed.
    fn open_location(&self, id: &PlanTaskId) -> Result<usize, OperationFault> {
        let location = self.location(id)?;
        if self.tasks[location].status == TaskStatus::Done {
            return Err(OperationFault::Done { task: id.clone() });
        }
        Ok(location)
    }

    /// Puts a task in, which may have grown by what it inherited.
    fn put(
        &mut self,
        location: usize,
        task: GoalPlanTask,
    ) -> Result<Vec<PlanTaskId>, OperationFault> {
        let id = task.id.clone();
        if let Some(fault) = task.fault() {
            return Err(OperationFault::BadTask { task: id, fault });
        }
        self.tasks.insert(location, task);
        Ok(vec![id])
    }

    /// Lets everything that depends on one task depend on others instead.
    fn redirect(
        &mut self,
        from: &PlanTaskId,
        to: &[PlanTaskId],
    ) -> Result<Vec<PlanTaskId>, OperationFault> {
        let mut changed = Vec::new();
        for task in &mut self.tasks {
            let Some(location) = task.dependencies.iter().position(|id| id == from) else {
                continue;
            };
            let mut after = task.dependencies.clone();
            after.splice(location..=location, to.iter().cloned());
            let after = without_repeats(&after);
            if after == task.dependencies {
                continue;
            }
            change_dependencies(task, after)?;
            changed.push(task.id.clone());
        }
        Ok(changed)
    }

    /// Turns what tasks say they block into dependencies, as far as these tasks are there.
    fn settle_statements(&mut self) -> Result<Vec<PlanTaskId>, OperationFault> {
        let mut stated = Vec::new();
        for task in &mut self.tasks {
            let (id, blocks) = (&task.id, &mut task.blocks);
            stated.extend(blocks.drain(..).map(|blocked| (id.clone(), blocked)));
        }
        let mut changed = Vec::new();
        for (id, blocked) in stated {
            if self.settle_statement(&id, &blocked)? {
                changed.push(blocked);
            }
        }
        Ok(changed)
    }

    /// Lets one task depend on another that says so; tells whether it did not do so before.
    fn settle_statement(
        &mut self,
        id: &PlanTaskId,
        blocked: &PlanTaskId,
    ) -> Result<bool, OperationFault> {
        let Ok(at) = self.location(blocked) else {
            let location = self.location(id)?;
            self.tasks[location].blocks.push(blocked.clone());
            return Ok(false);
        };
        let mut after = self.tasks[at].dependencies.clone();
        if after.contains(id) {
            return Ok(false);
        }
        after.push(id.clone());
        change_dependencies(&mut self.tasks[at], after)?;
        Ok(true)
    }
}

fn change_dependencies(
    task: &mut GoalPlanTask,
    after: Vec<PlanTaskId>,
) -> Result<(), OperationFault> {
    if task.status == TaskStatus::Done {
        let dependent = task.id.clone();
        return Err(OperationFault::DoneDependent { dependent });
    }
    task.dependencies = after;
    Ok(())
}

fn check_distinct(ids: &[PlanTaskId]) -> Result<(), OperationFault> {
    let mut seen = BTreeSet::new();
    match ids.iter().find(|id| !seen.insert(*id)) {
        Some(id) => Err(OperationFault::NamedTwice { task: id.clone() }),
        None => Ok(()),
    }
}

/// Returns a task as it came in, naming every other task once.
fn normal(task: &GoalPlanTask) -> GoalPlanTask {
    let mut task = task.clone();
    task.dependencies = without_repeats(&task.dependencies);
    task.blocks = without_repeats(&task.blocks);
    task
}

/// Puts what was learnt before in front of what a task says, without saying anything twice.
fn inherit_learnt(task: &mut GoalPlanTask, before: &[GoalPlanTask]) {
    let learnings = before.iter().flat_map(|task| &task.learnings);
    task.learnings = joined(learnings, &task.learnings);
    let gotchas = before.iter().flat_map(|task| &task.gotchas);
    task.gotchas = joined(gotchas, &task.gotchas);
}

fn joined<'a>(before: impl Iterator<Item = &'a String>, after: &'a [String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    before
        .chain(after)
        .filter(|line| seen.insert(*line))
        .cloned()
        .collect()
}
