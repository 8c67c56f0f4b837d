//! `kapi sandbox profile`: the profiles there are, and the text of one.
//!
//! What is shown can be kept in a file of the person's own and changed.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::profile::find::{self, ProfileSearch};
use crate::profile::{built_in, trusted};
use crate::ui::Format;

/// Options of `kapi sandbox profile`.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Args {
    /// Profile name [default: list all profiles]
    name: Option<String>,
    /// Trust a project's agent-sandbox.yaml with its content as it is now
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    trust: Option<PathBuf>,
    /// Trust it without showing it and asking
    #[arg(short, long, requires = "trust")]
    yes: bool,
}

#[derive(Debug, Serialize)]
struct TrustView {
    kind: &'static str,
    file: String,
    sha256: String,
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

/// Shows one profile, or all that are built in; or trusts a project's.
pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    if let Some(file) = &args.trust {
        return trust(context, &context.cwd.join(file), args.yes);
    }
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

/// Trusts the content of a file: exactly what the person was shown.
fn trust(context: &Context, file: &Path, is_sure: bool) -> Result<Exit, Error> {
    context.require_human("trust a file")?;
    let content = find::content(file)?;
    if !is_sure {
        context.ui.say_page(content.text.trim_end());
        let question = format!("Let {} decide what launches may do?", file.display());
        if context.ui.confirm(&question) != Some(true) {
            let text = format!("{} is not trusted", file.display());
            return Err(Error::new(Exit::Denied, text)
                .with_hint("read it, then add `--yes` if nobody is there to answer."));
        }
    }
    trusted::add(&context.home, &content.hash, file)?;
    match context.ui.format {
        Format::Json => context.ui.json(&TrustView {
            kind: "trusted",
            file: file.display().to_string(),
            sha256: content.hash,
        }),
        Format::Human => context
            .ui
            .line(&format!("{} is trusted until it changes.", file.display())),
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
