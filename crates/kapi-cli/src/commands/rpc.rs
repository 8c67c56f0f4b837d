//! `kapi rpc`: the goal of a session, for the host of that session, over JSON lines.
//!
//! One process for one session, from its first command until it hangs up. This thread hears the host;
//! another drives the goal. What the host asks is decided where goals are.

mod answer;
pub(crate) mod attached;
mod begin;
mod command;
mod dialog;
mod drive;
mod gate;
mod host;
mod host_models;
mod slash;
mod view;

use std::io::{BufRead, BufReader};
use std::thread;

use kapi_core::task_id::KernelTaskId;
use kapi_goal::tools::answer::is_refusal;
use kapi_mcp::message::{self, IncomingMessage, RequestError};
use kapi_wire::kernel_tools::{AnyTool, KernelTool};
use kapi_wire::rpc::{RpcCall, ToolReply};
use serde_json::{Value, json};

use crate::commands::mcp::input::Input;
use crate::commands::rpc::host::Host;
use crate::context::Context;
use crate::driving::interrupts;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::tool_service::ToolCalls;
use crate::tool_service::attendants::Attendants;

/// What other processes are told about who holds a lock.
const OWNER: &str = "kapi rpc";
/// The longest line that is read, in bytes.
const LINE_BYTES_MAX: usize = 16 << 20;

/// Options of `kapi rpc`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Serves one session until it hangs up.
pub(crate) fn run(context: &Context, _args: &Args) -> Result<Exit, Error> {
    context.require_human("speak for a session")?;
    let host = Host::new(context);
    let interrupts = interrupts()?;
    let attendants = Attendants::new(context, &interrupts);
    thread::scope(|scope| {
        scope.spawn(|| drive::drive_goals(&host));
        let attend = |task: KernelTaskId| attendants.take(scope, task);
        let mut kernel = ToolCalls::new(context).attended_by(&attend);
        let mut lines = BufReader::new(Input::new(&interrupts));
        let served = serve(&host, &mut kernel, &mut lines);
        // What is under way goes back to its queue, and the goal stays as it is.
        host.leave();
        interrupts.cancel().raise();
        served
    })?;
    Ok(Exit::Success)
}

fn serve(
    host: &Host<'_>,
    kernel: &mut ToolCalls<'_>,
    lines: &mut dyn BufRead,
) -> Result<(), Error> {
    let mut line = String::new();
    loop {
        line.clear();
        let n_read = lines
            .read_line(&mut line)
            .map_err(|error| Error::failed(&error))?;
        if n_read == 0 {
            return Ok(());
        }
        if line.len() > LINE_BYTES_MAX {
            return Err(Error::usage("a message is longer than 16 MiB"));
        }
        if let Some(answer) = answer(host, kernel, &line) {
            host.send(&answer);
        }
    }
}

/// Returns the answer to one line; nothing to what is no request.
fn answer(host: &Host<'_>, kernel: &mut ToolCalls<'_>, line: &str) -> Option<Value> {
    let Ok(value) = serde_json::from_str::<Value>(line) else {
        return Some(refused(
            &Value::Null,
            message::PARSE_ERROR,
            "the line is not JSON",
        ));
    };
    match IncomingMessage::read(&value) {
        IncomingMessage::Request { id, method, params } => {
            let call = json!({ "method": method, "params": params });
            Some(request(host, kernel, &id, call))
        }
        IncomingMessage::Notification { .. } | IncomingMessage::Answer { .. } => None,
        IncomingMessage::Invalid { id } => {
            let text = "it is not a request of JSON-RPC 2.0";
            Some(refused(&id, message::INVALID_REQUEST, text))
        }
    }
}

fn request(host: &Host<'_>, kernel: &mut ToolCalls<'_>, id: &Value, call: Value) -> Value {
    let call = match serde_json::from_value::<RpcCall>(call) {
        Ok(call) => call,
        Err(error) => return refused(id, message::INVALID_PARAMS, &error.to_string()),
    };
    match perform(host, kernel, call) {
        Ok(result) => message::result(id, &result),
        Err(error) => {
            let hint = error.hint.as_deref().unwrap_or_default();
            let text = format!("{}\n{hint}", error.message);
            refused(id, i64::from(error.exit.code()), text.trim_end())
        }
    }
}

fn refused(id: &Value, code: i64, text: &str) -> Value {
    message::error(id, &RequestError::new(code, text.to_owned()))
}

fn perform(host: &Host<'_>, kernel: &mut ToolCalls<'_>, call: RpcCall) -> Result<Value, Error> {
    match call {
        RpcCall::Hello(hello) => value(&host.greet(&hello)?),
        RpcCall::Open(name) => value(&host.open(&name.goal)?),
        RpcCall::Slash(slash) => value(&slash::perform(host, &slash.line)?),
        RpcCall::Answer(given) => answer::answer(host, &given),
        RpcCall::Said(words) => host.said(&words.text).map(|()| json!({})),
        RpcCall::RunStarted => value(&host.run_started()?),
        RpcCall::ToolCall(used) => value(&gate::ask(host, &used)),
        RpcCall::Tool(used) => match KernelTool::named(&used.tool) {
            Some(tool) => {
                let answer = kernel.call(AnyTool::Kernel(tool), used.input).finish();
                value(&ToolReply {
                    refused: is_refusal(&answer),
                    text: answer.to_string(),
                })
            }
            None => value(&gate::call(host, &used)?),
        },
        RpcCall::RunEnded(end) => host.run_ended(&end).map(|()| json!({})),
        RpcCall::Compacted => value(&host.compacted()?),
        RpcCall::Models(list) => {
            host.models.know(&list);
            Ok(json!({}))
        }
        RpcCall::ModelAnswered(answer) => {
            host.models.answered(answer);
            Ok(json!({}))
        }
        RpcCall::Command(line) => value(&command::run(host.context, &line.args)?),
    }
}

fn value<T: serde::Serialize>(answer: &T) -> Result<Value, Error> {
    serde_json::to_value(answer).map_err(|error| Error::failed(&error))
}
