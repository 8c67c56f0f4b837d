//! Configuration: files read, layered and resolved once into plain values.
//!
//! Defaults, then the person's file, then the project's, then flags. A project may set what a
//! goal asks for, never what a run may touch: agents and mounts come from the person alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use kapi_agent::settings::Settings;
use kapi_core::goal::contract::TURNS_DEFAULT;
use serde::Deserialize;

use crate::amount;
use crate::error::Error;

/// Everything configuration files say, resolved.
#[derive(Debug, Clone, Default)]
pub(crate) struct Config {
    /// `[agents.<name>]`, from the person's file.
    pub(crate) agents: BTreeMap<String, Settings>,
    /// `[sandbox]`, from the person's file.
    pub(crate) sandbox: SandboxTable,
    /// `[goal]`, the project's within the person's.
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
pub(crate) fn load(person: &Path, project: Option<&Path>, home: &Path) -> Result<Config, Error> {
    let mut config = Config::default();
    if let Some(file) = read::<PersonFile>(person)? {
        check_person(person, &file, home)?;
        config.sources.push(person.to_path_buf());
        config.agents = file.agents;
        config.sandbox = file.sandbox;
        config.goal = file.goal;
    }
    let project_path = project.map(|root| root.join(".ilchul").join("config.toml"));
    if let Some(path) = project_path
        && let Some(file) = read::<ProjectFile>(&path)?
    {
        check_project(&path, &file)?;
        config.goal = within(file.goal, config.goal)?;
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

/// The project's values within the person's: limits only get smaller, protection only grows, and
/// who works and who judges is the person's choice where they made one.
fn within(project: GoalTable, person: GoalTable) -> Result<GoalTable, Error> {
    let agent = person.agent.or(project.agent);
    let judge = person.judge.or(project.judge);
    let mut protect = person.protect.unwrap_or_default();
    protect.extend(project.protect.unwrap_or_default());
    Ok(GoalTable {
        agent,
        judge,
        verify: project.verify.or(person.verify),
        protect: Some(protect).filter(|globs| !globs.is_empty()),
        base: project.base.or(person.base),
        branch_type: project.branch_type.or(person.branch_type),
        turns: smaller(project.turns, Some(person.turns.unwrap_or(TURNS_DEFAULT))),
        tokens: smaller(project.tokens, person.tokens),
        usd: smaller(project.usd, person.usd),
        wall: shorter(project.wall, person.wall)?,
        turn_timeout: shorter(project.turn_timeout, person.turn_timeout)?,
        verify_timeout: shorter(project.verify_timeout, person.verify_timeout)?,
        stall_after: smaller(project.stall_after, person.stall_after),
    })
}

fn smaller<T: PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if one < other { one } else { other }),
        (one, other) => one.or(other),
    }
}

fn shorter(one: Option<String>, other: Option<String>) -> Result<Option<String>, Error> {
    let (Some(one), Some(other)) = (&one, &other) else {
        return Ok(one.or(other));
    };
    let ms = |text: &str| amount::parse_duration_ms(text).map_err(Error::usage);
    Ok(Some(if ms(one)? < ms(other)? {
        one.clone()
    } else {
        other.clone()
    }))
}

/// Refuses what is not an agent, and what could not be mounted.
fn check_person(path: &Path, file: &PersonFile, home: &Path) -> Result<(), Error> {
    let known = ["claude", "codex", "gemini", "pi", "command"];
    for name in file.agents.keys() {
        if !known.contains(&name.as_str()) {
            let text = format!("{}: there is no agent {name:?}", path.display());
            return Err(
                Error::usage(text).with_hint(format!("it is one of: {}.", known.join(", ")))
            );
        }
    }
    for shown in &file.sandbox.read_only {
        let at_home = shown.strip_prefix("~").map(|rest| home.join(rest));
        let full = at_home.as_deref().unwrap_or(shown);
        if !full.is_absolute() || !full.exists() {
            return Err(Error::usage(format!(
                "{}: `read_only` path {} must be absolute (or begin with ~/) and exist",
                path.display(),
                shown.display()
            )));
        }
    }
    Ok(())
}

/// Refuses an agent or a judge that is a program: a project must not choose what runs.
fn check_project(path: &Path, file: &ProjectFile) -> Result<(), Error> {
    let named = [("agent", &file.goal.agent), ("judge", &file.goal.judge)];
    for (key, value) in named {
        if value.as_deref().is_some_and(|value| value.contains(':')) {
            return Err(Error::usage(format!(
                "{}: a project's `{key}` must be a built-in agent",
                path.display()
            ))
            .with_hint("put a command or a script into your own configuration, or a flag."));
        }
    }
    Ok(())
}
