//! `[kernel]`: what holds for tasks and loops, in the person's file and in the project's.
//!
//! Reads and checks one file at a time; what wins over what is decided in `kernel/terms.rs`. The
//! keys are those of `.pi/oh-my-creampi.jsonc` in snake case, and some more.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use kapi_core::kernel::command::Overflow;
use kapi_core::kernel::request::Priority;
use kapi_core::spend::price::parse_usd_micros;
use serde::Deserialize;

use crate::config::source::{At, Text, at};
use crate::config::store::{self, StoreSaid, StoreTable};
use crate::config::webhook::{self, Webhook, WebhookTable};
use crate::error::Error;

/// The most tasks that run at once.
const CONCURRENCY_MAX: u32 = 32;
/// The longest timeout and the longest that a key is known, in seconds: a day.
const SECONDS_MAX: u32 = 86_400;
/// The most tasks that wait.
const TASKS_MAX: u32 = 1_000_000;
/// The most tokens of a prompt that guardrails may take.
const GUARDRAIL_TOKENS_MAX: u32 = 20_000;

/// `[kernel]` in the person's file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct KernelTable {
    default_agent: Option<String>,
    default_backend: Option<String>,
    default_model: Option<String>,
    max_concurrency: Option<u32>,
    default_timeout_sec: Option<u32>,
    guardrails_dir: Option<PathBuf>,
    idempotency_ttl_sec: Option<u32>,
    backends: BTreeMap<String, BackendTable>,
    per_agent: BTreeMap<String, u32>,
    tasks_max: Option<u32>,
    overflow: Option<OverflowWord>,
    machine_max: Option<u32>,
    priorities: BTreeMap<String, Priority>,
    guardrail_tokens_max: Option<u32>,
    accept_learnt_after: Option<u32>,
    runs_submit_tasks: Option<bool>,
    webhook: Option<WebhookTable>,
    usd_per_day: Option<f64>,
    store: Option<String>,
    store_project: Option<String>,
    store_credentials: Option<PathBuf>,
    store_authorities: Option<PathBuf>,
    store_replicas: Option<u8>,
}

/// `[kernel]` in a project's file: nothing that would give it more.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ProjectKernelTable {
    default_agent: Option<String>,
    default_backend: Option<String>,
    default_model: Option<String>,
    max_concurrency: Option<u32>,
    default_timeout_sec: Option<u32>,
    guardrails_dir: Option<PathBuf>,
    idempotency_ttl_sec: Option<u32>,
    per_agent: BTreeMap<String, u32>,
    tasks_max: Option<u32>,
    overflow: Option<OverflowWord>,
    priorities: BTreeMap<String, Priority>,
    guardrail_tokens_max: Option<u32>,
    usd_per_day: Option<f64>,
    // Read so that whoever writes it is told what is wrong with that, and where.
    store: Option<toml::Value>,
}

/// `[kernel.backends.<name>]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct BackendTable {
    /// Who serves it.
    pub(crate) provider: Option<String>,
    /// The model.
    pub(crate) model: Option<String>,
}

/// `overflow`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OverflowWord {
    Queue,
    Reject,
}

/// What one file says for the kernel; what it does not speak of is absent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    /// Who works when nobody says so.
    pub(crate) default_agent: Option<At<String>>,
    /// The agent program.
    pub(crate) default_backend: Option<At<String>>,
    /// The model.
    pub(crate) default_model: Option<At<String>>,
    /// Tasks that run at once.
    pub(crate) max_concurrency: Option<At<u32>>,
    /// How long a task may take, in milliseconds; 0 for no limit.
    pub(crate) default_timeout_ms: Option<At<u64>>,
    /// Where lessons are kept, below the project.
    pub(crate) guardrails_dir: Option<At<PathBuf>>,
    /// How long a key is known, in milliseconds.
    pub(crate) key_ttl_ms: Option<At<u64>>,
    /// Provider and model of agent programs.
    pub(crate) backends: BTreeMap<String, At<BackendTable>>,
    /// Tasks of one profile that run at once.
    pub(crate) per_agent: BTreeMap<String, At<u32>>,
    /// Tasks that have not ended.
    pub(crate) tasks_max: Option<At<u32>>,
    /// What becomes of one too many.
    pub(crate) overflow: Option<At<Overflow>>,
    /// Tasks of all projects that run at once.
    pub(crate) machine_max: Option<At<u32>>,
    /// How urgent the tasks of a profile are.
    pub(crate) priorities: BTreeMap<String, At<Priority>>,
    /// Tokens of a prompt for lessons.
    pub(crate) guardrail_tokens_max: Option<At<u32>>,
    /// After how many sources a learnt lesson is accepted.
    pub(crate) accept_learnt_after: Option<At<u32>>,
    /// Whether agents within a run may submit tasks; only the person can say so.
    pub(crate) runs_submit_tasks: Option<At<bool>>,
    /// Where calls that set loops off are taken; only the person can say so.
    pub(crate) webhook: Option<Webhook>,
    /// Millionths of a US dollar that a day of the project may cost.
    pub(crate) usd_micros_per_day: Option<At<u64>>,
    /// Where tasks are kept; only the person can say so.
    pub(crate) store: StoreSaid,
}

/// What both files say.
#[derive(Debug, Clone, Default)]
pub(crate) struct KernelSaid {
    /// The person's.
    pub(crate) person: Said,
    /// The project's.
    pub(crate) project: Said,
}

/// Takes what the person's file says.
pub(crate) fn person(file: &Text<'_>, table: KernelTable, home: &Path) -> Result<Said, Error> {
    let read = Reader { file };
    let mut said = read.shared(ProjectKernelTable {
        default_agent: table.default_agent,
        default_backend: table.default_backend,
        default_model: table.default_model,
        max_concurrency: table.max_concurrency,
        default_timeout_sec: table.default_timeout_sec,
        guardrails_dir: table.guardrails_dir,
        idempotency_ttl_sec: table.idempotency_ttl_sec,
        per_agent: table.per_agent,
        tasks_max: table.tasks_max,
        overflow: table.overflow,
        priorities: table.priorities,
        guardrail_tokens_max: table.guardrail_tokens_max,
        usd_per_day: table.usd_per_day,
        store: None,
    })?;
    let place = StoreTable {
        store: table.store,
        store_project: table.store_project,
        store_credentials: table.store_credentials,
        store_authorities: table.store_authorities,
        store_replicas: table.store_replicas,
    };
    said.store = store::person(file, place, home)?;
    for (name, backend) in table.backends {
        let value = read.at(&format!("backends.{name}"), backend);
        said.backends.insert(name, value);
    }
    said.webhook = table
        .webhook
        .map(|table| webhook::read(file, table))
        .transpose()?;
    said.machine_max = read.number("machine_max", table.machine_max, (1, CONCURRENCY_MAX * 8))?;
    let accept = table.accept_learnt_after;
    said.accept_learnt_after = read.number("accept_learnt_after", accept, (1, 1_000))?;
    let submit = table.runs_submit_tasks;
    said.runs_submit_tasks = submit.map(|is| read.at("runs_submit_tasks", is));
    Ok(said)
}

/// Takes what a project's file says: it may not name a program that runs.
pub(crate) fn project(file: &Text<'_>, table: ProjectKernelTable) -> Result<Said, Error> {
    let said = Reader { file }.shared(table)?;
    if let Some(backend) = &said.default_backend {
        let place = file.at("kernel.default_backend");
        check_backend(&place, &backend.value)?;
    }
    Ok(said)
}

/// Refuses an agent program that a file of a project may not name.
pub(crate) fn check_backend(place: &str, backend: &str) -> Result<(), Error> {
    if !backend.contains(':') {
        return Ok(());
    }
    let text = format!("{place}: a project's backend must be a built-in agent");
    Err(Error::usage(text)
        .with_hint("put a command or a script into your own configuration, or a flag."))
}

/// Reads the values of one file.
struct Reader<'a> {
    file: &'a Text<'a>,
}

impl Reader<'_> {
    fn shared(&self, table: ProjectKernelTable) -> Result<Said, Error> {
        let timeout = (0, SECONDS_MAX);
        let timeout = self.number("default_timeout_sec", table.default_timeout_sec, timeout)?;
        let ttl = (1, SECONDS_MAX);
        let ttl = self.number("idempotency_ttl_sec", table.idempotency_ttl_sec, ttl)?;
        let mut per_agent = BTreeMap::new();
        for (name, n) in table.per_agent {
            let key = format!("per_agent.{name}");
            if let Some(n) = self.number(&key, Some(n), (1, CONCURRENCY_MAX))? {
                per_agent.insert(name.to_lowercase(), n);
            }
        }
        let priorities = table.priorities.into_iter().map(|(name, priority)| {
            let key = format!("priorities.{name}");
            (name.to_lowercase(), self.at(&key, priority))
        });
        let tokens = (0, GUARDRAIL_TOKENS_MAX);
        Ok(Said {
            default_agent: self.text("default_agent", table.default_agent)?,
            default_backend: self.text("default_backend", table.default_backend)?,
            default_model: self.text("default_model", table.default_model)?,
            max_concurrency: self.number(
                "max_concurrency",
                table.max_concurrency,
                (1, CONCURRENCY_MAX),
            )?,
            default_timeout_ms: timeout.map(milliseconds),
            guardrails_dir: self.directory("guardrails_dir", table.guardrails_dir)?,
            key_ttl_ms: ttl.map(milliseconds),
            per_agent,
            tasks_max: self.number("tasks_max", table.tasks_max, (1, TASKS_MAX))?,
            overflow: table.overflow.map(|word| {
                let overflow = match word {
                    OverflowWord::Queue => Overflow::Queue,
                    OverflowWord::Reject => Overflow::Reject,
                };
                self.at("overflow", overflow)
            }),
            priorities: priorities.collect(),
            guardrail_tokens_max: self.number(
                "guardrail_tokens_max",
                table.guardrail_tokens_max,
                tokens,
            )?,
            usd_micros_per_day: self.dollars("usd_per_day", table.usd_per_day)?,
            ..Said::default()
        })
    }

    fn at<T>(&self, key: &str, value: T) -> At<T> {
        let line = self.file.lines.get(&format!("kernel.{key}"));
        At::new(value, at(self.file.path, line.copied().unwrap_or(1)))
    }

    fn text(&self, key: &str, text: Option<String>) -> Result<Option<At<String>>, Error> {
        let Some(text) = text else { return Ok(None) };
        if text.trim().is_empty() {
            return Err(self.wrong(key, "it must not be empty"));
        }
        Ok(Some(self.at(key, text)))
    }

    fn number(
        &self,
        key: &str,
        number: Option<u32>,
        (least, most): (u32, u32),
    ) -> Result<Option<At<u32>>, Error> {
        let Some(number) = number else {
            return Ok(None);
        };
        if number < least || number > most {
            let rule = format!("it must be between {least} and {most}, not {number}");
            return Err(self.wrong(key, &rule));
        }
        Ok(Some(self.at(key, number)))
    }

    fn dollars(&self, key: &str, usd: Option<f64>) -> Result<Option<At<u64>>, Error> {
        let Some(usd) = usd else { return Ok(None) };
        let micros = parse_usd_micros(&usd.to_string());
        let micros = micros.map_err(|error| self.wrong(key, &format!("failed to {error}")))?;
        Ok(Some(self.at(key, micros)))
    }

    /// Lessons are written into it: it must not lead out of the project.
    fn directory(&self, key: &str, dir: Option<PathBuf>) -> Result<Option<At<PathBuf>>, Error> {
        let Some(dir) = dir else { return Ok(None) };
        let is_inner = |part: Component<'_>| matches!(part, Component::Normal(_));
        if dir.as_os_str().is_empty() || !dir.components().all(is_inner) {
            return Err(self.wrong(key, "it must be a relative path below the project"));
        }
        Ok(Some(self.at(key, dir)))
    }

    fn wrong(&self, key: &str, rule: &str) -> Error {
        let key = format!("kernel.{key}");
        let place = self.file.at(&key);
        Error::usage(format!("{place}: `{key}`: {rule}"))
            .with_hint("`docs/configuration.md` lists every key.")
    }
}

fn milliseconds(seconds: At<u32>) -> At<u64> {
    At::new(u64::from(seconds.value) * 1_000, seconds.source)
}
