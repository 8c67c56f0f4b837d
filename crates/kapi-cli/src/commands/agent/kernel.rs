//! The kernel's tools as words, and the input that their options say.
//!
//! Whether the input is right is not decided here: it is read like any other.

use kapi_wire::kernel_tools::KernelTool;
use serde_json::{Value, json};

use super::words::object;

/// Verbs of `kapi agent task`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum TaskVerb {
    /// Submit a task and print its id at once
    Run(TaskRunArgs),
    /// Show a task's status, output, usage and error
    Status(TaskIdArgs),
    /// Cancel a pending or running task
    Cancel(TaskIdArgs),
}

/// Options of `kapi agent task run`.
#[derive(Debug, clap::Args)]
pub(crate) struct TaskRunArgs {
    /// The agent's complete prompt
    #[arg(value_name = "PROMPT")]
    prompt: String,
    /// A short description
    #[arg(long, value_name = "TEXT")]
    description: String,
    /// The agent profile
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// Time limit in seconds; 0 means no limit
    #[arg(long, value_name = "N")]
    timeout: Option<String>,
}

/// Names a task.
#[derive(Debug, clap::Args)]
pub(crate) struct TaskIdArgs {
    /// The task's id
    #[arg(value_name = "TASK")]
    id: String,
}

/// Verbs of `kapi agent loop`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Loop {
    /// Trigger a run of a loop
    Trigger(TriggerArgs),
    /// Show the status of one loop or all loops
    Status(LoopStatusArgs),
}

/// Options of `kapi agent loop trigger`.
#[derive(Debug, clap::Args)]
pub(crate) struct TriggerArgs {
    /// The loop's name
    #[arg(value_name = "LOOP")]
    name: String,
    /// A short description of the trigger
    #[arg(long, value_name = "TEXT")]
    source: Option<String>,
}

/// Options of `kapi agent loop status`.
#[derive(Debug, clap::Args)]
pub(crate) struct LoopStatusArgs {
    /// The loop's name
    #[arg(value_name = "LOOP")]
    name: Option<String>,
}

/// Verbs of `kapi agent guardrail`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Guardrail {
    /// Propose a lesson for a person to accept
    Add(Add),
}

/// Options of `kapi agent guardrail add`.
#[derive(Debug, clap::Args)]
pub(crate) struct Add {
    /// The domain: an agent, a loop, or any other word
    #[arg(value_name = "DOMAIN")]
    domain: String,
    /// The lesson, in one line
    #[arg(value_name = "LESSON")]
    lesson: String,
    /// Severity: info, warning or critical
    #[arg(long, value_name = "WORD")]
    severity: Option<String>,
}

/// The tools under their own names, for programs that pass JSON on.
#[derive(Debug, Clone, Copy, clap::Subcommand)]
pub(crate) enum RawToolArgs {
    /// Call background_task (JSON on standard input)
    #[command(name = "background_task", hide = true)]
    BackgroundTask,
    /// Call background_status (JSON on standard input)
    #[command(name = "background_status", hide = true)]
    BackgroundStatus,
    /// Call background_cancel (JSON on standard input)
    #[command(name = "background_cancel", hide = true)]
    BackgroundCancel,
    /// Call loop_trigger (JSON on standard input)
    #[command(name = "loop_trigger", hide = true)]
    LoopTrigger,
    /// Call loop_status (JSON on standard input)
    #[command(name = "loop_status", hide = true)]
    LoopStatus,
    /// Call guardrail_add (JSON on standard input)
    #[command(name = "guardrail_add", hide = true)]
    GuardrailAdd,
}

impl TaskVerb {
    pub(super) const fn tool(&self) -> KernelTool {
        match self {
            Self::Run(_) => KernelTool::Task,
            Self::Status(_) => KernelTool::Status,
            Self::Cancel(_) => KernelTool::Cancel,
        }
    }

    pub(super) fn input(&self) -> Value {
        match self {
            Self::Run(run) => {
                let mut input = object(&[("agent", &run.profile), ("timeoutSec", &run.timeout)]);
                input["description"] = json!(run.description);
                input["prompt"] = json!(run.prompt);
                input
            }
            Self::Status(TaskIdArgs { id }) | Self::Cancel(TaskIdArgs { id }) => {
                json!({"taskId": id})
            }
        }
    }
}

impl Loop {
    pub(super) const fn tool(&self) -> KernelTool {
        match self {
            Self::Trigger(_) => KernelTool::LoopTrigger,
            Self::Status(_) => KernelTool::LoopStatus,
        }
    }

    pub(super) fn input(&self) -> Value {
        match self {
            Self::Trigger(trigger) => {
                let mut input = object(&[("triggerSource", &trigger.source)]);
                input["loopName"] = json!(trigger.name);
                input
            }
            Self::Status(status) => object(&[("loopName", &status.name)]),
        }
    }
}

impl Guardrail {
    pub(super) fn input(&self) -> Value {
        let Self::Add(add) = self;
        let mut input = object(&[("severity", &add.severity)]);
        input["domain"] = json!(add.domain);
        input["lesson"] = json!(add.lesson);
        input
    }
}

impl RawToolArgs {
    pub(super) const fn tool(self) -> KernelTool {
        match self {
            Self::BackgroundTask => KernelTool::Task,
            Self::BackgroundStatus => KernelTool::Status,
            Self::BackgroundCancel => KernelTool::Cancel,
            Self::LoopTrigger => KernelTool::LoopTrigger,
            Self::LoopStatus => KernelTool::LoopStatus,
            Self::GuardrailAdd => KernelTool::GuardrailAdd,
        }
    }
}
