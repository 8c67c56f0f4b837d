//! The input of each tool, as agents write it.
//!
//! Doc comments of the fields are what an agent reads in the schema. An unknown field is refused, so
//! that nobody believes in a setting that does nothing.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::rules::contract::GoalType;
use crate::rules::plan::task::{PlanTaskId, TaskPhase};
use crate::rules::wait::FileState;
use crate::tools::task::{OperationInput, PatchInput, PlanTaskInput};
use crate::tools::value_schema;

/// Input of `until_done_set`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetInput {
    /// What the person wants
    pub goal: String,
    /// What must literally hold for it to be done
    pub done_criteria: String,
    /// Commands, or beginnings of commands, that a person is asked about first
    pub ask_before: Vec<String>,
    /// How you decide where nothing was said
    pub decision_style: String,
    /// ticket: something is shipped; exploratory: something is found out
    #[schemars(schema_with = "value_schema::goal_type")]
    pub goal_type: GoalType,
    /// What can be looked at: logs, metrics, staging addresses, flame graphs, sandboxes
    pub surfaces: Vec<SurfaceInput>,
    /// The shell command that must exit 0 in a clean checkout
    #[serde(default)]
    #[schemars(with = "String")]
    pub verify_command: Option<String>,
    /// The phase the work starts in; analysis if left out
    #[serde(default)]
    #[schemars(schema_with = "value_schema::phase")]
    pub start_phase: Option<TaskPhase>,
    /// How many turns it may take
    #[serde(default)]
    #[schemars(with = "u32", range(min = 1, max = 20_000))]
    pub max_turns: Option<u64>,
    /// The model that judges, another one than yours
    #[serde(default)]
    #[schemars(with = "JudgeModelInput")]
    pub judge_model: Option<JudgeModelInput>,
    /// true lets your own model judge, in a fresh context; weaker
    #[serde(default)]
    #[schemars(with = "bool")]
    pub same_model_judge: Option<bool>,
}

/// A model that judges.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JudgeModelInput {
    /// Whose it is, such as anthropic
    pub provider: String,
    /// The provider's name for it
    pub model_id: String,
}

/// Something that can be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SurfaceInput {
    /// logs, metrics, staging, sandbox and the like
    pub kind: String,
    /// Where it is
    pub location: String,
    /// What to know about it
    #[serde(default)]
    #[schemars(with = "String")]
    pub notes: Option<String>,
}

/// Input of `until_done_plan`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanInput {
    /// All tasks
    pub tasks: Vec<PlanTaskInput>,
}

/// Input of `until_done_replan`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReplanInput {
    /// The changes, as one batch
    pub operations: Vec<OperationInput>,
    /// Why
    pub reason: String,
}

/// Input of `until_done_task_update`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskUpdateInput {
    /// The task's id
    #[schemars(with = "String")]
    pub id: PlanTaskId,
    /// The changes
    pub patch: PatchInput,
}

/// Input of `until_done_progress`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProgressInput {
    /// One line
    pub note: String,
    /// The phase from now on
    #[serde(default)]
    #[schemars(schema_with = "value_schema::phase")]
    pub phase: Option<TaskPhase>,
}

/// Input of `until_done_complete`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CompleteInput {
    /// The output of the verify command, quoted
    pub evidence: String,
    /// What was done, in a sentence
    #[serde(default)]
    #[schemars(with = "String")]
    pub summary: Option<String>,
}

/// Input of `until_done_block`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlockInput {
    /// What the person is asked
    pub question: String,
    /// Why you cannot go on without an answer
    pub reason: String,
}

/// Input of `until_done_wait`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WaitInput {
    /// What is waited for
    pub until: UntilInput,
    /// Why
    pub reason: String,
    /// Seconds after which the goal goes on all the same
    #[serde(default)]
    #[schemars(with = "u64")]
    pub timeout_seconds: Option<u64>,
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    tag = "for",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum UntilInput {
    /// A time from now
    Time {
        /// Seconds from now, at most a year
        seconds: u64,
    },
    /// A state of a file
    File {
        /// Its path, relative to the working directory
        path: String,
        /// exists, gone, or changed since now
        #[schemars(schema_with = "value_schema::file_state")]
        until: FileState,
    },
    /// A command exits 0 on the work so far, in a sandbox
    Command {
        /// The shell command
        command: String,
        /// Seconds between two tries, 10 or more
        every_seconds: u64,
    },
    /// A person allows something
    Approval {
        /// What, as the person will read it
        what: String,
    },
    /// A provider's quota is reset
    Quota {
        /// Whose
        provider: String,
        /// Seconds from now
        seconds: u64,
    },
}

/// Input of `until_done_distill`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DistillInput {
    /// The requirements document, in Markdown
    pub prd_markdown: String,
}

/// Input of `until_done_status`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct StatusInput {
    /// Which goal, outside of a run: 7, 007 or 007-fix-login; the last one if left out
    #[schemars(with = "String")]
    pub goal: Option<String>,
}
