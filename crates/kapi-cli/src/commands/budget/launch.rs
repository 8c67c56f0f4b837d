//! What the launches in a sandbox used: tokens by their transcripts, and disk. Each launch has limits of
//! its own, and those of the last are shown.

use std::fs;

use kapi_core::usage::Usage;
use kapi_launch::paths::SandboxPaths;
use kapi_launch::{log, look};
use serde::Deserialize;
use serde_json::json;

use crate::amount;
use crate::commands::log::launch::transcripts;
use crate::commands::sandbox::list::size;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;

/// What of a transcript's line counts.
#[derive(Debug, Deserialize)]
struct UsedLine {
    #[serde(rename = "type")]
    kind: String,
    usage: Usage,
}

/// Shows what was used.
pub(super) fn budget(context: &Context, location: &SandboxPaths) -> Result<Exit, Error> {
    context.require_human("access sandboxes from outside")?;
    let known = look::known(location).map_err(|error| Error::launch(&error))?;
    let mut used = Usage::default();
    for path in transcripts(&context.disk, location)?.values() {
        let text = fs::read_to_string(path).map_err(|error| {
            let text = format!("failed to read {}: {error}", path.display());
            Error::new(Exit::Failed, text)
        })?;
        let lines = text.lines();
        let lines = lines.filter_map(|line| serde_json::from_str::<UsedLine>(line).ok());
        lines
            .filter(|line| line.kind == "used")
            .for_each(|line| used.add(&line.usage));
    }
    let history = log::history(location).map_err(|error| Error::launch(&error))?;
    let limits = history.request.map(|request| request.limits);
    let limits = limits.unwrap_or_default();
    let ui = context.ui;
    match ui.format {
        Format::Json => ui.json(&json!({
            "id": known.record.id,
            "budget": {"tokens": limits.tokens, "usd_micros": limits.usd_micros},
            "spent": {
                "tokens": used.tokens(),
                "usd_micros": used.usd_micros,
                "bytes": known.bytes,
            },
        })),
        Format::Human => {
            let spent = amount::tokens(used.tokens());
            let limit = limits.tokens.map(amount::tokens);
            ui.line(&super::row("tokens", &spent, limit));
            let spent = amount::spent(&used);
            let limit = limits.usd_micros.map(amount::usd);
            ui.line(&super::row("money", &spent, limit));
            ui.line(&format!("{:<8} {}", "disk", size(known.bytes)));
        }
    }
    Ok(Exit::Success)
}
