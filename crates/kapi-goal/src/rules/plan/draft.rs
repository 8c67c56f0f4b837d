//! A plan while a batch of operations is applied to it, one after the other.
//!
//! Each operation is checked where it stands; whether the whole is sound is checked once, at the
//! end, so that tasks of one batch may name each other. A draft that failed is thrown away.

use std::collections::{BTreeMap, BTreeSet};

use crate::rules::plan::denied::OperationFault;
use crate::rules::plan::operation::Operation;
use crate::rules::plan::task::{Task, TaskId, TaskStatus, without_repeats};

/// The tasks so far. Their `blocks` hold only what was stated and names a task that is not there
/// yet.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) tasks: Vec<Task>,
    /// Which operation, counted from 0, last wrote a task.
    pub(crate) written: BTreeMap<TaskId, usize>,
}

impl Draft {
    /// Begins with the tasks of a plan.
    pub(crate) fn of(tasks: &[Task]) -> Self {
        let mut tasks = tasks.to_vec();
        for task in &mut tasks {
            task.blocks.clear();
        }
        let written = BTreeMap::new();
        Self { tasks, written }
    }

    /// Begins with tasks that come in, all at once and none of them done.
    pub(crate) fn incoming(tasks: &[Task]) -> Self {
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
        task: &Task,
        insert_after: Option<&TaskId>,
    ) -> Result<Vec<TaskId>, OperationFault> {
        self.check_new(task, &[])?;
        let place = match insert_after {
            Some(anchor) => self.place(anchor)? + 1,
            None => self.tasks.len(),
        };
        self.tasks.insert(place, normal(task));
        Ok(vec![task.id.clone()])
    }

    fn remove(&mut self, id: &TaskId) -> Result<Vec<TaskId>, OperationFault> {
        let place = self.open_place(id)?;
        match self.tasks[place].status {
            TaskStatus::Pending | TaskStatus::Blocked => {}
            status @ (TaskStatus::InProgress | TaskStatus::Done | TaskStatus::Skipped) => {
                let task = id.clone();
                return Err(OperationFault::NotRemovable { task, status });
            }
        }
        self.tasks.remove(place);
        self.redirect(id, &[])
    }

    fn replace(&mut self, id: &TaskId, task: &Task) -> Result<Vec<TaskId>, OperationFault> {
        let place = self.open_place(id)?;
        if task.id != *id {
            return Err(OperationFault::OtherId {
                task: id.clone(),
                given: task.id.clone(),
            });
        }
        self.check_new(task, std::slice::from_ref(id))?;
        let before = self.tasks.remove(place);
        let mut after = normal(task);
        inherit_learnt(&mut after, &[before]);
        self.put(place, after)
    }

    fn split(&mut self, id: &TaskId, into: &[Task]) -> Result<Vec<TaskId>, OperationFault> {
        let place = self.open_place(id)?;
        if into.len() < 2 {
            return Err(OperationFault::TooFewParts {
                task: id.clone(),
                parts: into.len(),
            });
        }
        let ids: Vec<TaskId> = into.iter().map(|part| part.id.clone()).collect();
        check_distinct(&ids)?;
        for part in into {
            self.check_new(part, std::slice::from_ref(id))?;
        }
        let before = self.tasks.remove(place);
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
            written.append(&mut self.put(place + offset, part)?);
        }
        Ok(written)
    }

    fn merge(&mut self, ids: &[TaskId], into: &Task) -> Result<Vec<TaskId>, OperationFault> {
        if ids.len() < 2 {
            return Err(OperationFault::TooFewToMerge {
                into: into.id.clone(),
                tasks: ids.len(),
            });
        }
        check_distinct(ids)?;
        let mut place = self.tasks.len();
        for id in ids {
            place = place.min(self.open_place(id)?);
        }
        self.check_new(into, ids)?;
        let mut before = Vec::new();
        for id in ids {
            let at = self.place(id)?;
            before.push(self.tasks.remove(at));
        }
        let mut written = Vec::new();
        for id in ids {
            written.append(&mut self.redirect(id, std::slice::from_ref(&into.id))?);
        }
        let mut merged = normal(into);
        if merged.dependencies.is_empty() {
            let inherited = before.iter().flat_map(|task| &task.dependencies);
            let outer: Vec<TaskId> = inherited.filter(|id| !ids.contains(id)).cloned().collect();
            merged.dependencies = without_repeats(&outer);
        }
        for task in &before {
            merged.blocks.extend(task.blocks.iter().cloned());
        }
        inherit_learnt(&mut merged, &before);
        written.append(&mut self.put(place, merged)?);
        Ok(written)
    }

    fn reorder(
        &mut self,
        id: &TaskId,
        dependencies: &[TaskId],
    ) -> Result<Vec<TaskId>, OperationFault> {
        let place = self.open_place(id)?;
        self.tasks[place].dependencies = without_repeats(dependencies);
        Ok(vec![id.clone()])
    }

    /// Checks a task that comes in; it may have one of the names that become free.
    fn check_new(&self, task: &Task, freed: &[TaskId]) -> Result<(), OperationFault> {
        let id = || task.id.clone();
        if !freed.contains(&task.id) && self.place(&task.id).is_ok() {
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

    fn place(&self, id: &TaskId) -> Result<usize, OperationFault> {
        let place = self.tasks.iter().position(|task| task.id == *id);
        place.ok_or_else(|| OperationFault::Unknown { task: id.clone() })
    }

    /// Returns where a task stands that may be changed.
    fn open_place(&self, id: &TaskId) -> Result<usize, OperationFault> {
        let place = self.place(id)?;
        if self.tasks[place].status == TaskStatus::Done {
            return Err(OperationFault::Done { task: id.clone() });
        }
        Ok(place)
    }

    /// Puts a task in, which may have grown by what it inherited.
    fn put(&mut self, place: usize, task: Task) -> Result<Vec<TaskId>, OperationFault> {
        let id = task.id.clone();
        if let Some(fault) = task.fault() {
            return Err(OperationFault::BadTask { task: id, fault });
        }
        self.tasks.insert(place, task);
        Ok(vec![id])
    }

    /// Lets everything that depends on one task depend on others instead.
    fn redirect(&mut self, from: &TaskId, to: &[TaskId]) -> Result<Vec<TaskId>, OperationFault> {
        let mut changed = Vec::new();
        for task in &mut self.tasks {
            let Some(place) = task.dependencies.iter().position(|id| id == from) else {
                continue;
            };
            let mut after = task.dependencies.clone();
            after.splice(place..=place, to.iter().cloned());
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
    fn settle_statements(&mut self) -> Result<Vec<TaskId>, OperationFault> {
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
    fn settle_statement(&mut self, id: &TaskId, blocked: &TaskId) -> Result<bool, OperationFault> {
        let Ok(at) = self.place(blocked) else {
            let place = self.place(id)?;
            self.tasks[place].blocks.push(blocked.clone());
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

fn change_dependencies(task: &mut Task, after: Vec<TaskId>) -> Result<(), OperationFault> {
    if task.status == TaskStatus::Done {
        let dependent = task.id.clone();
        return Err(OperationFault::DoneDependent { dependent });
    }
    task.dependencies = after;
    Ok(())
}

fn check_distinct(ids: &[TaskId]) -> Result<(), OperationFault> {
    let mut seen = BTreeSet::new();
    match ids.iter().find(|id| !seen.insert(*id)) {
        Some(id) => Err(OperationFault::NamedTwice { task: id.clone() }),
        None => Ok(()),
    }
}

/// Returns a task as it came in, naming every other task once.
fn normal(task: &Task) -> Task {
    let mut task = task.clone();
    task.dependencies = without_repeats(&task.dependencies);
    task.blocks = without_repeats(&task.blocks);
    task
}

/// Puts what was learnt before in front of what a task says, without saying anything twice.
fn inherit_learnt(task: &mut Task, before: &[Task]) {
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
