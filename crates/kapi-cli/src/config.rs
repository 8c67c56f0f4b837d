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
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::state_directory::STATE_DIRECTORY;
use kapi_run::grant::Grant;
use kapi_run::judge_settings::ProviderSettings;
use kapi_sandbox::spec::Resources;
use kapi_settings::fault::{Faults, did_you_mean};
use kapi_settings::node::ValueNode;
use kapi_settings::setting::Setting;
use kapi_settings::{read as settings, toml};
use kapi_workflow::rules::batch::mechanical::ConflictRule;
use serde::Deserialize;

use crate::config::deliver::DeliverTable;
use crate::config::file::Links;
use crate::config::goal::GoalTable;
use crate::config::grant::{NETWORK_DEFAULT, NetworkTable, SandboxTable};
use crate::config::integrate::IntegrateTable;
use crate::config::judges::JudgeTable;
use crate::config::kernel::{KernelConfigFiles, KernelTable};
use crate::config::launch::LaunchTable;
use crate::config::notify::NotifyTable;
use crate::config::source::{Origins, SettingsText, SourcedValue, ValueSource};
use crate::config::spend::{PriceTable, SpendConfig, SpendTable};
use crate::config::status::StatusTable;
use crate::error::Error;

pub(crate) mod deliver;
pub(crate) mod file;
pub(crate) mod goal;
pub(crate) mod grant;
mod integrate;
mod judges;
pub(crate) mod kernel;
mod launch;
pub(crate) mod notify;
pub(crate) mod source;
pub(crate) mod spend;
mod status;
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
    pub(crate) judges: BTreeMap<String, ProviderSettings>,
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
    pub(crate) mapping: Option<SourcedValue<PathBuf>>,
    /// `[spend]`, narrowed by the project, and `[prices]`.
    pub(crate) spending: SpendConfig,
    /// `[kernel]` of both files.
    pub(crate) kernel: KernelConfigFiles,
    /// `[notify]`, from the person's file.
    pub(crate) notify: NotifyTable,
    /// `[integrate.conflicts]`: the project's rules, then the person's.
    pub(crate) conflict_rules: Vec<ConflictRule>,
    /// `[deliver]`, from the person's file.
    pub(crate) deliver: DeliverTable,
}

/// A file of configuration; what a project's may say of it, [`PROJECT_KEYS`] tells.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ConfigFile {
    agents: BTreeMap<String, Setting<AgentSettings>>,
    judges: BTreeMap<String, Setting<JudgeTable>>,
    sandbox: SandboxTable,
    network: NetworkTable,
    goal: GoalTable,
    launch: LaunchTable,
    status: StatusTable,
    notify: NotifyTable,
    deliver: DeliverTable,
    spend: SpendTable,
    prices: BTreeMap<String, Setting<PriceTable>>,
    kernel: KernelTable,
    integrate: IntegrateTable,
}

/// What a project's file may say: nothing that would give it more. A table stands for all of it.
const PROJECT_KEYS: &[&str] = &[
    "goal",
    "sandbox.memory",
    "sandbox.cpus",
    "sandbox.processes",
    "sandbox.open_files",
    "sandbox.file_size",
    "sandbox.disk",
    "network.mode",
    "spend.machine_per_day_usd",
    "spend.project_per_day_usd",
    "spend.ask_at_percent",
    "kernel.default_agent",
    "kernel.default_backend",
    "kernel.default_model",
    "kernel.max_concurrency",
    "kernel.default_timeout_sec",
    "kernel.guardrails_dir",
    "kernel.idempotency_ttl_sec",
    "kernel.per_agent",
    "kernel.tasks_max",
    "kernel.overflow",
    "kernel.priorities",
    "kernel.guardrail_tokens_max",
    "kernel.usd_per_day",
    "integrate.conflicts",
];

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
            spending: SpendConfig::unconfigured(),
            kernel: KernelConfigFiles::default(),
            notify: NotifyTable::default(),
            conflict_rules: Vec::new(),
            deliver: DeliverTable::default(),
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
                    "`--sandbox none` cannot enforce `--network {mode}`"
                ))
                .with_hint("omit `--sandbox none`, or use `--network open`.")),
            };
        }
        let wanted = flag.or(self.network).unwrap_or(NETWORK_DEFAULT);
        // A flag is the person's own word of this moment; the project narrows what is usual.
        Ok(match (flag, self.network_at_most) {
            (None, Some(most)) => wanted.min(most),
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
    if let Some((file, mut said)) = read(person, Links::Followed)? {
        check_person(&mut said, &file);
        config.origins.set_all(person, &said.lines);
        config.sources.push(person.to_path_buf());
        let agents = file.agents.into_iter();
        config.agents = agents.map(|(name, said)| (name, said.value)).collect();
        config.judges = judges::providers(file.judges, &mut said.faults);
        (config.level, config.network) = (file.sandbox.level, file.network.mode);
        config.grant = grant::granted(&mut said.faults, file.sandbox, file.network, home);
        config.goal = file.goal;
        config.person_goal = config.goal.clone();
        config.notify = file.notify;
        config.conflict_rules = integrate::rules(&file.integrate, &mut said.faults);
        config.deliver = file.deliver;
        config.trusted = launch::trusted(&mut said.faults, file.launch);
        config.spending = SpendConfig::said(&file.spend, &file.prices, &mut said.faults);
        config.kernel.person = kernel::person(&mut said, file.kernel, home);
        let mapping = file.status.mapping;
        config.mapping = mapping.and_then(|mapping| {
            let path = grant::visible(&mapping, home, &mut said.faults)?;
            Some(said.at(mapping.with(path)))
        });
        whole(said)?;
    }
    config.person = (config.grant.clone(), config.origins.clone());
    let project_path = project.map(|root| root.join(STATE_DIRECTORY).join("config.toml"));
    if let Some(path) = project_path
        && let Some((file, said)) = read(&path, Links::Refused)?
    {
        config.narrow(file, said)?;
    }
    config.hear(variables)?;
    Ok(config)
}

impl Config {
    /// Takes what a project says within what the person allows.
    fn narrow(&mut self, file: ConfigFile, mut said: SettingsText<'_>) -> Result<(), Error> {
        check_project(&mut said, &file);
        self.project_limits = file.sandbox.limits();
        for key in grant::narrow(&mut self.grant.resources, &self.project_limits) {
            self.origins.set(key, said.source(key));
        }
        for key in self.spending.narrow(&file.spend) {
            self.origins.set(key, said.source(key));
        }
        let own = integrate::rules(&file.integrate, &mut said.faults);
        self.conflict_rules.splice(0..0, own);
        self.kernel.project = kernel::project(&mut said, file.kernel);
        self.network_at_most = file.network.mode;
        if file.network.mode.is_some() {
            self.origins.set(AT_MOST, said.source("network.mode"));
        }
        let person = std::mem::take(&mut self.goal);
        self.person_goal = person.clone();
        self.project_goal = file.goal.clone();
        self.goal = goal::within(file.goal.clone(), person.clone())?;
        for key in goal::taken(&file.goal, &person, &self.goal) {
            self.origins.set(key, said.source(key));
        }
        if file.goal.protect.is_some() {
            self.origins
                .add("goal.protect", said.source("goal.protect"));
        }
        for key in LIMIT_KEYS.iter().chain(goal::ADDED) {
            if said.lines.contains_key(*key) {
                self.origins
                    .set(&format!("project.{key}"), said.source(key));
            }
        }
        self.sources.push(said.path.to_path_buf());
        whole(said)
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
            self.origins.set("goal.agent", ValueSource::Variable(AGENT));
        }
        if let Some(judge) = text(JUDGE)? {
            self.goal.judge = Some(judge.clone());
            self.person_goal.judge = Some(judge);
            self.origins.set("goal.judge", ValueSource::Variable(JUDGE));
        }
        if let Some(level) = text(LEVEL)? {
            self.level = Some(word(LEVEL, &level)?);
            self.origins
                .set("sandbox.level", ValueSource::Variable(LEVEL));
        }
        if let Some(mode) = text(NETWORK)? {
            self.network = Some(word(NETWORK, &mode)?);
            self.origins
                .set("network.mode", ValueSource::Variable(NETWORK));
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

/// Reads a file, if there is one; what it says may still have faults.
fn read(path: &Path, links: Links) -> Result<Option<(ConfigFile, SettingsText<'_>)>, Error> {
    let Some(text) = file::read(path, links)? else {
        return Ok(None);
    };
    let mut faults = Faults::of(path.display().to_string());
    let root = toml::parse(&text, &mut faults);
    let lines = root.as_ref().map(ValueNode::lines).unwrap_or_default();
    let file: Option<ConfigFile> = root.and_then(|root| settings::read(&root, &mut faults));
    let mut said = SettingsText {
        path,
        lines,
        faults,
    };
    match file {
        Some(file) => {
            goal::check(&mut said, &file.goal);
            Ok(Some((file, said)))
        }
        None => Err(Error::settings(&said.faults.into_list())),
    }
}

/// Refuses a file with faults: all of them at once.
fn whole(said: SettingsText<'_>) -> Result<(), Error> {
    let read = said.faults.instead_of(Some(()));
    read.map_err(|faults| Error::settings(&faults))
}

/// Refuses what is no agent, and what no agent can be given.
fn check_person(said: &mut SettingsText<'_>, file: &ConfigFile) {
    for (name, settings) in &file.agents {
        let Some((_, kind)) = configurable().into_iter().find(|(known, _)| known == name) else {
            let known = configurable().map(|(known, _)| known);
            let remedy = did_you_mean(name, &known, "it is one of");
            said.faults
                .at(settings, format!("there is no agent {name:?}"), remedy);
            continue;
        };
        if let Err(error) = own_variable::check(&kind, &settings.value) {
            let key = match &error {
                AgentError::OwnVariable { key, .. } => format!("agents.{name}.{key}"),
                _ => format!("agents.{name}"),
            };
            let remedy = error.hint().unwrap_or_default();
            let remedy = remedy.trim_end_matches('.').to_owned();
            said.wrong(&key, format!("failed to {error}"), remedy);
        }
    }
}

/// Returns the agents that have a table, with what stands for each.
fn configurable() -> [(&'static str, AgentKind); 6] {
    [
        AgentKind::Claude,
        AgentKind::Codex,
        AgentKind::Gemini,
        AgentKind::Pi,
        AgentKind::Acp(String::new()),
        AgentKind::Command(String::new()),
    ]
    .map(|kind| (kind.name(), kind))
}

/// Refuses what only the person can say, and an agent or a judge that is a program: a project must
/// not choose what runs.
fn check_project(said: &mut SettingsText<'_>, file: &ConfigFile) {
    let is_in = |key: &str, table: &str| {
        let rest = key.strip_prefix(table);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let is_persons = |key: &&String| {
        let mut keys = PROJECT_KEYS.iter();
        !keys.any(|known| is_in(key, known) || is_in(known, key))
    };
    let mut persons: Vec<String> = said.lines.keys().filter(is_persons).cloned().collect();
    persons.dedup_by(|key, above| is_in(key, above));
    for key in persons
        .iter()
        .filter(|key| !said.faults.blames(key))
        .collect::<Vec<_>>()
    {
        let remedy = "set it in your own config.toml, with a flag or with an environment variable";
        said.wrong(key, "a project may not set this", remedy);
    }
    let named = [
        ("goal.agent", &file.goal.agent),
        ("goal.judge", &file.goal.judge),
    ];
    for (key, value) in named {
        if value.as_deref().is_some_and(kernel::is_program) {
            let what = "a project's agent or judge must be a built-in agent";
            said.wrong(key, what, kernel::PROGRAM_REMEDY);
        }
    }
}
