//! Why a plan, a replan or a task update was refused; nothing has changed then.
//!
//! Every refusal has the specification's code, names the task and the operation, and says what to
//! do instead.

use crate::rules::plan::task::{PlanTaskId, TaskFault, TaskStatus};
use crate::rules::plan::{
    OPERATIONS_MAX, PLAN_BYTES_MAX, REASON_BYTES_MAX, REPLANS_MAX, TASKS_MAX,
};

/// A refusal by a rule of planning.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanDenied {
    /// A plan of nothing.
    #[error("the plan has no tasks")]
    NoTasks,
    /// A second plan.
    #[error("there is already a plan with {tasks} tasks, {done} of them done")]
    PlanExists {
        /// How many tasks it has.
        tasks: usize,
        /// How many of them are done.
        done: usize,
    },
    /// More tasks than a plan may have.
    #[error("the plan would have {tasks} tasks; the maximum is {TASKS_MAX}")]
    TooManyTasks {
        /// How many there would be.
        tasks: usize,
    },
    /// More text than a plan may hold.
    #[error("the plan would contain {bytes} bytes of text; the maximum is {PLAN_BYTES_MAX}")]
    TooLarge {
        /// How much there would be.
        bytes: usize,
    },
    /// Two tasks of one name.
    #[error("two tasks have the id {task}")]
    DuplicateId {
        /// The name.
        task: PlanTaskId,
    },
    /// A plan that begins with finished work.
    #[error("task {task} is already done, but a new plan cannot contain finished tasks")]
    DoneAlready {
        /// The task.
        task: PlanTaskId,
    },
    /// A task that breaks a rule by itself.
    #[error("task {task} is not valid: {fault}")]
    BadTask {
        /// The task.
        task: PlanTaskId,
        /// The rule.
        fault: TaskFault,
    },
    /// A dependency on a task that is not in the plan.
    #[error("{}task {task} names {dependency}, which is not in the plan", at(*.operation))]
    UnknownDependency {
        /// The task.
        task: PlanTaskId,
        /// What it names, in its dependencies or its blocks.
        dependency: PlanTaskId,
        /// The operation that last wrote the task, counted from 0.
        operation: Option<usize>,
    },
    /// Tasks that wait for each other.
    #[error("{}tasks depend on each other in a cycle: {}", at(*.operation), circle(.path))]
    Cycle {
        /// The circle: each depends on the next, and the last on the first.
        path: Vec<PlanTaskId>,
        /// The last operation that wrote one of them, counted from 0.
        operation: Option<usize>,
    },
    /// A replan before there is a plan.
    #[error("there is no plan yet")]
    NoPlan,
    /// A replan that does not say why.
    #[error("the replan gives no reason")]
    NoReason,
    /// A reason that is too long to be repeated in every task.
    #[error("the reason is longer than {REASON_BYTES_MAX} bytes")]
    ReasonTooLong,
    /// A replan that does nothing.
    #[error("the replan has no operation")]
    NoOperations,
    /// A replan that does too much at once.
    #[error("the replan has {operations} operations; the maximum is {OPERATIONS_MAX}")]
    TooManyOperations {
        /// How many it has.
        operations: usize,
    },
    /// A plan that never settles.
    #[error("the plan was already changed {REPLANS_MAX} times")]
    ReplansUsedUp,
    /// An operation that is not legal where it stands.
    #[error("operations[{index}] ({name}): {fault}")]
    Operation {
        /// Which one, counted from 0.
        index: usize,
        /// Its name.
        name: &'static str,
        /// What is wrong with it.
        fault: OperationFault,
    },
    /// An update of a task that is not in the plan.
    #[error("there is no task {task} in the plan")]
    NotFound {
        /// The id.
        task: PlanTaskId,
    },
    /// An update of finished work.
    #[error("task {task} is done and cannot change")]
    DoneImmutable {
        /// The task.
        task: PlanTaskId,
    },
}

/// What is wrong with one operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OperationFault {
    /// It names a task that is not in the plan.
    #[error("there is no task {task} in the plan")]
    Unknown {
        /// The id.
        task: PlanTaskId,
    },
    /// It would change finished work.
    #[error("task {task} is done and cannot change")]
    Done {
        /// The task.
        task: PlanTaskId,
    },
    /// It would change what finished work depended on.
    #[error("it changes what {dependent} depends on, and {dependent} is done")]
    DoneDependent {
        /// The done task.
        dependent: PlanTaskId,
    },
    /// It removes a task that is under way or was skipped.
    #[error("task {task} is {status}, and only a pending or blocked task can be removed")]
    NotRemovable {
        /// The task.
        task: PlanTaskId,
        /// Where it stands.
        status: TaskStatus,
    },
    /// It brings in a name that is taken.
    #[error("task {task} already exists")]
    Taken {
        /// The name.
        task: PlanTaskId,
    },
    /// It names one task twice.
    #[error("it lists {task} twice")]
    NamedTwice {
        /// The task.
        task: PlanTaskId,
    },
    /// It brings in finished work.
    #[error("the new task {task} is already done")]
    DoneAlready {
        /// The task.
        task: PlanTaskId,
    },
    /// It brings in a task that breaks a rule by itself.
    #[error("task {task} is not valid: {fault}")]
    BadTask {
        /// The task.
        task: PlanTaskId,
        /// The rule.
        fault: TaskFault,
    },
    /// It replaces a task by one of another name.
    #[error("it replaces {task} with a task called {given}")]
    OtherId {
        /// The task that is replaced.
        task: PlanTaskId,
        /// The name of the new one.
        given: PlanTaskId,
    },
    /// It splits a task into fewer than two.
    #[error("it splits {task} into {parts}; a split needs at least two parts")]
    TooFewParts {
        /// The task.
        task: PlanTaskId,
        /// How many parts it names.
        parts: usize,
    },
    /// It merges fewer than two tasks.
    #[error("it merges {tasks} into {into}; a merge needs at least two tasks")]
    TooFewToMerge {
        /// What they become.
        into: PlanTaskId,
        /// How many it names.
        tasks: usize,
    },
}

impl PlanDenied {
    /// Returns the specification's code of the refusal.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoTasks => "empty_plan",
            Self::PlanExists { .. } => "plan_exists",
            Self::TooManyTasks { .. } => "too_many_tasks",
            Self::TooLarge { .. } => "too_large",
            Self::DuplicateId { .. } => "duplicate_id",
            Self::DoneAlready { .. } => "done_already",
            Self::BadTask { .. } => "task_invalid",
            Self::UnknownDependency { .. } => "unknown_dep",
            Self::Cycle { .. } => "cycle",
            Self::NoPlan
            | Self::NoReason
            | Self::ReasonTooLong
            | Self::NoOperations
            | Self::TooManyOperations { .. }
            | Self::ReplansUsedUp => "preflight",
            Self::Operation { .. } => "op_invalid",
            Self::NotFound { .. } => "not_found",
            Self::DoneImmutable { .. } => "done_immutable",
        }
    }

    /// Returns what to do instead.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NoTasks => "give at least one task.".to_owned(),
            Self::PlanExists { .. } => {
                "change it with until_done_replan; finished work is kept.".to_owned()
            }
            Self::TooManyTasks { .. } => "merge tasks that belong together.".to_owned(),
            Self::TooLarge { .. } => {
                "shorten the tasks, and refer to files instead of quoting them.".to_owned()
            }
            Self::DuplicateId { task } => format!("give every task a unique id; {task} is taken."),
            Self::DoneAlready { .. } => {
                "start every task as pending, and omit finished work.".to_owned()
            }
            Self::BadTask { task, .. } => format!("fix {task} and send the whole plan again."),
            Self::UnknownDependency { task, .. } => format!(
                "fix the dependencies and blocks of {task}, or add the missing task in the same call."
            ),
            Self::Cycle { .. } => {
                "remove one of these dependencies; nothing was changed.".to_owned()
            }
            Self::NoPlan => "create the plan with until_done_plan first.".to_owned(),
            Self::NoReason => "explain in one line which finding changes the plan.".to_owned(),
            Self::ReasonTooLong => {
                "explain it in one line, and put the details into the notes of a task.".to_owned()
            }
            Self::NoOperations => {
                "give at least one of insert, remove, replace, split, merge, reorder.".to_owned()
            }
            Self::TooManyOperations { .. } => "change the plan in smaller steps.".to_owned(),
            Self::ReplansUsedUp => {
                "work on the existing tasks, or ask the user with until_done_block.".to_owned()
            }
            Self::Operation { index, fault, .. } => format!(
                "{} Nothing was changed: fix operations[{index}] and send the whole batch again.",
                fault.hint()
            ),
            Self::NotFound { .. } => "look the id up in tasks.yaml.".to_owned(),
            Self::DoneImmutable { .. } => {
                "add a task for the remaining work with until_done_replan, or extend the current task."
                    .to_owned()
            }
        }
    }
}

impl OperationFault {
    fn hint(&self) -> String {
        match self {
            Self::Unknown { .. } => "Look the id up in tasks.yaml.".to_owned(),
            Self::Done { .. } => "Insert a new task for the remaining work.".to_owned(),
            Self::DoneDependent { .. } => {
                "Keep the id, or mark the task skipped instead.".to_owned()
            }
            Self::NotRemovable { task, .. } => {
                format!("Set {task} to blocked first, or to skipped instead.")
            }
            Self::Taken { .. } => "Choose an id that is not in the plan.".to_owned(),
            Self::NamedTwice { .. } => "Name every task once.".to_owned(),
            Self::DoneAlready { .. } => "Start it as pending.".to_owned(),
            Self::BadTask { task, .. } => format!("Fix {task}."),
            Self::OtherId { task, .. } => format!("Keep the id {task}, or remove and insert."),
            Self::TooFewParts { .. } => "Use replace for one task.".to_owned(),
            Self::TooFewToMerge { .. } => "Use replace for one task.".to_owned(),
        }
    }
}

fn at(operation: Option<usize>) -> String {
    operation.map_or_else(String::new, |index| format!("operations[{index}]: "))
}

/// Writes a circle as it is walked, back to where it began; long ones are cut.
fn circle(path: &[PlanTaskId]) -> String {
    const NAMES_MAX: usize = 12;
    let mut names: Vec<&str> = path
        .iter()
        .take(NAMES_MAX)
        .map(PlanTaskId::as_str)
        .collect();
    if path.len() > NAMES_MAX {
        names.push("…");
    }
    names.extend(path.first().map(PlanTaskId::as_str));
    names.join(" -> ")
}
