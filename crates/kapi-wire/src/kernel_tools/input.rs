//! The input of each of the kernel's tools, and reading it: all of it or nothing.
//!
//! Doc comments of the fields are what an agent reads in the schema. Texts are trimmed, and an
//! empty one counts as missing (specification: Tools).

use kapi_goal::tools::value_schema;
use kapi_task::rules::guardrail::Severity;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

use crate::kernel_tools::KernelTool;
use crate::kernel_tools::answer::ToolAnswer;

/// The longest timeout that is read, in seconds; what is allowed is decided elsewhere.
const SECONDS_MAX: u64 = 100 * 365 * 24 * 60 * 60;
/// The longest a look waits for the end of its task, in seconds.
pub const WAIT_MAX_S: u64 = 600;

/// Input of `background_task`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct BackgroundTaskInput {
    /// What it is, in a few words
    #[schemars(with = "String")]
    pub description: Option<String>,
    /// Everything the agent is told
    #[schemars(with = "String")]
    pub prompt: Option<String>,
    /// The agent profile; the configured one if left out
    #[schemars(with = "String")]
    pub agent: Option<String>,
    /// Seconds it may take, 0 for no limit; the configured time if left out
    #[schemars(schema_with = "value_schema::seconds")]
    pub timeout_sec: Option<Value>,
}

/// Input of `background_status`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskStatusInput {
    /// The task's id
    #[schemars(with = "String")]
    pub task_id: Option<String>,
    /// Seconds to wait for the task's end before answering, at most 600
    #[schemars(schema_with = "value_schema::seconds")]
    pub wait_sec: Option<Value>,
}

/// Input of `background_cancel`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskIdInput {
    /// The task's id
    #[schemars(with = "String")]
    pub task_id: Option<String>,
}

/// Input of `loop_trigger`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct LoopTriggerInput {
    /// The loop's name
    #[schemars(with = "String")]
    pub loop_name: Option<String>,
    /// What triggered it, in a few words
    #[schemars(with = "String")]
    pub trigger_source: Option<String>,
}

/// Input of `loop_status`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct LoopStatusInput {
    /// The loop's name; all loops if left out
    #[schemars(with = "String")]
    pub loop_name: Option<String>,
}

/// Input of `guardrail_add`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct GuardrailInput {
    /// What it is about: an agent, a loop, or any other word
    #[schemars(with = "String")]
    pub domain: Option<String>,
    /// The lesson, in one line
    #[schemars(with = "String")]
    pub lesson: Option<String>,
    /// How much it matters; info if left out
    #[schemars(schema_with = "severity")]
    pub severity: Option<String>,
}

/// What an agent asks of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelToolRequest {
    /// Have something done.
    Task(TaskRequest),
    /// Look at a task, by the id as it was written.
    Status(String),
    /// Cancel a task, by the id as it was written.
    Cancel(String),
    /// Set a loop off.
    LoopTrigger {
        /// The loop's name as it was written.
        name: String,
        /// What triggered it.
        source: Option<String>,
    },
    /// Look at one loop or at all.
    LoopStatus(Option<String>),
    /// Note a lesson.
    GuardrailAdd {
        /// What it is about.
        domain: String,
        /// The lesson.
        lesson: String,
        /// How much it matters.
        severity: Severity,
    },
}

/// A task as an agent asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRequest {
    /// What it is.
    pub description: String,
    /// What the agent is told.
    pub prompt: String,
    /// The agent profile.
    pub agent: Option<String>,
    /// Seconds it may take; 0 for no limit.
    pub timeout_s: Option<u64>,
}

/// Reads the input of a tool.
///
/// # Errors
/// With the answer that says what is missing or wrong.
pub fn read(tool: KernelTool, input: Value) -> Result<KernelToolRequest, ToolAnswer> {
    // A call without arguments is a call with none.
    let input = match input {
        Value::Null => Value::Object(Map::new()),
        input => input,
    };
    Ok(match tool {
        KernelTool::Task => KernelToolRequest::Task(task(parse(input)?)?),
        KernelTool::Status => {
            let TaskStatusInput { task_id, wait_sec } = parse(input)?;
            read_wait(wait_sec.as_ref())?;
            let id = trimmed(task_id).ok_or_else(|| ToolAnswer::error("taskId is required"))?;
            KernelToolRequest::Status(id)
        }
        KernelTool::Cancel => KernelToolRequest::Cancel(task_id(input)?),
        KernelTool::LoopTrigger => {
            let LoopTriggerInput {
                loop_name,
                trigger_source,
            } = parse(input)?;
            KernelToolRequest::LoopTrigger {
                name: trimmed(loop_name)
                    .ok_or_else(|| ToolAnswer::error("loopName is required"))?,
                source: trimmed(trigger_source),
            }
        }
        KernelTool::LoopStatus => {
            KernelToolRequest::LoopStatus(trimmed(parse::<LoopStatusInput>(input)?.loop_name))
        }
        KernelTool::GuardrailAdd => {
            let GuardrailInput {
                domain,
                lesson,
                severity,
            } = parse(input)?;
            let (Some(domain), Some(lesson)) = (trimmed(domain), trimmed(lesson)) else {
                return Err(ToolAnswer::error("domain and lesson are required"));
            };
            // Anything else is information (specification).
            let severity = trimmed(severity).and_then(|word| Severity::parse(&word.to_lowercase()));
            KernelToolRequest::GuardrailAdd {
                domain,
                lesson,
                severity: severity.unwrap_or(Severity::Info),
            }
        }
    })
}

/// Returns how many seconds a look is to wait for the end of its task: 0 for not at all, and for what
/// [`read`] refuses. Whoever calls waits; the kernel answers at once.
#[must_use]
pub fn wait_s(input: &Value) -> u64 {
    read_wait(input.get("waitSec")).unwrap_or(0)
}

fn read_wait(given: Option<&Value>) -> Result<u64, ToolAnswer> {
    let waits = given.map_or(Ok(None), seconds);
    let waits =
        waits.map_err(|()| ToolAnswer::error("waitSec must be a number of seconds, 0 or more"))?;
    Ok(waits.unwrap_or(0).min(WAIT_MAX_S))
}

fn task(input: BackgroundTaskInput) -> Result<TaskRequest, ToolAnswer> {
    let (Some(description), Some(prompt)) = (trimmed(input.description), trimmed(input.prompt))
    else {
        return Err(ToolAnswer::error("description and prompt are required"));
    };
    let timeout_s = match input.timeout_sec {
        None | Some(Value::Null) => None,
        Some(given) => seconds(&given)
            .map_err(|()| ToolAnswer::error("timeoutSec must be a number of seconds, 0 or more"))?,
    };
    Ok(TaskRequest {
        description,
        prompt,
        agent: trimmed(input.agent),
        timeout_s,
    })
}

fn task_id(input: Value) -> Result<String, ToolAnswer> {
    let id = parse::<TaskIdInput>(input)?.task_id;
    trimmed(id).ok_or_else(|| ToolAnswer::error("taskId is required"))
}

/// Reads a number, or a text that is one: rounded down, and never less than 0. An empty text is
/// none.
fn seconds(given: &Value) -> Result<Option<u64>, ()> {
    let number = match given {
        Value::Number(number) => number.clone(),
        Value::String(text) if text.trim().is_empty() => return Ok(None),
        Value::String(text) => text.trim().parse::<Number>().map_err(drop)?,
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return Err(()),
    };
    if let Some(whole) = number.as_u64() {
        return Ok(Some(whole.min(SECONDS_MAX)));
    }
    let float = number
        .as_f64()
        .filter(|float| float.is_finite())
        .ok_or(())?;
    if float <= 0.0 {
        return Ok(Some(0));
    }
    // Written out and read again: whole, whatever its size.
    let whole = format!("{:.0}", float.floor());
    Ok(Some(whole.parse().unwrap_or(SECONDS_MAX).min(SECONDS_MAX)))
}

fn trimmed(text: Option<String>) -> Option<String> {
    let text = text?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn parse<Input: DeserializeOwned>(input: Value) -> Result<Input, ToolAnswer> {
    serde_path_to_error::deserialize(input).map_err(|error| {
        let path = error.path().to_string();
        let rule = error.inner();
        ToolAnswer::error(&match path.as_str() {
            "." => format!("bad input: {rule}"),
            path => format!("bad input: {path}: {rule}"),
        })
    })
}

fn severity(_: &mut SchemaGenerator) -> Schema {
    value_schema::words(
        &[Severity::Info, Severity::Warning, Severity::Critical].map(Severity::word),
    )
}
