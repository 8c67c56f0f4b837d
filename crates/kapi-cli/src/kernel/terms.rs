//! What holds for the kernel of a project: built-in values, then the person's `config.toml`, then
//! `.pi/oh-my-creampi.jsonc`, then the project's `config.toml`.
//!
//! A project's files choose where the person did not, and make limits smaller; never larger than
//! the person set them. Only resolves, and remembers where each value was said.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use kapi_core::failure::chain;
use kapi_goal::record::project::Project;
use kapi_settings::fault::Faults;
use kapi_settings::setting::Setting;
use kapi_task::record::creampi_file;
use kapi_task::record::creampi_file::{CreampiConfig, CreampiError};
use kapi_task::record::terms::{BackendTerms, GUARDRAILS, KernelTerms};
use kapi_task::rules::command::Overflow;
use kapi_task::rules::task_terms::Priority;

use crate::amount;
use crate::config::Config;
use crate::config::kernel::{self, BackendTable, KernelSettings};
use crate::config::source::{SourcedValue, ValueSource, at};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::start;

/// Where oh-my-creampi keeps lessons, in the project.
const ORIGINAL_GUARDRAILS: &str = ".creampi/guardrails";

/// One value that holds, and where it was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettingRow {
    /// The key, as `[kernel]` has it.
    pub(crate) key: String,
    /// The value, for people.
    pub(crate) value: String,
    /// The place.
    pub(crate) source: ValueSource,
}

/// What holds for the kernel of a project.
#[derive(Debug)]
pub(crate) struct ResolvedTerms {
    /// What the engine obeys.
    pub(crate) terms: KernelTerms,
    /// How urgent the tasks of a profile are when a request does not say.
    pub(crate) priorities: BTreeMap<String, Priority>,
    /// Every value with its place.
    pub(crate) settings: Vec<SettingRow>,
}

pub(super) fn resolve(
    context: &Context,
    project: &Project<'_>,
    config: &Config,
) -> Result<ResolvedTerms, Error> {
    let standard = built_in(project);
    let root = project.layout.root();
    let mut held = EffectiveTerms::of(&standard, root);
    let person = &config.kernel.person;
    held.choose(person, root);
    if let Some(creampi) = creampi(context, project)? {
        let said = of_creampi(&creampi)?;
        let root = creampi.root.clone();
        held.choose(&said.within(person), &root);
        // Nothing of ours is kept there, and who set it should see that.
        held.unused = [
            ("idempotency_dir", creampi.idempotency_dir),
            ("checkpoints_dir", creampi.checkpoints_dir),
        ]
        .into_iter()
        .filter_map(|(key, set)| Some((key, of(&creampi.file, &set?, PathBuf::clone))))
        .collect();
    }
    held.choose(&config.kernel.project.within(person).narrowing(&held), root);
    // Who works on goals works on tasks, unless somebody says otherwise; a project names no program.
    let agent = config.goal.agent.as_ref().filter(|agent| {
        !kernel::is_program(agent) || config.project_goal.agent.as_ref() != Some(agent)
    });
    if held.backend.value.is_none()
        && let Some(agent) = agent
    {
        let source = config.origins.first("goal.agent");
        held.backend = SourcedValue::new(Some(agent.clone()), source);
    }
    Ok(held.resolved(standard))
}

/// Returns what holds when nobody set anything.
pub(super) fn standard(project: &Project<'_>) -> ResolvedTerms {
    let standard = built_in(project);
    EffectiveTerms::of(&standard, project.layout.root()).resolved(standard)
}

fn built_in(project: &Project<'_>) -> KernelTerms {
    let own = project.layout.state_dir().join(GUARDRAILS);
    let original = project.layout.root().join(ORIGINAL_GUARDRAILS);
    // Who comes from oh-my-creampi goes on with the lessons there.
    let dir = if original.is_dir() && !own.is_dir() {
        original
    } else {
        own
    };
    KernelTerms::standard(dir)
}

/// What holds so far.
struct EffectiveTerms {
    agent: SourcedValue<String>,
    backend: SourcedValue<Option<String>>,
    model: SourcedValue<Option<String>>,
    concurrency: SourcedValue<u32>,
    timeout_ms: SourcedValue<u64>,
    guardrails_dir: SourcedValue<PathBuf>,
    key_ttl_ms: SourcedValue<u64>,
    backends: BTreeMap<String, SourcedValue<BackendTable>>,
    per_agent: BTreeMap<String, SourcedValue<u32>>,
    tasks_max: SourcedValue<u32>,
    overflow: SourcedValue<Overflow>,
    machine_max: SourcedValue<Option<u32>>,
    usd_micros_per_day: SourcedValue<Option<u64>>,
    priorities: BTreeMap<String, SourcedValue<Priority>>,
    guardrail_tokens_max: SourcedValue<u32>,
    accept_learnt_after: SourcedValue<Option<u32>>,
    unused: Vec<(&'static str, SourcedValue<PathBuf>)>,
    /// The project, below which paths are shown shorter.
    root: PathBuf,
}

impl EffectiveTerms {
    fn of(terms: &KernelTerms, root: &Path) -> Self {
        Self {
            agent: SourcedValue::default(terms.default_agent.clone()),
            backend: SourcedValue::default(terms.default_backend.clone()),
            model: SourcedValue::default(terms.default_model.clone()),
            concurrency: SourcedValue::default(terms.project_max),
            timeout_ms: SourcedValue::default(terms.default_timeout_ms),
            guardrails_dir: SourcedValue::default(terms.guardrails_dir.clone()),
            key_ttl_ms: SourcedValue::default(terms.key_ttl_ms),
            backends: BTreeMap::new(),
            per_agent: BTreeMap::new(),
            tasks_max: SourcedValue::default(terms.tasks_max),
            overflow: SourcedValue::default(terms.overflow),
            machine_max: SourcedValue::default(terms.machine_max),
            usd_micros_per_day: SourcedValue::default(terms.usd_micros_per_day),
            priorities: BTreeMap::new(),
            guardrail_tokens_max: SourcedValue::default(terms.guardrail_tokens_max),
            accept_learnt_after: SourcedValue::default(terms.accept_learnt_after),
            unused: Vec::new(),
            root: root.to_path_buf(),
        }
    }

    /// Takes everything that a file says; directories are meant from `root`.
    fn choose(&mut self, said: &KernelSettings, root: &Path) {
        let optional = |text: &SourcedValue<String>| {
            SourcedValue::new(Some(text.value.clone()), text.source.clone())
        };
        let number = |n: &SourcedValue<u32>| SourcedValue::new(Some(n.value), n.source.clone());
        set(&mut self.agent, said.default_agent.clone());
        set(
            &mut self.backend,
            said.default_backend.as_ref().map(optional),
        );
        set(&mut self.model, said.default_model.as_ref().map(optional));
        set(&mut self.concurrency, said.max_concurrency.clone());
        set(&mut self.timeout_ms, said.default_timeout_ms.clone());
        let dir = said.guardrails_dir.as_ref();
        let dir = dir.map(|dir| SourcedValue::new(root.join(&dir.value), dir.source.clone()));
        set(&mut self.guardrails_dir, dir);
        set(&mut self.key_ttl_ms, said.key_ttl_ms.clone());
        self.backends.extend(said.backends.clone());
        self.per_agent.extend(said.per_agent.clone());
        set(&mut self.tasks_max, said.tasks_max.clone());
        set(&mut self.overflow, said.overflow.clone());
        set(&mut self.machine_max, said.machine_max.as_ref().map(number));
        let usd = said.usd_micros_per_day.as_ref();
        let usd = usd.map(|usd| SourcedValue::new(Some(usd.value), usd.source.clone()));
        set(&mut self.usd_micros_per_day, usd);
        self.priorities.extend(said.priorities.clone());
        set(
            &mut self.guardrail_tokens_max,
            said.guardrail_tokens_max.clone(),
        );
        let accept = said.accept_learnt_after.as_ref().map(number);
        set(&mut self.accept_learnt_after, accept);
    }

    fn settings(&self) -> Vec<SettingRow> {
        let mut rows = self.choices();
        rows.extend(self.limits());
        for (name, backend) in &self.backends {
            let BackendTable { provider, model } = &backend.value;
            let parts = [provider.as_deref(), model.as_deref()];
            let value = parts.map(|part| part.unwrap_or("its own")).join(" / ");
            rows.push(row(&format!("backends.{name}"), backend, &value));
        }
        for (name, priority) in &self.priorities {
            let value = priority_word(priority.value);
            rows.push(row(&format!("priorities.{name}"), priority, &value));
        }
        rows.extend(self.unused.iter().map(|(key, set)| SettingRow {
            key: (*key).to_owned(),
            value: format!(
                "{} (not used; it is in `.ilchul/kernel`)",
                set.value.display()
            ),
            source: set.source.clone(),
        }));
        rows
    }

    fn choices(&self) -> Vec<SettingRow> {
        let its_own = "the profile's";
        let backend = word(
            self.backend.value.as_deref(),
            "the agent that can start here",
        );
        let model = word(self.model.value.as_deref(), its_own);
        let dir = &self.guardrails_dir.value;
        let dir = dir.strip_prefix(&self.root).unwrap_or(dir).display();
        vec![
            row("default_agent", &self.agent, &self.agent.value),
            row("default_backend", &self.backend, &backend),
            row("default_model", &self.model, &model),
            row("guardrails_dir", &self.guardrails_dir, &dir),
        ]
    }

    fn limits(&self) -> Vec<SettingRow> {
        let tokens = &self.guardrail_tokens_max;
        let mut rows = vec![row(
            "max_concurrency",
            &self.concurrency,
            &self.concurrency.value,
        )];
        let numbers = self.per_agent.iter();
        rows.extend(numbers.map(|(name, n)| row(&format!("per_agent.{name}"), n, &n.value)));
        let machine = self.machine_max.value.map(|n| n.to_string());
        let machine = word(machine.as_deref(), "as many as the machine can handle");
        let usd = self.usd_micros_per_day.value.map(amount::usd);
        let usd = word(usd.as_deref(), "no limit");
        let accept = self.accept_learnt_after.value.map(|n| n.to_string());
        let accept = word(accept.as_deref(), "never");
        let (timeout, ttl) = (
            seconds(self.timeout_ms.value),
            seconds(self.key_ttl_ms.value),
        );
        rows.extend([
            row("machine_max", &self.machine_max, &machine),
            row("usd_per_day", &self.usd_micros_per_day, &usd),
            row("tasks_max", &self.tasks_max, &self.tasks_max.value),
            row(
                "overflow",
                &self.overflow,
                &overflow_word(self.overflow.value),
            ),
            row("default_timeout_sec", &self.timeout_ms, &timeout),
            row("idempotency_ttl_sec", &self.key_ttl_ms, &ttl),
            row("guardrail_tokens_max", tokens, &tokens.value),
            row("accept_learnt_after", &self.accept_learnt_after, &accept),
        ]);
        rows
    }

    fn resolved(self, mut terms: KernelTerms) -> ResolvedTerms {
        let settings = self.settings();
        let values = |map: BTreeMap<String, SourcedValue<u32>>| {
            map.into_iter().map(|(name, n)| (name, n.value)).collect()
        };
        terms.default_agent = self.agent.value;
        terms.default_backend = self.backend.value;
        terms.default_model = self.model.value;
        terms.project_max = self.concurrency.value;
        terms.default_timeout_ms = self.timeout_ms.value;
        terms.guardrails_dir = self.guardrails_dir.value;
        terms.key_ttl_ms = self.key_ttl_ms.value;
        terms.per_agent = values(self.per_agent);
        terms.tasks_max = self.tasks_max.value;
        terms.overflow = self.overflow.value;
        terms.machine_max = self.machine_max.value;
        terms.usd_micros_per_day = self.usd_micros_per_day.value;
        terms.guardrail_tokens_max = self.guardrail_tokens_max.value;
        terms.accept_learnt_after = self.accept_learnt_after.value;
        let backends = self.backends.into_iter().map(|(name, said)| {
            let BackendTable { provider, model } = said.value;
            (name, BackendTerms { provider, model })
        });
        terms.backends = backends.collect();
        let priorities = self.priorities.into_iter();
        ResolvedTerms {
            terms,
            priorities: priorities.map(|(name, said)| (name, said.value)).collect(),
            settings,
        }
    }
}

impl KernelSettings {
    /// Returns what is left of a project's word beside the person's: who works is the person's
    /// choice where they made one, and limits only get smaller.
    fn within(&self, person: &Self) -> Self {
        let mut said = self.clone();
        keep_persons(&mut said.default_agent, person.default_agent.as_ref());
        keep_persons(&mut said.default_backend, person.default_backend.as_ref());
        keep_persons(&mut said.default_model, person.default_model.as_ref());
        keep_persons(&mut said.guardrails_dir, person.guardrails_dir.as_ref());
        keep_persons(&mut said.key_ttl_ms, person.key_ttl_ms.as_ref());
        keep_smaller(
            &mut said.max_concurrency,
            person.max_concurrency.as_ref().map(|n| n.value),
        );
        keep_smaller(
            &mut said.tasks_max,
            person.tasks_max.as_ref().map(|n| n.value),
        );
        let tokens = person.guardrail_tokens_max.as_ref().map(|n| n.value);
        keep_smaller(&mut said.guardrail_tokens_max, tokens);
        let usd = person.usd_micros_per_day.as_ref().map(|n| n.value);
        keep_smaller(&mut said.usd_micros_per_day, usd);
        let timeout_ms = person.default_timeout_ms.as_ref().map(|n| n.value);
        keep_shorter(&mut said.default_timeout_ms, timeout_ms);
        said.per_agent.retain(|name, n| {
            person
                .per_agent
                .get(name)
                .is_none_or(|person| n.value < person.value)
        });
        said.priorities
            .retain(|name, _| !person.priorities.contains_key(name));
        said.backends
            .retain(|name, _| !person.backends.contains_key(name));
        let rejects = |said: &SourcedValue<Overflow>| said.value == Overflow::Reject;
        if person.overflow.is_some() {
            said.overflow = said.overflow.filter(rejects);
        }
        said
    }

    /// Returns what is left when nothing may become more than it is.
    fn narrowing(mut self, held: &EffectiveTerms) -> Self {
        keep_smaller(&mut self.max_concurrency, Some(held.concurrency.value));
        keep_smaller(&mut self.tasks_max, Some(held.tasks_max.value));
        keep_smaller(
            &mut self.guardrail_tokens_max,
            Some(held.guardrail_tokens_max.value),
        );
        keep_smaller(&mut self.usd_micros_per_day, held.usd_micros_per_day.value);
        keep_shorter(&mut self.default_timeout_ms, Some(held.timeout_ms.value));
        self.overflow = self.overflow.filter(|said| said.value == Overflow::Reject);
        self.per_agent.retain(|name, n| {
            held.per_agent
                .get(name)
                .is_none_or(|held| n.value < held.value)
        });
        self
    }
}

fn set<T>(held: &mut SourcedValue<T>, said: Option<SourcedValue<T>>) {
    if let Some(said) = said {
        *held = said;
    }
}

fn keep_persons<T>(said: &mut Option<SourcedValue<T>>, person: Option<&SourcedValue<T>>) {
    if person.is_some() {
        *said = None;
    }
}

fn keep_smaller<T: PartialOrd + Copy>(said: &mut Option<SourcedValue<T>>, limit: Option<T>) {
    let is_less = |said: &SourcedValue<T>| limit.is_none_or(|limit| said.value < limit);
    *said = said.take().filter(is_less);
}

/// 0 is no limit at all.
fn keep_shorter(said: &mut Option<SourcedValue<u64>>, limit_ms: Option<u64>) {
    let is_less = |said: &SourcedValue<u64>| match limit_ms {
        None => true,
        Some(0) => said.value != 0,
        Some(limit_ms) => said.value != 0 && said.value < limit_ms,
    };
    *said = said.take().filter(is_less);
}

/// Reads the file of oh-my-creampi that holds for the project.
fn creampi(context: &Context, project: &Project<'_>) -> Result<Option<CreampiConfig>, Error> {
    let root = project.layout.root();
    let found = creampi_file::find(project.disk, start(context, root));
    let found = found.map_err(|error| unreadable(&error.into()))?;
    // A file above the project is somebody else's.
    let Some(file) = found.filter(|file| file.starts_with(root)) else {
        return Ok(None);
    };
    creampi_file::load(project.disk, &file).map_err(|error| unreadable(&error))
}

fn unreadable(error: &CreampiError) -> Error {
    let failed = || Error::new(Exit::Usage, format!("failed to {}", chain(error)));
    match error {
        CreampiError::Invalid { faults } => Error::settings(faults),
        CreampiError::TooLarge { .. } | CreampiError::NotText { .. } | CreampiError::Disk(_) => {
            failed()
        }
    }
}

fn of_creampi(file: &CreampiConfig) -> Result<KernelSettings, Error> {
    let backend = file.default_backend.as_ref();
    if let Some(said) = backend.filter(|backend| kernel::is_program(&backend.value)) {
        let mut faults = Faults::of(file.file.display().to_string());
        faults.at(said, kernel::PROGRAM, kernel::PROGRAM_REMEDY);
        return Err(Error::settings(&faults.into_list()));
    }
    let ms = |seconds: &Setting<u32>| of(&file.file, seconds, |value| u64::from(*value) * 1_000);
    let backends = file.backends.iter().map(|(name, backend)| {
        let value = of(&file.file, backend, |backend| BackendTable {
            provider: Some(backend.provider.clone()),
            model: Some(backend.model.clone()),
        });
        (name.clone(), value)
    });
    Ok(KernelSettings {
        default_agent: file
            .default_agent
            .as_ref()
            .map(|set| of(&file.file, set, String::clone)),
        default_backend: file
            .default_backend
            .as_ref()
            .map(|set| of(&file.file, set, String::clone)),
        default_model: file
            .default_model
            .as_ref()
            .map(|set| of(&file.file, set, String::clone)),
        max_concurrency: file
            .max_concurrency
            .as_ref()
            .map(|set| of(&file.file, set, |n| *n)),
        default_timeout_ms: file.default_timeout_s.as_ref().map(ms),
        guardrails_dir: file
            .guardrails_dir
            .as_ref()
            .map(|set| of(&file.file, set, PathBuf::clone)),
        key_ttl_ms: file.idempotency_ttl_s.as_ref().map(ms),
        backends: backends.collect(),
        ..KernelSettings::default()
    })
}

fn of<T, U>(file: &Path, set: &Setting<T>, value: impl FnOnce(&T) -> U) -> SourcedValue<U> {
    SourcedValue::new(value(&set.value), at(file, set.line))
}

fn row<T>(key: &str, said: &SourcedValue<T>, value: &dyn fmt::Display) -> SettingRow {
    SettingRow {
        key: key.to_owned(),
        value: value.to_string(),
        source: said.source.clone(),
    }
}

fn word(said: Option<&str>, otherwise: &str) -> String {
    said.unwrap_or(otherwise).to_owned()
}

fn seconds(ms: u64) -> String {
    match ms {
        0 => "no limit".to_owned(),
        ms => (ms / 1_000).to_string(),
    }
}

const fn overflow_word(overflow: Overflow) -> &'static str {
    match overflow {
        Overflow::Queue => "queue",
        Overflow::Reject => "reject",
    }
}

pub(crate) const fn priority_word(priority: Priority) -> &'static str {
    match priority {
        Priority::Low => "low",
        Priority::Normal => "normal",
        Priority::High => "high",
    }
}
