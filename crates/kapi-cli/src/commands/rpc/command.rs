//! Any other command of Kapi's, for a host that has a process of ours already.
//!
//! It does what it does with `--json`, in the name of the same person; its data is the answer. What
//! it would ask at a terminal it asks nobody.

use kapi_wire::rpc::CommandReply;
use serde_json::Value;

use crate::context::Context;
use crate::error::Error;
use crate::ui::{Format, Ui, captured};

/// Commands that speak to somebody on standard input and output themselves.
const CONVERSATIONS: &[&str] = &["rpc", "mcp", "acp", "agent"];

/// Runs a command to its end.
pub(super) fn run(context: &Context, args: &[String]) -> Result<CommandReply, Error> {
    let named = args.iter().find(|word| !word.starts_with('-'));
    if let Some(name) = named.filter(|name| CONVERSATIONS.contains(&name.as_str())) {
        return Err(Error::usage(format!(
            "`kapi {name}` needs standard input and output of its own"
        ))
        .with_hint("start it as a process."));
    }
    let context = Context {
        ui: Ui {
            format: Format::Json,
            ..context.ui
        },
        ..context.clone()
    };
    let words = ["kapi"].into_iter().chain(args.iter().map(String::as_str));
    let (exit, data) = captured(|| match crate::run_typed(&context, words) {
        Ok(exit) => exit,
        Err(error) => crate::announce(context.ui, &error),
    });
    Ok(CommandReply {
        exit_code: exit.code(),
        documents: documents(&data),
    })
}

/// Reads what was printed: one document a line, and what is none as text.
fn documents(data: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(data);
    let lines = text.lines().filter(|line| !line.is_empty());
    let read = lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| Value::String(line.to_owned())));
    read.collect()
}
