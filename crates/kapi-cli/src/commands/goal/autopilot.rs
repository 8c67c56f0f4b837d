//! `kapi goal autopilot`: a person approves contracts in advance, here, until they say otherwise.
//!
//! Kept in their home, with who said it and when; a repository cannot set it.

use kapi_goal::record::preferences::{PreferenceChange, PreferenceValues};
use serde_json::json;

use crate::commands::goal::judge::project_of;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;

/// Options of `kapi goal autopilot`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// On or off [default: toggle]
    #[arg(value_enum)]
    to: Option<Switch>,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Switch {
    /// Approve contracts automatically
    On,
    /// Ask before each contract is approved
    Off,
}

/// Switches the autopilot.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    set(context, args.to)
}

/// Records whether the autopilot is on; where that is not said, it is switched.
pub(crate) fn switch(context: &Context, to: Option<bool>) -> Result<PreferenceValues, Error> {
    context.require_human("turn the autopilot on or off")?;
    let preferences = context.preferences(&project_of(context)?)?;
    let failed = |error| Error::engine(&error, "");
    let on = match to {
        Some(on) => on,
        None => preferences.load().map_err(failed)?.autopilot.is_none(),
    };
    preferences
        .change(&context.actor, &PreferenceChange::AutopilotSet { on })
        .map_err(failed)
}

/// Switches the autopilot on or off, or to the other.
pub(super) fn set(context: &Context, to: Option<Switch>) -> Result<Exit, Error> {
    let root = project_of(context)?;
    let preferred = switch(context, to.map(|to| to == Switch::On))?;
    let on = preferred.autopilot.is_some();
    match context.ui.format {
        Format::Json => context.ui.json(&json!({
            "type": "preferences",
            "project": root.display().to_string(),
            "autopilot": preferred.autopilot.is_some(),
            "autopilot_by": preferred.autopilot,
            "judge": preferred.judge,
        })),
        Format::Human if on => {
            context.ui.line(
                "Autopilot is on: Kapi approves the contracts of new goals here without asking.",
            );
            context
                .ui
                .line("Turn it off with `kapi goal autopilot off`.");
        }
        Format::Human => context
            .ui
            .line("Autopilot is off: Kapi asks before it approves a contract."),
    }
    Ok(Exit::Success)
}
