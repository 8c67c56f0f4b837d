//! Configuration: files read, layered and resolved once into plain values.
//!
//! Defaults, then the person's file, then the project's, then the environment, then flags. A project
//! may set what a goal asks for, never what a run may touch: agents and mounts come from the person
//! alone.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use kapi_agent::agent::{AgentError, AgentKind};
use kapi_agent::launch::own_variable;
use kapi_agent::settings::AgentSettings;
use kapi_core::goal::contract::{NetworkMode, SandboxLevel};
use kapi_core::proof::policy::TestPolicy;
use kapi_core::state_directory::STATE_DIRECTORY;
use kapi_sandbox::spec::Resources;
use kapi_world::grant::Grant;
use kapi_world::judge::provider;
use serde::Deserialize;

use crate::config::file::Links;
use crate::config::grant::{LimitsTable, NetworkTable, ProjectNetworkTable, SandboxTable};
use crate::config::judges::JudgeTable;
use crate::config::kernel::{KernelSaid, KernelTable, ProjectKernelTable};
use crate::config::source::{At, Origins, Source, Text};
use crate::config::spend::{PriceTable, SpendTable, Spending};
use crate::error::Error;

pub(crate) mod file;
pub(crate) mod goal;
pub(crate) mod grant;
mod judges;
pub(crate) mod kernel;
pub(crate) mod source;
pub(crate) mod spend;
pub(crate) mod store;
pub(crate) mod webhook;

/// Variables that say what a flag of the same name says.
const AGENT: &str = "KAPI_AGENT";
const JUDGE: &str = "KAPI_JUDGE";
const LEVEL: &str = "KAPI_LEVEL";
const NETWORK: &str = "KAPI_NETWORK";
/// Where the widest network that a project wants was said.
pub(crate) const AT_MOST: &str = "project.network.mode";
/// The keys that a project may lower.
const LIMIT_KEYS: &[&str] = &[
    "sandbox.memory",
    "sandbox.processes",
    "sandbox.cpus",
    "sandbox.open_files",
    "sandbox.file_size",
    "sandbox.disk",
];

/// Everything configuration files say, resolved.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// `[agents.<name>]`, from the person's file.
    pub(crate) agents: BTreeMap<String, AgentSettings>,
    /// `[judges.<provider>]`, from the person's file.
    pub(crate) judges: BTreeMap<String, provider::Settings>,
    /// What runs may see, reach and use: the person's, narrowed by the project.
    pub(crate) grant: Grant,
    /// The level when no flag says otherwise, from the person's file.
    pub(crate) level: Option<SandboxLevel>,
    /// The network of a run, as the person says it.
    pub(crate) network: Option<NetworkMode>,
    /// The widest network that the project wants.
    pub(crate) network_at_most: Option<NetworkMode>,
    /// `[goal]`, the project's within the person's; what each of them says of checks is apart.
    pub(crate) goal: GoalTable,
    /// `[goal]` of the person's own file.
    pub(crate) person_goal: GoalTable,
    /// `[goal]` of the project's file.
    pub(crate) project_goal: GoalTable,
    /// The files that were read.
    pub(crate) sources: Vec<PathBuf>,
    /// Where each value was said.
    pub(crate) origins: Origins,
    /// What runs may see, reach and use before the project narrowed it, and where that was said.
    pub(crate) person: (Grant, Origins),
    /// The limits that the project's own file names.
    pub(crate) project_limits: Resources,
    /// Hashes of project files that count as the person's.
    pub(crate) trusted: Vec<String>,
    /// The person's table from tool calls to phases.
    pub(crate) mapping: Option<At<PathBuf>>,
    /// `[spend]`, narrowed by the project, and `[prices]`.
    pub(crate) spending: Spending,
    /// `[kernel]` of both files.
    pub(crate) kernel: KernelSaid,
}

/// `[launch]`: what holds for launches.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LaunchTable {
    trust: Vec<String>,
}

/// `[status]`: how progress is shown.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct StatusTable {
    mapping: Option<PathBuf>,
}

/// `[goal]`: what a goal gets when a flag does not say otherwise.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
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
    /// What may happen to the project's tests.
    pub(crate) tests: Option<TestPolicy>,
    /// Whether checks that pass on the base are proof enough.
    pub(crate) already_green: Option<bool>,
    /// Whether the proof may rest on scripts and settings that the change itself edits.
    pub(crate) allow_changed_setup: Option<bool>,
    /// Whether each hunk of the change is taken back in turn.
    pub(crate) prove_diff: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PersonFile {
    #[serde(default)]
    agents: BTreeMap<String, AgentSettings>,
    #[serde(default)]
    judges: BTreeMap<String, JudgeTable>,
    #[serde(default)]
    sandbox: SandboxTable,
    #[serde(default)]
    network: NetworkTable,
    #[serde(default)]
    goal: GoalTable,
    #[serde(default)]
    launch: LaunchTable,
    #[serde(default)]
    status: StatusTable,
    #[serde(default)]
    spend: SpendTable,
    #[serde(default)]
    prices: BTreeMap<String, PriceTable>,
    #[serde(default)]
    kernel: KernelTable,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProjectFile {
    #[serde(default)]
    goal: GoalTable,
    #[serde(default)]
    sandbox: LimitsTable,
    #[serde(default)]
    network: ProjectNetworkTable,
    #[serde(default)]
    spend: SpendTable,
    #[serde(default)]
    kernel: ProjectKernelTable,
}

impl Config {
    /// Returns what holds where no file says anything.
    pub(crate) fn unconfigured() -> Self {
        Self {
            agents: BTreeMap::new(),
            judges: BTreeMap::new(),
            grant: grant::standard(),
            level: None,
            network: None,
            network_at_most: None,
            goal: GoalTable::default(),
            person_goal: GoalTable::default(),
            project_goal: GoalTable::default(),
            sources: Vec::new(),
            origins: Origins::default(),
            person: (grant::standard(), Origins::default()),
            project_limits: Resources::default(),
            trusted: Vec::new(),
            mapping: None,
            spending: Spending::unconfigured(),
            kernel: KernelSaid::default(),
        }
    }

    /// Returns what a run can reach: the flag or the person's word, within the project's.
    ///
    /// Without isolation there is nothing that could refuse a connection, so it is open then.
    pub(crate) fn network(
        &self,
        flag: Option<NetworkMode>,
        level: SandboxLevel,
    ) -> Result<NetworkMode, Error> {
        if level == SandboxLevel::None {
            return match flag {
                None | Some(NetworkMode::Open) => Ok(NetworkMode::Open),
                Some(mode) => Err(Error::usage(format!(
                    "`--sandbox none` cannot keep the network {mode}"
                ))
                .with_hint("leave out `--sandbox none`, or say `--network open`.")),
            };
        }
        let wanted = flag.or(self.network).unwrap_or(NetworkMode::Filtered);
        // A flag is the person's own word of this moment; the project narrows what is usual.
        Ok(match (flag, self.network_at_most) {
            (None, Some(most)) => grant::narrower(wanted, most),
            (Some(_), _) | (None, None) => wanted,
        })
    }
}

impl Config {
    /// Returns who judges where nobody says otherwise: the person's choice, or else the project's,
    /// which may name a judge and never do without one.
    pub(crate) fn judge(&self) -> Option<&String> {
        let of_project = self.project_goal.judge.as_ref();
        let is_judge = |judge: &&String| !matches!(judge.as_str(), "none" | "same");
        self.goal.judge.as_ref().or(of_project.filter(is_judge))
    }
}

/// Returns where the person's file is.
pub(crate) fn person_path(home: &Path, xdg_config_home: Option<&Path>) -> PathBuf {
    let config_home = match xdg_config_home {
        Some(path) if path.is_absolute() => path.to_path_buf(),
        Some(_) | None => home.join(".config"),
    };
    config_home.join("kapi").join("config.toml")
}

/// The environment, as the program was started with it.
pub(crate) type Variables = BTreeMap<OsString, OsString>;

/// Reads the person's file and, inside a project, the project's; then looks at the environment.
pub(crate) fn load(
    person: &Path,
    project: Option<&Path>,
    home: &Path,
    variables: &Variables,
) -> Result<Config, Error> {
    let mut config = Config::unconfigured();
    if let Some((file, text)) = read::<PersonFile>(person, Links::Followed)? {
        let lines = source::lines(&text);
        let said = Text {
            path: person,
            lines: &lines,
        };
        check_person(&said, &file)?;
        config.origins.set_all(person, &lines);
        config.sources.push(person.to_path_buf());
        config.agents = file.agents;
        config.judges = judges::providers(&said, file.judges)?;
        (config.level, config.network) = (file.sandbox.level, file.network.mode);
        config.grant = grant::granted(&said, file.sandbox, file.network, home)?;
        config.goal = file.goal;
        config.person_goal = config.goal.clone();
        config.trusted = trusted(&said, file.launch.trust)?;
        config.spending = Spending::said(&said, &file.spend, &file.prices)?;
        config.kernel.person = kernel::person(&said, file.kernel, home)?;
        let place = config.origins.first("status.mapping");
        let mapping = file.status.mapping;
        config.mapping = mapping
            .map(|path| grant::visible(&said.at("status.mapping"), &path, home))
            .map(|path| path.map(|path| At::new(path, place)))
            .transpose()?;
    }
    config.person = (config.grant.clone(), config.origins.clone());
    let project_path = project.map(|root| root.join(STATE_DIRECTORY).join("config.toml"));
    if let Some(path) = project_path
        && let Some((file, text)) = read::<ProjectFile>(&path, Links::Refused)?
    {
        config.narrow(&path, &file, &text)?;
    }
    config.hear(variables)?;
    Ok(config)
}

impl Config {
    /// Takes what a project says within what the person allows.
    fn narrow(&mut self, path: &Path, file: &ProjectFile, text: &str) -> Result<(), Error> {
        let lines = source::lines(text);
        let said = Text {
            path,
            lines: &lines,
        };
        store::refuse(&said)?;
        check_project(&said, file)?;
        let line = |key: &str| source::at(path, lines.get(key).copied().unwrap_or(1));
        self.project_limits = grant::limits(&said, &file.sandbox)?;
        for key in grant::narrow(&mut self.grant.resources, &self.project_limits) {
            self.origins.set(key, line(key));
        }
        for key in self.spending.narrow(&said, &file.spend)? {
            self.origins.set(key, line(key));
        }
        self.kernel.project = kernel::project(&said, file.kernel.clone())?;
        self.network_at_most = file.network.mode;
        if file.network.mode.is_some() {
            self.origins.set(AT_MOST, line("network.mode"));
        }
        for key in LIMIT_KEYS {
            if lines.contains_key(*key) {
                self.origins.set(&format!("project.{key}"), line(key));
            }
        }
        let person = std::mem::take(&mut self.goal);
        self.person_goal = person.clone();
        self.project_goal = file.goal.clone();
        self.goal = goal::within(file.goal.clone(), person.clone())?;
        for key in goal::taken(&file.goal, &person, &self.goal) {
            self.origins.set(key, line(key));
        }
        if file.goal.protect.is_some() {
            self.origins.add("goal.protect", line("goal.protect"));
        }
        for key in goal::ADDED {
            if lines.contains_key(*key) {
                self.origins.set(&format!("project.{key}"), line(key));
            }
        }
        self.sources.push(path.to_path_buf());
        Ok(())
    }

    /// Takes what the environment says.
    fn hear(&mut self, variables: &Variables) -> Result<(), Error> {
        let text = |name: &'static str| -> Result<Option<String>, Error> {
            let value = variables
                .get(OsStr::new(name))
                .filter(|value| !value.is_empty());
            let read = |value: &OsString| {
                let text = value.to_str().map(str::to_owned);
                text.ok_or_else(|| Error::usage(format!("the variable {name} is not UTF-8")))
            };
            value.map(read).transpose()
        };
        self.kernel.person.store.hear(variables)?;
        if let Some(agent) = text(AGENT)? {
            self.goal.agent = Some(agent);
            self.origins.set("goal.agent", Source::Variable(AGENT));
        }
        if let Some(judge) = text(JUDGE)? {
            self.goal.judge = Some(judge.clone());
            self.person_goal.judge = Some(judge);
            self.origins.set("goal.judge", Source::Variable(JUDGE));
        }
        if let Some(level) = text(LEVEL)? {
            self.level = Some(word(LEVEL, &level)?);
            self.origins.set("sandbox.level", Source::Variable(LEVEL));
        }
        if let Some(mode) = text(NETWORK)? {
            self.network = Some(word(NETWORK, &mode)?);
            self.origins.set("network.mode", Source::Variable(NETWORK));
        }
        Ok(())
    }
}

/// Reads one of the words that a level or a network has.
fn word<T: for<'de> Deserialize<'de>>(name: &str, text: &str) -> Result<T, Error> {
    let value = serde_json::Value::String(text.to_owned());
    serde_json::from_value(value)
        .map_err(|error| Error::usage(format!("the variable {name}: {error}")))
}

/// Refuses what is no hash: a word that never fits would look like trust that was given.
fn trusted(file: &Text<'_>, hashes: Vec<String>) -> Result<Vec<String>, Error> {
    let is_hash = |text: &String| {
        text.len() == 64 && text.bytes().all(|byte| b"0123456789abcdef".contains(&byte))
    };
    match hashes.iter().find(|hash| !is_hash(hash)) {
        None => Ok(hashes),
        Some(odd) => Err(Error::usage(format!(
            "{}: `launch.trust`: {odd:?} is no SHA-256 of 64 small hexadecimal digits",
            file.at("launch.trust")
        ))
        .with_hint("`kapi explain launch` prints the line to add.")),
    }
}

/// Reads a file, if there is one, and returns its text too.
fn read<T: for<'de> Deserialize<'de>>(
    path: &Path,
    links: Links,
) -> Result<Option<(T, String)>, Error> {
    let Some(text) = file::read(path, links)? else {
        return Ok(None);
    };
    let parsed = toml::from_str(&text).map_err(|error| {
        let place = error.span().map_or_else(String::new, |span| {
            format!(", line {}", source::line_at(&text, span.start))
        });
        Error::usage(format!("{}{place}: {}", path.display(), error.message()))
            .with_hint("`docs/configuration.md` lists every key.")
    })?;
    Ok(Some((parsed, text)))
}

/// Refuses what is no agent, and what no agent can be given.
fn check_person(said: &Text<'_>, file: &PersonFile) -> Result<(), Error> {
    for (name, settings) in &file.agents {
        let Some((_, kind)) = configurable().into_iter().find(|(known, _)| known == name) else {
            let known = configurable().map(|(known, _)| known).join(", ");
            let place = said.at(&format!("agents.{name}"));
            return Err(Error::usage(format!("{place}: there is no agent {name:?}"))
                .with_hint(format!("it is one of: {known}.")));
        };
        own_variable::check(&kind, settings).map_err(|error| {
            let key = match &error {
                AgentError::OwnVariable { key, .. } => format!("agents.{name}.{key}"),
                _ => format!("agents.{name}"),
            };
            let mut wrapped = Error::usage(format!("{}: failed to {error}", said.at(&key)));
            wrapped.hint = error.hint();
            wrapped
        })?;
    }
    Ok(())
}

/// Returns the agents that have a table, with what stands for each.
fn configurable() -> [(&'static str, AgentKind); 5] {
    [
        AgentKind::Claude,
        AgentKind::Codex,
        AgentKind::Gemini,
        AgentKind::Pi,
        AgentKind::Command(String::new()),
    ]
    .map(|kind| (kind.name(), kind))
}

/// Refuses an agent or a judge that is a program: a project must not choose what runs.
fn check_project(said: &Text<'_>, file: &ProjectFile) -> Result<(), Error> {
    let named = [("agent", &file.goal.agent), ("judge", &file.goal.judge)];
    for (key, value) in named {
        if value.as_deref().is_some_and(|value| value.contains(':')) {
            return Err(Error::usage(format!(
                "{}: a project's `{key}` must be a built-in agent",
                said.at(&format!("goal.{key}"))
            ))
            .with_hint("put a command or a script into your own configuration, or a flag."));
        }
    }
    Ok(())
}
