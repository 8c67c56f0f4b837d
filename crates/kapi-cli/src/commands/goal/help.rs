//! `kapi goal help`: the subcommands of `/until-done`, as the specification lists them.

use kapi_goal::rules::slash::subcommand::{SUBCOMMANDS, help};
use serde_json::json;

use crate::context::Context;
use crate::exit_code::Exit;
use crate::ui::Format;

/// Shows the list.
pub(crate) fn run(context: &Context) -> Exit {
    match context.ui.format {
        Format::Json => {
            let rows: Vec<_> = SUBCOMMANDS
                .iter()
                .map(|row| json!({"usage": row.usage, "purpose": row.purpose}))
                .collect();
            context.ui.json(&json!({"subcommands": rows}));
        }
        Format::Human => {
            context.ui.raw(help().as_bytes());
            context
                .ui
                .line("In a shell, `kapi goal slash LINE` carries out such a line.");
        }
    }
    Exit::Success
}
