//! What somebody asks the kernel to have done.
//!
//! Only data and its limits. Which files, sandbox and process it takes is not known here.

use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::task_id::{KernelTaskId, LoopName};
use serde::{Deserialize, Serialize};

use super::loop_run::LoopRun;
use super::task_terms::{Priority, Retry, TaskBudget};
use crate::rules::goal_drive::GoalDrive;

/// The longest prompt in bytes.
pub const PROMPT_BYTES_MAX: usize = 256 * 1024;
/// The longest description in bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 500;
/// The longest idempotency key in bytes.
pub const KEY_BYTES_MAX: usize = 512;
/// How deep tasks may submit tasks: an agent's task is one deeper than the task it runs in.
pub const DEPTH_MAX: u32 = 3;
/// The longest timeout in milliseconds: a day.
pub const TIMEOUT_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// The most often a task is tried again.
pub const RETRIES_MAX: u32 = 16;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelRequest {
    /// What it is, in one line.
    pub description: String,
    /// What the agent is told; for a loop's run the template, which is rendered in its own phase.
    pub prompt: String,
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
    /// What one attempt may use.
    #[serde(default, skip_serializing_if = "TaskBudget::is_open")]
    pub budget: TaskBudget,
    /// Whose guardrails it is told, besides the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// How urgent it is.
    #[serde(default, skip_serializing_if = "Priority::is_normal")]
    pub priority: Priority,
    /// What makes it the same as another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<RequestKey>,
    /// When and how often a failed attempt is tried again.
    #[serde(default, skip_serializing_if = "Retry::is_unsaid")]
    pub retry: Retry,
    /// Shell commands that must pass in a clean checkout before it counts as completed.
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
    /// The commit it begins at, where the queue is shared by several machines; without it what
    /// is checked out where it is worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Who asked.
    pub origin: TaskOrigin,
    /// How many tasks it stands below another, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// The task it repeats, when a person asked for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<KernelTaskId>,
    /// The loop's run that it is.
    #[serde(rename = "loop", default, skip_serializing_if = "Option::is_none")]
    pub loop_run: Option<Box<LoopRun>>,
    /// The goal of a workflow that it drives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<Box<GoalDrive>>,
}

/// What makes two requests the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestKey {
    /// The text.
    pub text: String,
    /// How long it holds after the request, in milliseconds. While the task has not ended it
    /// holds in any case; when it fails it ends.
    pub ttl_ms: u64,
}

/// Who asked for a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum TaskOrigin {
    /// A person.
    Person {
        /// The account's name.
        user: String,
    },
    /// An agent.
    Agent {
        /// Its run.
        run: String,
        /// The task it works on, if it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<KernelTaskId>,
    },
    /// A loop: its schedule, an event it waits for, or another run of it.
    Loop {
        /// Which.
        name: LoopName,
    },
}

impl TaskOrigin {
    /// Returns whose turn it is when several wait: requests of one group wait for each other
    /// before they hold up another group.
    #[must_use]
    pub fn group(&self) -> String {
        match self {
            Self::Person { user } => format!("person {user}"),
            Self::Agent { run, .. } => format!("agent {run}"),
            Self::Loop { name } => format!("loop {name}"),
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl KernelRequest {
    /// Returns the rule that the request breaks.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        let is_long = |text: &str, bytes: usize| text.len() > bytes;
        if self.description.trim().is_empty() || self.prompt.trim().is_empty() {
            return Some("description and prompt are required");
        }
        if is_long(&self.description, DESCRIPTION_BYTES_MAX) {
            return Some("the description must be at most 500 bytes");
        }
        if is_long(&self.prompt, PROMPT_BYTES_MAX) {
            return Some("the prompt must be at most 256 KiB");
        }
        if self.agent.trim().is_empty() {
            return Some("an agent profile is required");
        }
        if self.timeout_ms > TIMEOUT_MS_MAX {
            return Some("the timeout must be at most 24 hours");
        }
        if self.retry.times > RETRIES_MAX {
            return Some("a task can be retried at most 16 times");
        }
        if self.loop_run.is_some() && self.goal.is_some() {
            return Some("a task is either a loop run or drives a goal, not both");
        }
        match &self.key {
            Some(key) if key.text.trim().is_empty() => Some("idempotency key is required"),
            Some(key) if is_long(&key.text, KEY_BYTES_MAX) => {
                Some("the idempotency key must be at most 512 bytes")
            }
            Some(_) | None => None,
        }
    }
}
