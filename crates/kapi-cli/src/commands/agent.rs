//! `kapi agent`: an agent's tools for those who only have a shell.
//!
//! One call, one line of JSON on standard output, exit code 0 if it was recorded and 1 if it was
//! refused. Without options the input is JSON on standard input.

mod kernel;
mod words;

use std::io::{self, Read as _};

use clap::Subcommand;
use kapi_goal::tools::{GoalTool, ToolRefusal, answer};
use kapi_run::tool_client::CALL_BYTES_MAX;
use kapi_wire::kernel_tools::{AnyTool, KernelTool, ToolOffer};
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::tool_service::ToolCalls;

/// What a refused call exits with.
const REFUSED: u8 = 1;

/// Options of `kapi agent`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The tool to call
    #[command(subcommand)]
    verb: AgentVerb,
}

/// The tools as words.
#[derive(Debug, Subcommand)]
enum AgentVerb {
    /// Draft the goal's contract (JSON on standard input)
    Set,
    /// Submit the task list (JSON on standard input)
    Plan,
    /// Restructure the task list (JSON on standard input)
    Replan,
    /// Update one task (options, or JSON on standard input)
    TaskUpdate(words::TaskUpdate),
    /// Record one line of progress
    Progress(words::ProgressArgs),
    /// Claim that the goal is complete
    Complete(words::Complete),
    /// Block the goal on a question to the user
    Block(words::BlockArgs),
    /// Park the goal until a condition holds
    Wait(words::WaitArgs),
    /// Record what was learned from the goal
    Distill(words::DistillArgs),
    /// Show the goal's status
    Status(words::StatusArgs),
    /// Print the name, description and JSON Schema of every tool
    Schema,
    /// Run and track background tasks
    #[command(subcommand)]
    Task(kernel::TaskVerb),
    /// Trigger loops and show their status
    #[command(subcommand)]
    Loop(kernel::Loop),
    /// Record lessons
    #[command(subcommand)]
    Guardrail(kernel::Guardrail),
    /// One of the kernel's tools under its own name; JSON on standard input
    #[command(flatten)]
    Named(kernel::RawToolArgs),
}

/// Makes one call.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let calls = ToolCalls::new(context);
    let Some(tool) = args.verb.tool() else {
        context.ui.json(&schemas(calls.offer()));
        return Ok(Exit::Success);
    };
    let given = match args.verb.said().map_or_else(read_input, Ok) {
        Ok(input) => calls.call(tool, input).finish(),
        Err(refused) => answer::refused(&refused),
    };
    context.ui.json(&given);
    Ok(if answer::is_refusal(&given) {
        Exit::Agent(REFUSED)
    } else {
        Exit::Success
    })
}

/// The tools as MCP lists them, each with its word for this command.
fn schemas(offer: ToolOffer) -> Value {
    let mut tools = offer.listing();
    for entry in &mut tools {
        let name = entry["name"].as_str().unwrap_or_default();
        let verb = json!(GoalTool::named(name).map_or(name, |tool| tool.verb()));
        entry["verb"] = verb;
    }
    json!({"tools": tools})
}

fn read_input() -> Result<Value, ToolRefusal> {
    let mut text = String::new();
    let limit = u64::try_from(CALL_BYTES_MAX).unwrap_or(u64::MAX);
    io::stdin()
        .lock()
        .take(limit)
        .read_to_string(&mut text)
        .map_err(|error| ToolRefusal::input(format!("standard input: {error}")))?;
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(&text)
        .map_err(|error| ToolRefusal::input(format!("standard input is not JSON: {error}")))
}

impl AgentVerb {
    const fn tool(&self) -> Option<AnyTool> {
        let tool = match self {
            Self::Task(verb) => return Some(AnyTool::Kernel(verb.tool())),
            Self::Loop(verb) => return Some(AnyTool::Kernel(verb.tool())),
            Self::Guardrail(_) => return Some(AnyTool::Kernel(KernelTool::GuardrailAdd)),
            Self::Named(verb) => return Some(AnyTool::Kernel(verb.tool())),
            Self::Set => GoalTool::Set,
            Self::Plan => GoalTool::Plan,
            Self::Replan => GoalTool::Replan,
            Self::TaskUpdate(_) => GoalTool::TaskUpdate,
            Self::Progress(_) => GoalTool::Progress,
            Self::Complete(_) => GoalTool::Complete,
            Self::Block(_) => GoalTool::Block,
            Self::Wait(_) => GoalTool::Wait,
            Self::Distill(_) => GoalTool::Distill,
            Self::Status(_) => GoalTool::Status,
            Self::Schema => return None,
        };
        Some(AnyTool::Goal(tool))
    }

    /// Returns the input as the options say it; `None` where it is on standard input.
    fn said(&self) -> Option<Value> {
        match self {
            Self::Set | Self::Plan | Self::Replan | Self::Schema | Self::Named(_) => None,
            Self::Task(words) => Some(words.input()),
            Self::Loop(words) => Some(words.input()),
            Self::Guardrail(words) => Some(words.input()),
            Self::TaskUpdate(words) => words.input(),
            Self::Progress(words) => words.input(),
            Self::Complete(words) => words.input(),
            Self::Block(words) => words.input(),
            Self::Wait(words) => words.input(),
            Self::Distill(words) => words.input(),
            Self::Status(words) => Some(words.input()),
        }
    }
}
