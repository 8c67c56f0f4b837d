//! A loop's definition: when it runs, who works on what, and what counts as well done.
//!
//! Only data, its limits, and what follows from it at a glance. Which file it came from, what
//! its keys are called there, and who carries it out is not known here.

pub mod eval;
pub mod trigger;

use std::collections::BTreeMap;

use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::task_id::LoopName;
use kapi_core::value::KernelValue;
use serde::{Deserialize, Serialize};

use super::task_terms::{Priority, Retry, TaskBudget};
use crate::rules::condition;
use crate::rules::condition::Condition;
use crate::rules::definition::eval::{Eval, EvalCheck};
use crate::rules::definition::trigger::{Ending, LoopTrigger};

/// Where loops lie that come with a repository (specification: Loop Definition Format).
const SHARED: &str = ".pi/";
/// The highest version.
pub const VERSION_MAX: u32 = 1_000;
/// The longest cooldown in milliseconds: 31 days.
pub const COOLDOWN_MS_MAX: u64 = 31 * 24 * 60 * 60 * 1_000;
/// The most runs of one loop at a time.
pub const CONCURRENT_MAX: u32 = 32;
/// The longest pause before a retry in milliseconds: a day.
pub const BACKOFF_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// The most evals.
pub const EVALS_MAX: usize = 16;
/// The most inputs.
pub const INPUTS_MAX: usize = 64;
/// The most protected pathspecs.
pub const PROTECT_MAX: usize = 64;
/// The most verify commands.
pub const VERIFY_MAX: usize = 16;
/// The longest description in bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 500;
/// The longest body in bytes.
pub const BODY_BYTES_MAX: usize = 128 * 1024;
/// How long a run may take when the definition does not say: two minutes.
pub const TIMEOUT_MS_DEFAULT: u64 = 120_000;
/// The pause before the first retry when the definition does not say: half a minute.
pub const BACKOFF_MS_DEFAULT: u64 = 30_000;
/// The longest pause before a retry when the definition does not say: half an hour.
pub const BACKOFF_MS_MAX_DEFAULT: u64 = 30 * 60 * 1_000;
/// The agent profile when the definition does not say.
pub const AGENT_DEFAULT: &str = "sisyphus";
/// The deepest chain of runs that set each other off.
pub const DEPTH_MAX: u32 = 16;

/// One loop as it was defined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Its name, the only one of the project.
    pub name: LoopName,
    /// Its version, from 1; for people.
    pub version: u32,
    /// What it does, in one line.
    pub description: String,
    /// What triggers it, besides a person.
    pub trigger: LoopTrigger,
    /// The agent profile.
    pub agent: String,
    /// The agent program to use instead of the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// The model to use instead of the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The longest one attempt may take, in milliseconds; 0 for no limit.
    pub timeout_ms: u64,
    /// How many of its runs may be under way at a time.
    pub max_concurrent: u32,
    /// How long it rests after a run ended, in milliseconds.
    #[serde(default)]
    pub cooldown_ms: u64,
    /// Whether a run that waits stands for every event that comes meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub coalesce: bool,
    /// When and how often a failed attempt is tried again.
    #[serde(default)]
    pub retry: Retry,
    /// What counts as well done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evals: Vec<Eval>,
    /// What its body may name, with the value of each; null is a value that whoever triggers it gives.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, KernelValue>,
    /// What one attempt may use.
    #[serde(default, skip_serializing_if = "TaskBudget::is_open")]
    pub budget: TaskBudget,
    /// What must hold, or the run is skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub should_run: Option<Condition>,
    /// What a run triggers when it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retrigger: Option<Retrigger>,
    /// Which runs leave lessons.
    pub learn: Learn,
    /// How urgent its runs are.
    #[serde(default)]
    pub priority: Priority,
    /// Shell commands that must pass in a clean checkout before a run counts as completed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verify: Vec<String>,
    /// Git pathspecs whose files must stay as they are where the work starts, besides the scripts that
    /// the commands name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<String>,
    /// What the checks are held to.
    #[serde(default, skip_serializing_if = "CheckPolicy::is_plain")]
    pub checks: CheckPolicy,
    /// Whether the branch gets the commits that the agent made by itself, before one of what is left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_commits: bool,
    /// What becomes of the files that a run changes.
    pub workspace: WorkspaceMode,
    /// What the agent is told, with places for its inputs.
    pub body: String,
    /// Where it came from.
    pub source: DefinitionSource,
}

/// Which runs leave lessons for later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Learn {
    /// None.
    Never,
    /// Those that failed.
    OnFailure,
    /// All.
    Always,
}

/// What becomes of the files that a run changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceMode {
    /// Nothing can be changed.
    ReadOnly,
    /// They are committed to a branch of the run.
    Branch,
}

/// What a run triggers when it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retrigger {
    /// The loop, which may be the same one.
    #[serde(rename = "loop")]
    pub loop_name: LoopName,
    /// After which ends.
    pub on: Ending,
    /// How many runs in a row may set each other off.
    pub depth_max: u32,
}

/// Where a definition came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefinitionSource {
    /// The file, relative to the project, or what stands for it.
    pub file: String,
    /// The SHA-256 of the file's text in lower-case hexadecimal digits.
    pub sha256: String,
    /// Whether git tracks it: it may have come with the repository.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_tracked: bool,
}

/// Inputs that a definition cannot take, or misses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// A name that the definition does not declare.
    #[error("give {loop_name} the input {name:?}: it declares {}", listed(.known))]
    Unknown {
        /// The loop.
        loop_name: LoopName,
        /// The name that was given.
        name: String,
        /// The names it declares.
        known: Vec<String>,
    },
    /// An input without a value.
    #[error("run {loop_name}: its input {name:?} has no value")]
    Missing {
        /// The loop.
        loop_name: LoopName,
        /// The input.
        name: String,
    },
}

impl Definition {
    /// Returns the commands that its evals and its condition run, besides its verify commands.
    #[must_use]
    pub fn commands(&self) -> Vec<String> {
        let evals = self.evals.iter().filter_map(|eval| match &eval.check {
            EvalCheck::Command { run, .. } | EvalCheck::Metric { run, .. } => Some(run.clone()),
            EvalCheck::ExitCode { .. }
            | EvalCheck::Regex { .. }
            | EvalCheck::JsonSchema { .. }
            | EvalCheck::Judge { .. } => None,
        });
        let asked = self.should_run.iter().flat_map(condition::commands);
        evals.chain(asked).collect()
    }

    /// Tells whether it could trigger itself and its file may have come with the repository.
    #[must_use]
    pub fn waits_for_a_word(&self) -> bool {
        let may_be_foreign = self.source.is_tracked || self.source.file.starts_with(SHARED);
        self.trigger != LoopTrigger::Manual && may_be_foreign
    }

    /// Returns the inputs of a run: what was given stands instead of what the definition says.
    ///
    /// # Errors
    /// When an input is given that the definition does not declare, or one has no value.
    pub fn inputs_with(
        &self,
        given: &BTreeMap<String, KernelValue>,
    ) -> Result<BTreeMap<String, KernelValue>, InputError> {
        if let Some(name) = given.keys().find(|name| !self.inputs.contains_key(*name)) {
            return Err(InputError::Unknown {
                loop_name: self.name.clone(),
                name: name.clone(),
                known: self.inputs.keys().cloned().collect(),
            });
        }
        let mut inputs = self.inputs.clone();
        for (name, value) in given {
            inputs.insert(name.clone(), value.clone());
        }
        match inputs
            .iter()
            .find(|(_, value)| **value == KernelValue::Null)
        {
            Some((name, _)) => Err(InputError::Missing {
                loop_name: self.name.clone(),
                name: name.clone(),
            }),
            None => Ok(inputs),
        }
    }
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

#[cfg(test)]
mod tests;
