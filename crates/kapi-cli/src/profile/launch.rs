//! Everything that decides a launch, resolved once: configuration, profile, project, flags.
//!
//! Each value remembers where it was said. Nothing is started, created or written here.

mod agent;
mod grants;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kapi_agent::agent::AgentKind;
use kapi_agent::manifest::manifest_of;
use kapi_agent::settings::AgentSettings;
use kapi_core::failure::chain;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_run::grant::Grant;
use kapi_sandbox::spec::Resources;
use kapi_status::perform::mapping_file;
use kapi_status::rules::mapping::Mapping;

use crate::config::grant::{LEVEL_DEFAULT, NETWORK_DEFAULT};
use crate::config::source::{Origins, SourcedValue, ValueSource};
use crate::config::{AT_MOST, Config, grant};
use crate::context::Context;
use crate::contract::models;
use crate::error::Error;
use crate::profile::command::TASK_VARIABLE;
use crate::profile::find::{self, LaunchProfiles, ProfileNames, ProfileSearch};
use crate::profile::flags::{self, ProfileFlags};
use crate::profile::include::Include;
use crate::profile::launch::agent::AgentChoice;
use crate::profile::message::{self, CoAuthor, Values};
use crate::profile::{ProfileFile, ProfileOwner, trusted};

/// The remote when nothing else was said.
const REMOTE: &str = "origin";
/// The commit's message when nothing else was said.
const MESSAGE: &str = "feat: {task}";
/// Parts of names of variables that hold secrets.
const SECRET_WORDS: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "CREDENTIAL",
    "AUTH",
    "BEARER",
];

/// How one launch is set up.
#[derive(Debug, Clone)]
pub(crate) struct LaunchProfile {
    /// The profile that was chosen: its name, and where it is.
    pub(crate) profile: SourcedValue<String>,
    /// The project's files that narrow it.
    pub(crate) narrowed_by: Vec<PathBuf>,
    /// The agent.
    pub(crate) agent: SourcedValue<AgentKind>,
    /// How it is wanted, with the profile's variables.
    pub(crate) settings: AgentSettings,
    /// Whether a person talks to it.
    pub(crate) is_interactive: bool,
    /// The isolation.
    pub(crate) level: SourcedValue<SandboxLevel>,
    /// What can be reached.
    pub(crate) network: SourcedValue<NetworkMode>,
    /// What the run may see, reach and use.
    pub(crate) grant: Grant,
    /// Where the values of the grant were said, by the keys of the configuration.
    pub(crate) origins: Origins,
    /// What the profile adds to the grant's lists.
    pub(crate) added: ListAdditions,
    /// Whether a branch is pushed.
    pub(crate) push: SourcedValue<bool>,
    /// Where to.
    pub(crate) remote: SourcedValue<String>,
    /// The template of the commit's message.
    pub(crate) message: SourcedValue<String>,
    /// Who is named beside the author.
    pub(crate) co_authors: Vec<SourcedValue<CoAuthor>>,
    /// Whether the agent's own commits are kept.
    pub(crate) keep_commits: SourcedValue<bool>,
    /// The person's own table from tool calls to phases.
    pub(crate) mapping: Option<SourcedValue<PathBuf>>,
    /// What the person should know, as sentences.
    pub(crate) notes: Vec<String>,
}

/// What a profile adds to lists, item by item.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListAdditions {
    /// Hosts that may be reached.
    pub(crate) allow: Vec<SourcedValue<String>>,
    /// Paths that are lent.
    pub(crate) shared_in: Vec<SourcedValue<Include>>,
    /// Names of variables that are passed on.
    pub(crate) pass: Vec<SourcedValue<String>>,
    /// Names of variables that are set.
    pub(crate) set: Vec<SourcedValue<String>>,
}

impl LaunchProfile {
    /// Returns the commit's message.
    pub(crate) fn commit_message(&self, values: &Values<'_>) -> String {
        let authors: Vec<CoAuthor> = self
            .co_authors
            .iter()
            .map(|author| author.value.clone())
            .collect();
        message::render(&self.message.value, values, &authors)
    }

    /// Returns the agent's settings for a task: a shell line finds it in a variable.
    pub(crate) fn settings_for(&self, task: &str) -> AgentSettings {
        let mut settings = self.settings.clone();
        if matches!(self.agent.value, AgentKind::Command(_)) {
            settings
                .env
                .insert(TASK_VARIABLE.to_owned(), task.to_owned());
        }
        settings
    }

    /// Returns the table from tool calls to phases: the person's, or the built-in one.
    pub(crate) fn mapping(&self) -> Result<Mapping, Error> {
        let Some(at) = &self.mapping else {
            return Ok(Mapping::built_in());
        };
        mapping_file::load(&at.value).map_err(|error| {
            Error::usage(format!("failed to {}", chain(&error)))
                .with_hint(format!("it is set in {}.", at.source))
        })
    }
}

/// Resolves how a launch in a project is set up.
pub(crate) fn resolve(
    context: &Context,
    project: &Path,
    flags: &ProfileFlags,
) -> Result<LaunchProfile, Error> {
    let config = context.config(Some(project))?;
    let trusted = [config.trusted.clone(), trusted::hashes(&context.home)?].concat();
    let search = ProfileSearch {
        home: &context.home,
        config_path: &context.config_path,
        project,
        trusted: &trusted,
    };
    let file = flags.config.as_ref().map(|path| context.cwd.join(path));
    let agent = flags
        .agent
        .as_deref()
        .map(|name| (name, ValueSource::Flag("--agent")));
    let said = config.origins.first("goal.agent");
    let by_variable = config.goal.agent.as_deref().zip(Some(said));
    let by_variable = by_variable.filter(|(_, source)| matches!(source, ValueSource::Variable(_)));
    let found = match (&file, agent.or(by_variable)) {
        (Some(path), _) => find::find(&search, ProfileNames::File(path))?,
        (None, Some((reference, source))) if reference.contains(':') => {
            let mut found = find::find(&search, ProfileNames::Profile("interactive"))?;
            found.person = of_reference(reference, &source);
            found
        }
        (None, Some((name, _))) => find::find(&search, ProfileNames::Profile(name))?,
        (None, None) => find::find(&search, ProfileNames::Nothing)?,
    };
    LaunchResolver {
        config: &config,
        found,
        flags,
    }
    .resolve()
}

/// Returns a profile for an agent that was written out.
fn of_reference(reference: &str, source: &ValueSource) -> ProfileFile {
    let mut profile = ProfileFile::named(reference, None, ProfileOwner::Person);
    profile.command = Some(SourcedValue::new(reference.to_owned(), source.clone()));
    profile
}

struct LaunchResolver<'a> {
    config: &'a Config,
    found: LaunchProfiles,
    flags: &'a ProfileFlags,
}

impl LaunchResolver<'_> {
    fn resolve(self) -> Result<LaunchProfile, Error> {
        let profile = &self.found.person;
        let mut notes = self.found.notes.clone();
        let chosen = agent::choose(profile, &self.profile_source())?;
        notes.extend(chosen.note.clone());
        let level = self.level();
        let network = self.network(level.value)?;
        let (mut grant, mut origins) = self.config.person.clone();
        let mut added = ListAdditions::default();
        grants::lend(profile, &mut grant, &mut added, &mut notes);
        for rule in &profile.allow {
            grant.allow.push(rule.value.clone());
            added.allow.push(SourcedValue::new(
                rule.value.text().to_owned(),
                rule.source.clone(),
            ));
        }
        grants::contain(profile, level.value, &mut grant, &mut origins, &mut notes)?;
        self.limit(&mut grant, &mut origins);
        let mut settings = self.settings(&chosen, &mut added, &mut notes);
        if let Some(model) = self.flags.model.as_ref().or(chosen.model.as_ref()) {
            models::of_settings(&mut settings, &chosen.agent.value, model)?;
        }
        let remote = profile.remote.clone();
        let message = profile.commit_message.clone();
        Ok(LaunchProfile {
            profile: SourcedValue::new(profile.name.clone(), self.profile_source()),
            narrowed_by: self
                .found
                .project
                .iter()
                .filter_map(|one| one.path.clone())
                .collect(),
            is_interactive: self.flags.interactive || chosen.is_interactive,
            agent: chosen.agent,
            settings,
            level,
            network,
            grant,
            origins,
            added,
            push: self.push(),
            remote: remote.unwrap_or_else(|| SourcedValue::default(REMOTE.to_owned())),
            message: message.unwrap_or_else(|| SourcedValue::default(MESSAGE.to_owned())),
            co_authors: profile.co_authors.clone(),
            keep_commits: match (self.flags.keep_commits, &profile.keep_commits) {
                (true, _) => SourcedValue::new(true, ValueSource::Flag("--keep-commits")),
                (false, Some(said)) => said.clone(),
                (false, None) => SourcedValue::default(false),
            },
            mapping: self.config.mapping.clone(),
            notes,
        })
    }

    fn profile_source(&self) -> ValueSource {
        match (&self.flags.config, &self.flags.agent) {
            (Some(_), _) => ValueSource::Flag("--config"),
            (None, Some(_)) => ValueSource::Flag("--agent"),
            (None, None) => match &self.found.person.path {
                Some(path) => crate::config::source::at(path, 1),
                None => ValueSource::Default,
            },
        }
    }

    fn level(&self) -> SourcedValue<SandboxLevel> {
        match (self.flags.sandbox, self.config.level) {
            (Some(sandbox), _) => {
                SourcedValue::new(flags::level(sandbox), ValueSource::Flag("--sandbox"))
            }
            (None, Some(level)) => {
                SourcedValue::new(level, self.config.origins.first("sandbox.level"))
            }
            (None, None) => SourcedValue::default(LEVEL_DEFAULT),
        }
    }

    /// The flag; or the environment, the profile or the person's file within the project's.
    fn network(&self, level: SandboxLevel) -> Result<SourcedValue<NetworkMode>, Error> {
        let flag = self.flags.network.map(NetworkMode::from);
        if level == SandboxLevel::None {
            let mode = self.config.network(flag, level)?;
            let source = flag.map_or(ValueSource::Flag("--sandbox"), |_| {
                ValueSource::Flag("--network")
            });
            return Ok(SourcedValue::new(mode, source));
        }
        if let Some(mode) = flag {
            return Ok(SourcedValue::new(mode, ValueSource::Flag("--network")));
        }
        let source = self.config.origins.first("network.mode");
        let configured = self
            .config
            .network
            .map(|mode| SourcedValue::new(mode, source));
        let is_heard =
            |at: &SourcedValue<NetworkMode>| matches!(at.source, ValueSource::Variable(_));
        let heard = configured.clone().filter(is_heard);
        let said = heard
            .or_else(|| self.found.person.network.clone())
            .or(configured);
        let mut network = said.unwrap_or_else(|| SourcedValue::default(NETWORK_DEFAULT));
        let at_most = self
            .config
            .network_at_most
            .map(|mode| SourcedValue::new(mode, self.config.origins.first(AT_MOST)));
        let narrowing = self
            .found
            .project
            .iter()
            .filter_map(|one| one.network.clone());
        for most in at_most.into_iter().chain(narrowing) {
            if most.value < network.value {
                network = most;
            }
        }
        Ok(network)
    }

    fn push(&self) -> SourcedValue<bool> {
        match self.flags.pushes() {
            Some(true) => return SourcedValue::new(true, ValueSource::Flag("--push")),
            Some(false) => return SourcedValue::new(false, ValueSource::Flag("--no-push")),
            None => {}
        }
        // A project's file only ever says that nothing is pushed.
        let mut project = self.found.project.iter().filter_map(|one| one.push.clone());
        let said = project.next().or_else(|| self.found.person.push.clone());
        said.unwrap_or_else(|| SourcedValue::default(false))
    }

    /// Sets the person's limits, then lowers them to the project's.
    fn limit(&self, grant: &mut Grant, origins: &mut Origins) {
        let own = &mut grant.resources;
        let profile = &self.found.person;
        let said = limits(profile);
        own.memory_bytes = said.memory_bytes.or(own.memory_bytes);
        own.cpu_millis = said.cpu_millis.or(own.cpu_millis);
        own.processes = said.processes.or(own.processes);
        for (key, source) in limit_sources(profile) {
            origins.set(key, source);
        }
        for key in grant::narrow(own, &self.config.project_limits) {
            origins.set(key, self.config.origins.first(&format!("project.{key}")));
        }
        for project in &self.found.project {
            let sources = limit_sources(project);
            for key in grant::narrow(&mut grant.resources, &limits(project)) {
                let source = sources.get(key).cloned().unwrap_or(ValueSource::Default);
                origins.set(key, source);
            }
            if let Some(nested) = &project.nested_namespaces {
                grant.nested_namespaces &= nested.value;
                origins.set("sandbox.nested_namespaces", nested.source.clone());
            }
        }
    }

    fn settings(
        &self,
        chosen: &AgentChoice,
        added: &mut ListAdditions,
        notes: &mut Vec<String>,
    ) -> AgentSettings {
        let kind = &chosen.agent.value;
        let configured = self.config.agents.get(kind.name());
        let mut settings = configured.cloned().unwrap_or_default();
        let manifest = manifest_of(kind);
        let key = settings.api_key_env.clone();
        let held = key.or_else(|| manifest.map(|manifest| manifest.api_key_env.to_owned()));
        let held = held.filter(|_| manifest.is_some() && !settings.login);
        for name in &self.found.person.pass {
            if held.as_deref() == Some(&name.value) {
                notes.push(format!(
                    "{} is not passed in: Kapi's gateway holds it, and the agent gets a placeholder.",
                    name.value
                ));
                continue;
            }
            if is_secret(&name.value) {
                notes.push(format!(
                    "{} is passed into the sandbox unchanged: anything that runs there can read it.",
                    name.value
                ));
            }
            settings.pass_env.retain(|passed| *passed != name.value);
            settings.pass_env.push(name.value.clone());
            added.pass.push(name.clone());
        }
        for variable in &self.found.person.set {
            let (name, value) = variable.value.clone();
            added
                .set
                .push(SourcedValue::new(name.clone(), variable.source.clone()));
            settings.env.insert(name, value);
        }
        settings
    }
}

/// Returns the limits that a profile names.
fn limits(profile: &ProfileFile) -> Resources {
    Resources {
        memory_bytes: profile.memory_bytes.as_ref().map(|at| at.value),
        cpu_millis: profile.cpu_millis.as_ref().map(|at| at.value),
        processes: profile.processes.as_ref().map(|at| at.value),
        ..Resources::default()
    }
}

/// Returns where a profile names its limits, by the keys of the configuration.
fn limit_sources(profile: &ProfileFile) -> BTreeMap<&'static str, ValueSource> {
    let said = [
        ("sandbox.memory", &profile.memory_bytes),
        ("sandbox.cpus", &profile.cpu_millis),
        ("sandbox.processes", &profile.processes),
    ];
    let sources = said
        .into_iter()
        .filter_map(|(key, at)| Some((key, at.as_ref()?.source.clone())));
    sources.collect()
}

/// Tells whether a variable's name says that it holds a secret.
fn is_secret(name: &str) -> bool {
    let upper = name.to_uppercase();
    SECRET_WORDS.iter().any(|word| upper.contains(word))
}

#[cfg(test)]
mod tests;
