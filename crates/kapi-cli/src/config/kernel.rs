//! `[kernel]`: what holds for tasks and loops, in the person's file and in the project's.
//!
//! Reads and checks one file at a time; what wins over what is decided in `kernel/terms.rs`. The
//! keys are those of `.pi/oh-my-creampi.jsonc` in snake case, and some more.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use kapi_settings::scalar::{NonBlankText, RangedCount, UsdMicros};
use kapi_settings::setting::Setting;
use kapi_task::rules::command::Overflow;
use kapi_task::rules::task_terms::Priority;
use serde::Deserialize;

use crate::config::source::{self, SourcedValue};
use crate::config::store::{self, REPLICAS_MAX, StoreSettings, StoreTable};
use crate::config::webhook::{self, Webhook, WebhookTable};

/// The most tasks that run at once.
const CONCURRENCY_MAX: u32 = 32;
/// The most tasks that run at once on one machine.
const MACHINE_MAX: u32 = CONCURRENCY_MAX * 8;
/// The longest timeout and the longest that a key is known, in seconds: a day.
const SECONDS_MAX: u32 = 86_400;
/// The most tasks that wait.
const TASKS_MAX: u32 = 1_000_000;
/// The most tokens of a prompt that guardrails may take.
const GUARDRAIL_TOKENS_MAX: u32 = 20_000;

/// The most days, tasks or mebibytes that are kept.
const KEEP_MAX: u32 = 1_000_000;

/// `[kernel]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct KernelTable {
    default_agent: Option<Setting<NonBlankText>>,
    default_backend: Option<Setting<NonBlankText>>,
    default_model: Option<Setting<NonBlankText>>,
    max_concurrency: Option<Setting<RangedCount<1, CONCURRENCY_MAX>>>,
    default_timeout_sec: Option<Setting<RangedCount<0, SECONDS_MAX>>>,
    guardrails_dir: Option<Setting<PathBuf>>,
    idempotency_ttl_sec: Option<Setting<RangedCount<1, SECONDS_MAX>>>,
    backends: BTreeMap<String, Setting<BackendTable>>,
    per_agent: BTreeMap<String, Setting<RangedCount<1, CONCURRENCY_MAX>>>,
    tasks_max: Option<Setting<RangedCount<1, TASKS_MAX>>>,
    overflow: Option<Setting<OverflowWord>>,
    machine_max: Option<Setting<RangedCount<1, MACHINE_MAX>>>,
    priorities: BTreeMap<String, Setting<Priority>>,
    guardrail_tokens_max: Option<Setting<RangedCount<0, GUARDRAIL_TOKENS_MAX>>>,
    accept_learnt_after: Option<Setting<RangedCount<1, 1_000>>>,
    runs_submit_tasks: Option<Setting<bool>>,
    webhook: Option<Setting<WebhookTable>>,
    usd_per_day: Option<Setting<UsdMicros>>,
    keep_days: Option<Setting<RangedCount<1, KEEP_MAX>>>,
    keep_tasks: Option<Setting<RangedCount<1, KEEP_MAX>>>,
    keep_mb: Option<Setting<RangedCount<1, KEEP_MAX>>>,
    store: Option<Setting<String>>,
    store_project: Option<Setting<String>>,
    store_credentials: Option<Setting<PathBuf>>,
    store_authorities: Option<Setting<PathBuf>>,
    store_replicas: Option<RangedCount<1, REPLICAS_MAX>>,
}

/// `[kernel.backends.<name>]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
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
pub(crate) struct KernelSettings {
    /// Who works when nobody says so.
    pub(crate) default_agent: Option<SourcedValue<String>>,
    /// The agent program.
    pub(crate) default_backend: Option<SourcedValue<String>>,
    /// The model.
    pub(crate) default_model: Option<SourcedValue<String>>,
    /// Tasks that run at once.
    pub(crate) max_concurrency: Option<SourcedValue<u32>>,
    /// How long a task may take, in milliseconds; 0 for no limit.
    pub(crate) default_timeout_ms: Option<SourcedValue<u64>>,
    /// Where lessons are kept, below the project.
    pub(crate) guardrails_dir: Option<SourcedValue<PathBuf>>,
    /// How long a key is known, in milliseconds.
    pub(crate) key_ttl_ms: Option<SourcedValue<u64>>,
    /// Provider and model of agent programs.
    pub(crate) backends: BTreeMap<String, SourcedValue<BackendTable>>,
    /// Tasks of one profile that run at once.
    pub(crate) per_agent: BTreeMap<String, SourcedValue<u32>>,
    /// Tasks that have not ended.
    pub(crate) tasks_max: Option<SourcedValue<u32>>,
    /// What becomes of one too many.
    pub(crate) overflow: Option<SourcedValue<Overflow>>,
    /// Tasks of all projects that run at once.
    pub(crate) machine_max: Option<SourcedValue<u32>>,
    /// How urgent the tasks of a profile are.
    pub(crate) priorities: BTreeMap<String, SourcedValue<Priority>>,
    /// Tokens of a prompt for lessons.
    pub(crate) guardrail_tokens_max: Option<SourcedValue<u32>>,
    /// After how many sources a learnt lesson is accepted.
    pub(crate) accept_learnt_after: Option<SourcedValue<u32>>,
    /// Whether agents within a run may submit tasks; only the person can say so.
    pub(crate) runs_submit_tasks: Option<SourcedValue<bool>>,
    /// Where calls that trigger loops are taken; only the person can say so.
    pub(crate) webhook: Option<Webhook>,
    /// Millionths of a US dollar that a day of the project may cost.
    pub(crate) usd_micros_per_day: Option<SourcedValue<u64>>,
    /// Where tasks are kept; only the person can say so.
    pub(crate) store: StoreSettings,
    /// How long what tasks leave is kept; only the person can say so.
    pub(crate) retention: RetentionSettings,
}

/// How long what tasks leave is kept.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RetentionSettings {
    /// Days since the task ended.
    pub(crate) days: Option<u32>,
    /// Tasks whose runs are kept.
    pub(crate) tasks: Option<u32>,
    /// Mebibytes of runs.
    pub(crate) megabytes: Option<u32>,
}

/// What both files say.
#[derive(Debug, Clone, Default)]
pub(crate) struct KernelConfigFiles {
    /// The person's.
    pub(crate) person: KernelSettings,
    /// The project's.
    pub(crate) project: KernelSettings,
}

/// Takes what the person's file says.
pub(crate) fn person(
    file: &mut source::SettingsText<'_>,
    table: KernelTable,
    home: &Path,
) -> KernelSettings {
    let store = StoreTable {
        store: table.store.clone(),
        store_project: table.store_project.clone(),
        store_credentials: table.store_credentials.clone(),
        store_authorities: table.store_authorities.clone(),
        store_replicas: table.store_replicas.map(|count| count.0),
    };
    let store = store::person(file, store, home);
    let webhook = table.webhook.as_ref();
    let webhook = webhook.and_then(|table| webhook::read(table, &mut file.faults));
    let count =
        |said: &Option<Setting<RangedCount<1, KEEP_MAX>>>| said.as_ref().map(|said| said.value.0);
    let retention = RetentionSettings {
        days: count(&table.keep_days),
        tasks: count(&table.keep_tasks),
        megabytes: count(&table.keep_mb),
    };
    KernelSettings {
        store,
        webhook,
        retention,
        ..shared(file, table)
    }
}

/// Takes what a project's file says: it may not name a program that runs.
pub(crate) fn project(file: &mut source::SettingsText<'_>, table: KernelTable) -> KernelSettings {
    if let Some(backend) = &table.default_backend
        && is_program(&backend.value.0)
    {
        file.faults.at(backend, PROGRAM, PROGRAM_REMEDY);
    }
    for keep in [&table.keep_days, &table.keep_tasks, &table.keep_mb]
        .into_iter()
        .flatten()
    {
        let what = "how long transcripts are kept is not the project's to say";
        file.faults
            .at(keep, what, "set it in your own configuration");
    }
    shared(file, table)
}

/// What is wrong with a project's file that names a program that runs.
pub(crate) const PROGRAM: &str = "a project's backend must be a built-in agent";
/// What to do about it.
pub(crate) const PROGRAM_REMEDY: &str =
    "set commands and scripts in your own configuration or with a flag";

/// Tells whether the name of an agent program is a command line or a script.
pub(crate) fn is_program(backend: &str) -> bool {
    backend.contains(':')
}

fn shared(file: &mut source::SettingsText<'_>, table: KernelTable) -> KernelSettings {
    // Lessons are written into it: it must not lead out of the project.
    let is_inner = |part: Component<'_>| matches!(part, Component::Normal(_));
    if let Some(dir) = &table.guardrails_dir
        && (dir.value.as_os_str().is_empty() || !dir.value.components().all(is_inner))
    {
        let what = "it points outside the project";
        file.faults
            .at(dir, what, "give a relative path inside the project");
    }
    let path = file.path;
    let text = |said: Option<Setting<NonBlankText>>| said.map(|said| at(path, said, |text| text.0));
    KernelSettings {
        default_agent: text(table.default_agent),
        default_backend: text(table.default_backend),
        default_model: text(table.default_model),
        max_concurrency: table.max_concurrency.map(|said| at(path, said, |n| n.0)),
        default_timeout_ms: table
            .default_timeout_sec
            .map(|said| at(path, said, milliseconds)),
        guardrails_dir: table.guardrails_dir.map(|said| file.at(said)),
        key_ttl_ms: table
            .idempotency_ttl_sec
            .map(|said| at(path, said, milliseconds)),
        backends: each(table.backends, |said| file.at(said)),
        per_agent: table
            .per_agent
            .into_iter()
            .map(|(name, said)| (name.to_lowercase(), at(path, said, |n| n.0)))
            .collect(),
        tasks_max: table.tasks_max.map(|said| at(path, said, |n| n.0)),
        overflow: table.overflow.map(|said| {
            at(path, said, |word| match word {
                OverflowWord::Queue => Overflow::Queue,
                OverflowWord::Reject => Overflow::Reject,
            })
        }),
        machine_max: table.machine_max.map(|said| at(path, said, |n| n.0)),
        priorities: table
            .priorities
            .into_iter()
            .map(|(name, said)| (name.to_lowercase(), file.at(said)))
            .collect(),
        guardrail_tokens_max: table
            .guardrail_tokens_max
            .map(|said| at(path, said, |n| n.0)),
        accept_learnt_after: table
            .accept_learnt_after
            .map(|said| at(path, said, |n| n.0)),
        runs_submit_tasks: table.runs_submit_tasks.map(|said| file.at(said)),
        usd_micros_per_day: table.usd_per_day.map(|said| at(path, said, |usd| usd.0)),
        webhook: None,
        store: StoreSettings::default(),
        retention: RetentionSettings::default(),
    }
}

fn each<T, U>(said: BTreeMap<String, T>, read: impl Fn(T) -> U) -> BTreeMap<String, U> {
    said.into_iter()
        .map(|(name, said)| (name, read(said)))
        .collect()
}

fn at<T, U>(path: &Path, said: Setting<T>, value: impl FnOnce(T) -> U) -> SourcedValue<U> {
    let source = source::at(path, said.line);
    SourcedValue::new(value(said.value), source)
}

fn milliseconds<const MIN: u32>(seconds: RangedCount<MIN, SECONDS_MAX>) -> u64 {
    u64::from(seconds.0) * 1_000
}
