//! `kapi loop guardrail edit`: where a domain's lessons stand, for a person's own editor.
//!
//! Starts no editor: `$EDITOR "$(kapi loop guardrail edit <domain>)"` does.

use std::io::IsTerminal as _;

use kapi_task::rules::guardrail::Domain;
use serde_json::json;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel;
use crate::ui::Format;

/// Options of `kapi loop guardrail edit`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Domain of the lessons
    domain: String,
}

/// Prints the path of a domain's file.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("edit guardrails")?;
    let domain = Domain::parse(&args.domain).map_err(|error| Error::usage(error.to_string()))?;
    kernel::with(context, "kapi loop guardrail", |kernel| {
        let file = kernel.memory().file(&domain);
        if !file.is_file() {
            let text = format!("there are no lessons about {domain}");
            return Err(Error::new(Exit::NotFound, text).with_hint(format!(
                "add the first one with `kapi loop guardrail add {domain} \"<lesson>\"`."
            )));
        }
        match context.ui.format {
            Format::Json => context.ui.json(&json!({
                "domain": domain.as_str(), "file": file.display().to_string(),
            })),
            Format::Human => context.ui.line(&file.display().to_string()),
        }
        if std::io::stdout().is_terminal() {
            context.ui.say(
                "Edit it as you like; `kapi loop guardrail list` reports lines that it cannot read.",
            );
        }
        Ok(Exit::Success)
    })
}
