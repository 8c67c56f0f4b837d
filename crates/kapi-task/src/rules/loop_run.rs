//! What a task that is a run of a loop says beside its request.
//!
//! Knows the definition it was started from and nothing of the task's life.

use std::collections::BTreeMap;

use kapi_core::task_id::{KernelTaskId, LoopName};
use kapi_core::value::KernelValue;
use serde::{Deserialize, Serialize};

use super::definition::Definition;

/// One run of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopRun {
    /// The definition as it was when the run was asked for.
    pub definition: Definition,
    /// What triggered it.
    pub trigger: RunTrigger,
    /// The inputs that whoever triggered it gave, instead of the definition's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, KernelValue>,
    /// What came with the trigger.
    #[serde(default)]
    pub payload: KernelValue,
    /// How many runs set each other off before this one.
    #[serde(default)]
    pub depth: u32,
}

impl LoopRun {
    /// Returns the loop's name.
    #[must_use]
    pub const fn name(&self) -> &LoopName {
        &self.definition.name
    }
}

/// What set a run off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum RunTrigger {
    /// Somebody asked.
    Manual {
        /// In whose words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<String>,
    },
    /// Its schedule.
    Cron {
        /// The instant that was due, in milliseconds since the epoch.
        due_at_ms: i64,
    },
    /// Something happened.
    Event {
        /// What, for people: "file src/**", "loop nightly".
        source: String,
        /// Which occurrence: the same one triggers one run.
        mark: String,
    },
    /// Another run of a loop.
    Retrigger {
        /// Which.
        task: KernelTaskId,
    },
}

impl RunTrigger {
    /// Returns the type as the specification names it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Manual { .. } => "manual",
            Self::Cron { .. } => "cron",
            Self::Event { .. } => "event",
            Self::Retrigger { .. } => "retrigger",
        }
    }

    /// Returns where it came from, for people.
    #[must_use]
    pub fn source(&self) -> Option<String> {
        match self {
            Self::Manual { source } => source.clone(),
            Self::Cron { .. } => None,
            Self::Event { source, .. } => Some(source.clone()),
            Self::Retrigger { task } => Some(task.to_string()),
        }
    }
}
