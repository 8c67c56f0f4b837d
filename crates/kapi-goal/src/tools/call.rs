//! Reading one call: the tool's name and its input, all of it or nothing.
//!
//! What is wrong is said with the place it stands at, so that an agent can mend it.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::rules::tool::ToolCall;
use crate::rules::wait::WaitFor;
use crate::tools::input::{
    BlockInput, CompleteInput, DistillInput, PlanInput, ProgressInput, ReplanInput, SetInput,
    StatusInput, TaskUpdateInput, UntilInput, WaitInput,
};
use crate::tools::task::all;
use crate::tools::{GoalTool, ToolRefusal};

/// What an agent asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GoalToolRequest {
    /// A draft of the contract.
    Set(Box<SetInput>),
    /// Something of the goal whose turn it is.
    Call(Box<ToolCall>),
    /// A look.
    Status(StatusInput),
}

/// Reads the input of a tool, at a time in milliseconds since the epoch.
///
/// # Errors
/// With the code `unknown_tool` or `bad_input`, the place and the rule.
pub fn read(name: &str, input: Value, now_ms: i64) -> Result<GoalToolRequest, ToolRefusal> {
    let Some(tool) = GoalTool::named(name) else {
        let names: Vec<&str> = GoalTool::ALL.into_iter().map(GoalTool::name).collect();
        return Err(ToolRefusal::new(
            "unknown_tool",
            format!("unknown tool; available: {}", names.join(", ")),
        ));
    };
    // A call without arguments is a call with none.
    let input = match input {
        Value::Null => Value::Object(Map::new()),
        input => input,
    };
    if !input.is_object() {
        return Err(ToolRefusal::input(
            "the input must be a JSON object".to_owned(),
        ));
    }
    let call = match tool {
        GoalTool::Set => {
            return parse::<SetInput>(input).map(|it| GoalToolRequest::Set(Box::new(it)));
        }
        GoalTool::Status => return parse::<StatusInput>(input).map(GoalToolRequest::Status),
        GoalTool::Plan => ToolCall::Plan {
            tasks: all(parse::<PlanInput>(input)?.tasks),
        },
        GoalTool::Replan => {
            let ReplanInput { operations, reason } = parse(input)?;
            let operations = all(operations);
            ToolCall::Replan { operations, reason }
        }
        GoalTool::TaskUpdate => {
            let TaskUpdateInput { id, patch } = parse(input)?;
            let patch = Box::new(patch.into());
            ToolCall::TaskUpdate { id, patch }
        }
        GoalTool::Progress => {
            let ProgressInput { note, phase } = parse(input)?;
            ToolCall::Progress { note, phase }
        }
        GoalTool::Complete => {
            let CompleteInput { evidence, summary } = parse(input)?;
            ToolCall::Complete { evidence, summary }
        }
        GoalTool::Block => {
            let BlockInput { question, reason } = parse(input)?;
            ToolCall::Block { question, reason }
        }
        GoalTool::Wait => wait(parse(input)?, now_ms),
        GoalTool::Distill => ToolCall::Distill {
            markdown: parse::<DistillInput>(input)?.prd_markdown,
        },
    };
    Ok(GoalToolRequest::Call(Box::new(call)))
}

fn wait(input: WaitInput, now_ms: i64) -> ToolCall {
    let at_ms = |seconds: u64| {
        let ms = i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX);
        now_ms.saturating_add(ms)
    };
    let until = match input.until {
        UntilInput::Time { seconds } => WaitFor::Time {
            at_ms: at_ms(seconds),
        },
        UntilInput::File { path, until } => WaitFor::File { path, until },
        UntilInput::Command {
            command,
            every_seconds,
        } => WaitFor::Command {
            command,
            every_ms: every_seconds.saturating_mul(1_000),
        },
        UntilInput::Approval { what } => WaitFor::Approval { what },
        UntilInput::Quota { provider, seconds } => WaitFor::Quota {
            provider,
            at_ms: at_ms(seconds),
        },
    };
    ToolCall::Wait {
        until,
        reason: input.reason,
        timeout_ms: input
            .timeout_seconds
            .map(|seconds| seconds.saturating_mul(1_000)),
    }
}

fn parse<Input: DeserializeOwned>(input: Value) -> Result<Input, ToolRefusal> {
    serde_path_to_error::deserialize(input).map_err(|error| {
        let path = error.path().to_string();
        let rule = error.inner();
        ToolRefusal::input(match path.as_str() {
            "." => rule.to_string(),
            path => format!("{path}: {rule}"),
        })
    })
}
