//! Tasks, operations and patches as agents write them, and what they mean to the core.
//!
//! The shapes here are the source of both reading and schema. Whether a plan is sound is the
//! core's business.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::rules::plan::operation::Operation;
use crate::rules::plan::patch::TaskPatch;
use crate::rules::plan::task::{
    ContextReference, GoalPlanTask, PlanTaskId, Prerequisite, TaskPhase, TaskStatus,
};
use crate::tools::value_schema;

/// One task of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanTaskInput {
    /// A short unique name, such as T-001
    #[schemars(with = "String", length(min = 1, max = 64))]
    pub id: PlanTaskId,
    /// What is to be done
    pub title: String,
    /// The phase of the work while this task is the current one
    #[schemars(schema_with = "value_schema::phase")]
    pub phase: TaskPhase,
    /// Where it stands; pending if left out
    #[serde(default)]
    #[schemars(schema_with = "value_schema::task_status")]
    pub status: TaskStatus,
    /// Ids of tasks that must have ended before
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub dependencies: Vec<PlanTaskId>,
    /// Ids of tasks that depend on this one
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub blocks: Vec<PlanTaskId>,
    /// What must be cleared before it makes sense
    #[serde(default)]
    pub prerequisites: Vec<PrerequisiteInput>,
    /// How a person would check it
    #[serde(default)]
    pub validation_steps: Vec<String>,
    /// Commands that must pass
    #[serde(default)]
    pub ci_commands: Vec<String>,
    /// Rules of style that apply
    #[serde(default)]
    pub styleguide_rules: Vec<String>,
    /// What must not happen
    #[serde(default)]
    pub guardrails: Vec<String>,
    /// What was found out
    #[serde(default)]
    pub learnings: Vec<String>,
    /// What went wrong and may again
    #[serde(default)]
    pub gotchas: Vec<String>,
    /// What to read
    #[serde(default)]
    pub context: Vec<ContextInput>,
    /// Anything else
    #[serde(default)]
    #[schemars(with = "String")]
    pub notes: Option<String>,
}

/// Something that must be cleared before a task.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PrerequisiteInput {
    /// What it is
    pub description: String,
    /// Whether it is cleared
    #[serde(default)]
    pub cleared: bool,
}

/// Something to read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContextInput {
    /// A file
    #[serde(default)]
    #[schemars(with = "String")]
    pub path: Option<String>,
    /// An address
    #[serde(default)]
    #[schemars(with = "String")]
    pub url: Option<String>,
    /// Why it is worth reading
    pub why: String,
}

/// One change of the plan's structure.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    tag = "op",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum OperationInput {
    /// Add a task that surfaced
    Insert {
        /// The task
        task: Box<PlanTaskInput>,
        /// The id of the task it is listed after; at the end if left out
        #[serde(default)]
        #[schemars(with = "String")]
        insert_after: Option<PlanTaskId>,
    },
    /// Take out a task that is moot
    Remove {
        /// Its id
        #[schemars(with = "String")]
        task_id: PlanTaskId,
    },
    /// Write a task anew under its id
    Replace {
        /// Its id
        #[schemars(with = "String")]
        task_id: PlanTaskId,
        /// What it is from now on
        task: Box<PlanTaskInput>,
    },
    /// Make two or more tasks of one
    Split {
        /// Its id
        #[schemars(with = "String")]
        task_id: PlanTaskId,
        /// The parts
        into: Vec<PlanTaskInput>,
    },
    /// Make one task of two or more
    Merge {
        /// Their ids
        #[schemars(with = "Vec<String>")]
        task_ids: Vec<PlanTaskId>,
        /// What they become
        into: Box<PlanTaskInput>,
    },
    /// Give a task other dependencies
    Reorder {
        /// Its id
        #[schemars(with = "String")]
        task_id: PlanTaskId,
        /// All ids it depends on from now on
        #[schemars(with = "Vec<String>")]
        dependencies: Vec<PlanTaskId>,
    },
}

/// Changes of one task; what is left out stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct PatchInput {
    /// Where it stands from now on
    #[schemars(schema_with = "value_schema::task_status")]
    pub status: Option<TaskStatus>,
    /// Its phase
    #[schemars(schema_with = "value_schema::phase")]
    pub phase: Option<TaskPhase>,
    /// All of its prerequisites
    #[schemars(with = "Vec<PrerequisiteInput>")]
    pub prerequisites: Option<Vec<PrerequisiteInput>>,
    /// All of its validation steps
    #[schemars(with = "Vec<String>")]
    pub validation_steps: Option<Vec<String>>,
    /// All of its commands
    #[schemars(with = "Vec<String>")]
    pub ci_commands: Option<Vec<String>>,
    /// All of its rules of style
    #[schemars(with = "Vec<String>")]
    pub styleguide_rules: Option<Vec<String>>,
    /// All of its guardrails
    #[schemars(with = "Vec<String>")]
    pub guardrails: Option<Vec<String>>,
    /// One more learning
    #[schemars(with = "String")]
    pub add_learning: Option<String>,
    /// One more gotcha
    #[schemars(with = "String")]
    pub add_gotcha: Option<String>,
    /// One more thing to read
    #[schemars(with = "ContextInput")]
    pub add_context: Option<ContextInput>,
    /// Its notes; an empty text removes them
    #[schemars(with = "String")]
    pub notes: Option<String>,
}

impl From<PlanTaskInput> for GoalPlanTask {
    fn from(input: PlanTaskInput) -> Self {
        Self {
            id: input.id,
            title: input.title,
            phase: input.phase,
            status: input.status,
            dependencies: input.dependencies,
            blocks: input.blocks,
            prerequisites: all(input.prerequisites),
            validation_steps: input.validation_steps,
            ci_commands: input.ci_commands,
            styleguide_rules: input.styleguide_rules,
            guardrails: input.guardrails,
            learnings: input.learnings,
            gotchas: input.gotchas,
            context: all(input.context),
            notes: input.notes,
        }
    }
}

impl From<PrerequisiteInput> for Prerequisite {
    fn from(input: PrerequisiteInput) -> Self {
        Self {
            description: input.description,
            cleared: input.cleared,
        }
    }
}

impl From<ContextInput> for ContextReference {
    fn from(input: ContextInput) -> Self {
        Self {
            path: input.path,
            url: input.url,
            why: input.why,
        }
    }
}

impl From<OperationInput> for Operation {
    fn from(input: OperationInput) -> Self {
        match input {
            OperationInput::Insert { task, insert_after } => Self::Insert {
                task: (*task).into(),
                insert_after,
            },
            OperationInput::Remove { task_id } => Self::Remove { task_id },
            OperationInput::Replace { task_id, task } => Self::Replace {
                task_id,
                task: (*task).into(),
            },
            OperationInput::Split { task_id, into } => Self::Split {
                task_id,
                into: all(into),
            },
            OperationInput::Merge { task_ids, into } => Self::Merge {
                task_ids,
                into: (*into).into(),
            },
            OperationInput::Reorder {
                task_id,
                dependencies,
            } => Self::Reorder {
                task_id,
                dependencies,
            },
        }
    }
}

impl From<PatchInput> for TaskPatch {
    fn from(input: PatchInput) -> Self {
        Self {
            status: input.status,
            phase: input.phase,
            prerequisites: input.prerequisites.map(all),
            validation_steps: input.validation_steps,
            ci_commands: input.ci_commands,
            styleguide_rules: input.styleguide_rules,
            guardrails: input.guardrails,
            add_learning: input.add_learning,
            add_gotcha: input.add_gotcha,
            add_context: input.add_context.map(Into::into),
            notes: input.notes,
        }
    }
}

/// Turns each of them into what the core knows it as.
pub(crate) fn all<Given, Known: From<Given>>(given: Vec<Given>) -> Vec<Known> {
    given.into_iter().map(Known::from).collect()
}
