//! `kapi sandbox profile`: the profiles there are, and the text of one.
//!
//! What is shown can be kept in a file of the person's own and changed.

use std::fs;

use serde::Serialize;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::profile::built_in;
use crate::profile::find::{self, ProfileSearch};
use crate::ui::Format;

/// Options of `kapi sandbox profile`.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Args {
    /// Profile name [default: list all profiles]
    name: Option<String>,
}

#[derive(Debug, Serialize)]
struct SandboxProfileView {
    kind: &'static str,
    profiles: Vec<ProfileEntry>,
}

#[derive(Debug, Serialize)]
struct ProfileEntry {
    name: String,
    #[serde(rename = "place")]
    location: String,
    text: String,
}

/// Shows one profile, or all that are built in.
pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let profiles = match &args.name {
        Some(name) => vec![entry(context, name)?],
        None => built_in::ALL.iter().map(built_in_entry).collect(),
    };
    let ui = context.ui;
    match (ui.format, &args.name) {
        (Format::Json, _) => ui.json(&SandboxProfileView {
            kind: "profiles",
            profiles,
        }),
        (Format::Human, Some(_)) => {
            for profile in &profiles {
                ui.say(&format!("note: {}", profile.location));
                ui.page(profile.text.trim_end());
            }
        }
        (Format::Human, None) => {
            for profile in &profiles {
                let about = profile.text.lines().next().unwrap_or_default();
                ui.line(&format!(
                    "{:<12} {}",
                    profile.name,
                    about.trim_start_matches("# ")
                ));
            }
            ui.say("hint: show one with `kapi sandbox profile <name>`.");
        }
    }
    Ok(Exit::Success)
}

fn entry(context: &Context, name: &str) -> Result<ProfileEntry, Error> {
    let search = ProfileSearch {
        home: &context.home,
        config_path: &context.config_path,
        project: &context.cwd,
        trusted: &[],
    };
    let profile = find::by_name(&search, name)?;
    match &profile.path {
        None => Ok(built_in::find(name).map_or_else(
            || ProfileEntry {
                name: profile.name.clone(),
                location: profile.location(),
                text: String::new(),
            },
            built_in_entry,
        )),
        Some(path) => Ok(ProfileEntry {
            name: profile.name.clone(),
            location: path.display().to_string(),
            text: fs::read_to_string(path).map_err(|error| {
                Error::usage(format!("failed to read {}: {error}", path.display()))
            })?,
        }),
    }
}

fn built_in_entry(profile: &built_in::BuiltIn) -> ProfileEntry {
    ProfileEntry {
        name: profile.name.to_owned(),
        location: format!("built-in {}", profile.name),
        text: profile.text.to_owned(),
    }
}
