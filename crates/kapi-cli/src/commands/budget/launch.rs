//! What the launches in a sandbox used: tokens by their transcripts, and disk. Each launch has limits of
//! its own, and those of the last are shown, or raised.

use std::fs;

use kapi_core::usage::Usage;
use kapi_launch::paths::SandboxPaths;
use kapi_launch::{log, look, raise};
use kapi_run::spending::usage_meter::UsageLimits;
use kapi_sys::clock::Clock as _;
use serde::Deserialize;
use serde_json::json;

use crate::amount;
use crate::commands::budget::RaiseArgs;
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

/// Raises the limits of the last launch, and shows what was used of them.
pub(super) fn raise(
    context: &Context,
    location: &SandboxPaths,
    args: &RaiseArgs,
) -> Result<Exit, Error> {
    context.require_human("raise the limits of a launch")?;
    if args.wall.is_some() {
        return Err(no_option("--wall"));
    }
    let more = UsageLimits {
        tokens: args.tokens,
        usd_micros: args.usd,
    };
    let now_ms = context.clock.now_ms();
    let raised = raise::raise(log::at(location), &context.actor, more, now_ms);
    raised.map_err(|error| Error::launch(&error))?;
    let exit = budget(context, location)?;
    let holder = location.holder().map_err(|error| Error::launch(&error))?;
    if holder.is_none() && context.ui.format == Format::Human {
        let id = location.id().as_str();
        let line = format!("Resume it with `kapi resume launch/{id}`.");
        context.ui.line(&line);
    }
    Ok(exit)
}

/// Returns the error that a launch has no such option, which is not passed over.
pub(crate) fn no_option(name: &str) -> Error {
    Error::usage(format!("a launch has no `{name}`"))
        .with_hint("omit it; `--tokens` and `--usd` raise the limits of a launch.")
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
    let history = log::at(location)
        .history()
        .map_err(|error| Error::launch(&error))?;
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
