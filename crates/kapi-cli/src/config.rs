//! Configuration: files read, layered and resolved once into plain values.
//!
//! Defaults, then the person's file, then the project's, then flags. A project may set what a
//! goal asks for, never what a run may touch: agents and mounts come from the person alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use kapi_agent::settings::Settings;
use serde::Deserialize;

use crate::error::Error;

/// Everything configuration files say, resolved.
#[derive(Debug, Clone, Default)]
pub(crate) struct Config {
    /// `[agents.<name>]`, from the person's file.
    pub(crate) agents: BTreeMap<String, Settings>,
    /// `[sandbox]`, from the person's file.
    pub(crate) sandbox: SandboxTable,
    /// `[goal]`, the project's over the person's.
    pub(crate) goal: GoalTable,
    /// The files that were read.
    pub(crate) sources: Vec<PathBuf>,
}

/// `[goal]`: what a goal gets when a flag does not say otherwise.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GoalTable {
    /// The agent.
    pub(crate) agent: Option<String>,
    /// The judge: an agent, `same` or `none`.
    pub(crate) judge: Option<String>,
    /// Verify commands.
    pub(crate) verify: Option<Vec<String>>,
    /// Protected pathspecs.
    pub(crate) protect: Option<Vec<String>>,
    /// The base revision.
    pub(crate) base: Option<String>,
    /// The branch type.
    #[serde(rename = "type")]
    pub(crate) branch_type: Option<String>,
    /// The turn budget.
    pub(crate) turns: Option<u32>,
    /// The token budget.
    pub(crate) tokens: Option<u64>,
    /// The money budget in US dollars.
    pub(crate) usd: Option<f64>,
    /// The time budget, such as `"2h"`.
    pub(crate) wall: Option<String>,
    /// The time limit of one turn.
    pub(crate) turn_timeout: Option<String>,
    /// The time limit of one verify command.
    pub(crate) verify_timeout: Option<String>,
    /// Turns without progress before the goal is stalled.
    pub(crate) stall_after: Option<u32>,
}

/// `[sandbox]`: what runs may see beyond the minimum.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SandboxTable {
    /// Host paths that are visible, read-only, at the same place.
    #[serde(default)]
    pub(crate) read_only: Vec<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PersonFile {
    #[serde(default)]
    agents: BTreeMap<String, Settings>,
    #[serde(default)]
    sandbox: SandboxTable,
    #[serde(default)]
    goal: GoalTable,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProjectFile {
    #[serde(default)]
    goal: GoalTable,
}

/// Returns where the person's file is.
pub(crate) fn person_path(home: &Path, xdg_config_home: Option<&Path>) -> PathBuf {
    let config_home = match xdg_config_home {
        Some(path) if path.is_absolute() => path.to_path_buf(),
        Some(_) | None => home.join(".config"),
    };
    config_home.join("kapi").join("config.toml")
}

/// Reads the person's file and, inside a project, the project's.
pub(crate) fn load(person: &Path, project: Option<&Path>) -> Result<Config, Error> {
    let mut config = Config::default();
    if let Some(file) = read::<PersonFile>(person)? {
        config.sources.push(person.to_path_buf());
        config.agents = file.agents;
        config.sandbox = file.sandbox;
        config.goal = file.goal;
    }
    let project_path = project.map(|root| root.join(".ilchul").join("config.toml"));
    if let Some(path) = project_path
        && let Some(file) = read::<ProjectFile>(&path)?
    {
        config.goal = over(file.goal, config.goal);
        config.sources.push(path);
    }
    Ok(config)
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Option<T>, Error> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(Error::usage(format!(
                "failed to read {}: {error}",
                path.display()
            )));
        }
    };
    toml::from_str(&text).map(Some).map_err(|error| {
        let place = error.span().map_or_else(String::new, |span| {
            let line = text
                .get(..span.start)
                .map_or(1, |before| before.matches('\n').count() + 1);
            format!(", line {line}")
        });
        Error::usage(format!("{}{place}: {}", path.display(), error.message()))
            .with_hint("`docs/configuration.md` lists every key.")
    })
}

/// The project's values over the person's.
fn over(upper: GoalTable, lower: GoalTable) -> GoalTable {
    GoalTable {
        agent: upper.agent.or(lower.agent),
        judge: upper.judge.or(lower.judge),
        verify: upper.verify.or(lower.verify),
        protect: upper.protect.or(lower.protect),
        base: upper.base.or(lower.base),
        branch_type: upper.branch_type.or(lower.branch_type),
        turns: upper.turns.or(lower.turns),
        tokens: upper.tokens.or(lower.tokens),
        usd: upper.usd.or(lower.usd),
        wall: upper.wall.or(lower.wall),
        turn_timeout: upper.turn_timeout.or(lower.turn_timeout),
        verify_timeout: upper.verify_timeout.or(lower.verify_timeout),
        stall_after: upper.stall_after.or(lower.stall_after),
    }
}
