//! The keys of a loop definition, and what each of them says.
//!
//! Reads on after a fault, so that a person sees all of them at once.

use std::path::Path;

use kapi_core::kernel::condition::{self, Condition};
use kapi_core::kernel::definition::eval::Eval;
use kapi_core::kernel::definition::trigger::{Ending, Trigger};
use kapi_core::kernel::definition::{
    AGENT_DEFAULT, BACKOFF_MS_DEFAULT, BACKOFF_MS_MAX, BACKOFF_MS_MAX_DEFAULT, CONCURRENT_MAX,
    COOLDOWN_MS_MAX, DEPTH_MAX, DESCRIPTION_BYTES_MAX, Definition, Learn, PROTECT_MAX, Retrigger,
    Source, TIMEOUT_MS_DEFAULT, VERIFY_MAX, VERSION_MAX, Workspace,
};
use kapi_core::kernel::id::LoopName;
use kapi_core::kernel::request::{Priority, RETRIES_MAX, Retry, TIMEOUT_MS_MAX, TaskBudget};
use kapi_core::kernel::value::place::Place;
use kapi_core::proof::policy::{CheckPolicy, TestPolicy};

use crate::kernel::condition_file::unknown_zone;
use kapi_settings::fault::Faults;
use crate::kernel::definition_file::front_matter::{self, Parts};
use crate::kernel::definition_file::place::PlaceError;
use crate::kernel::definition_file::table::{Said, Table};
use crate::kernel::definition_file::{body, evals, triggers};
use kapi_settings::node::{Entry, Node, Value as Yaml};
use kapi_settings::yaml;

/// Looks up a file of the project.
pub(super) type Files<'a> = &'a dyn Fn(&Path) -> Result<Option<String>, PlaceError>;

/// The agent programs by name; the others begin with `command:` or `script:`.
pub(in crate::kernel) const BACKENDS: &[(&str, &str)] = &[
    ("pi", "pi"),
    ("claude", "claude"),
    ("codex", "codex"),
    ("gemini", "gemini"),
];

/// The most any budget may be: far more than anybody means, and no sum of them overflows.
const BUDGET_MAX: i64 = 1_000_000_000_000;

/// Cuts a file, and returns its settings.
pub(in crate::kernel) fn settings(
    text: &str,
    faults: &mut Faults,
) -> Option<(Vec<Entry>, Parts)> {
    let parts = match front_matter::cut(text) {
        Ok(parts) => parts,
        Err(refusal) => {
            faults.at_line(refusal.line, refusal.what.to_owned(), refusal.remedy);
            return None;
        }
    };
    let root = yaml::parse(&parts.front, faults)?;
    Some((root.entries().to_vec(), parts))
}

/// Reads a definition.
pub(super) fn definition(
    text: &str,
    source: Source,
    files: Files<'_>,
    faults: &mut Faults,
) -> Option<Definition> {
    let (entries, parts) = settings(text, faults)?;
    let mut table = Table::new("", &entries);
    let name = name(&mut table, faults);
    let description = description(&mut table, name.as_ref(), faults);
    let version = match table.take("version") {
        Some(said) => said.count(1, VERSION_MAX, faults),
        None => Some(1),
    };
    let trigger = trigger(&mut table, faults);
    let retrigger = retrigger(&mut table, name.as_ref(), faults);
    let inputs = body::inputs(&mut table, faults);
    let limits = limits(&mut table, faults);
    let proof = proof(&mut table, files, faults);
    let party = party(&mut table, faults);
    let learn = learn(&mut table, faults);
    let workspace = word_or(
        &mut table,
        "workspace",
        WORKSPACES,
        Workspace::Branch,
        faults,
    );
    let priority = word_or(&mut table, "priority", PRIORITIES, Priority::Normal, faults);
    let should_run = should_run(&mut table, faults);
    table.finish(faults);
    body::check(&parts, inputs.as_ref(), faults);
    let (limits, proof, party) = (limits?, proof?, party?);
    Some(Definition {
        name: name?,
        version: version?,
        description: description?,
        trigger: trigger?,
        agent: party.agent,
        backend: party.backend,
        model: party.model,
        timeout_ms: limits.timeout_ms,
        max_concurrent: limits.max_concurrent,
        cooldown_ms: limits.cooldown_ms,
        retry: limits.retry,
        evals: proof.evals,
        inputs: inputs?,
        budget: limits.budget,
        should_run: should_run?,
        retrigger: retrigger?,
        learn: learn?,
        priority: priority?,
        verify: proof.verify,
        protect: proof.protect,
        checks: proof.checks,
        workspace: workspace?,
        body: parts.body,
        source,
    })
}

const WORKSPACES: &[(&str, Workspace)] = &[
    ("read_only", Workspace::ReadOnly),
    ("branch", Workspace::Branch),
];

const TESTS: &[(&str, TestPolicy)] = &[
    ("locked", TestPolicy::Locked),
    ("additive", TestPolicy::Additive),
    ("free", TestPolicy::Free),
];

const PRIORITIES: &[(&str, Priority)] = &[
    ("low", Priority::Low),
    ("normal", Priority::Normal),
    ("high", Priority::High),
];

const LEARNS: &[(&str, Learn)] = &[
    ("never", Learn::Never),
    ("on_failure", Learn::OnFailure),
    ("always", Learn::Always),
];

fn name(table: &mut Table<'_>, faults: &mut Faults) -> Option<LoopName> {
    match table.take("name") {
        Some(said) => triggers::loop_name(&said, faults),
        None => {
            faults.at_line(1, "the loop has no name".to_owned(), "add `name`");
            None
        }
    }
}

fn description(
    table: &mut Table<'_>,
    name: Option<&LoopName>,
    faults: &mut Faults,
) -> Option<String> {
    let Some(said) = table.take("description") else {
        return name.map(|name| format!("Loop: {name}"));
    };
    let text = said.text(faults)?;
    if text.len() > DESCRIPTION_BYTES_MAX {
        let what = format!("it is longer than {DESCRIPTION_BYTES_MAX} bytes");
        said.refuse(faults, what, "say it in one line");
        return None;
    }
    // A folded text has line breaks where the file has them.
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn trigger(table: &mut Table<'_>, faults: &mut Faults) -> Option<Trigger> {
    match table.take("trigger") {
        Some(said) => triggers::read(&said, faults),
        None => Some(Trigger::Manual),
    }
}

/// The first `None` is a fault, the inner one a loop that sets nothing off.
#[expect(clippy::option_option, reason = "a fault is not an absent key")]
fn retrigger(
    table: &mut Table<'_>,
    own_name: Option<&LoopName>,
    faults: &mut Faults,
) -> Option<Option<Retrigger>> {
    const DEPTH_DEFAULT: u32 = 3;
    let Some(said) = table.take("retrigger") else {
        return Some(None);
    };
    let mut inner = said.table(faults)?;
    let loop_name = match inner.take("loop") {
        Some(said) => triggers::loop_name(&said, faults),
        None => own_name.cloned(),
    };
    let on = word_or(
        &mut inner,
        "on",
        triggers::ENDINGS,
        Ending::Completed,
        faults,
    );
    let depth_max = match inner.take("depth_max") {
        Some(said) => said.count(1, DEPTH_MAX, faults),
        None => Some(DEPTH_DEFAULT),
    };
    inner.finish(faults);
    Some(Some(Retrigger {
        loop_name: loop_name?,
        on: on?,
        depth_max: depth_max?,
    }))
}

/// How long and how often.
struct Limits {
    timeout_ms: u64,
    max_concurrent: u32,
    cooldown_ms: u64,
    retry: Retry,
    budget: TaskBudget,
}

fn limits(table: &mut Table<'_>, faults: &mut Faults) -> Option<Limits> {
    let timeout_ms = duration(
        table,
        "timeout",
        (TIMEOUT_MS_DEFAULT, TIMEOUT_MS_MAX),
        faults,
    );
    let cooldown_ms = duration(table, "cooldown", (0, COOLDOWN_MS_MAX), faults);
    let max_concurrent = match table.take("max_concurrent") {
        Some(said) => said.count(1, CONCURRENT_MAX, faults),
        None => Some(1),
    };
    let times = match table.take("max_retries") {
        Some(said) => said.count(0, RETRIES_MAX, faults),
        None => Some(0),
    };
    let pause = (BACKOFF_MS_DEFAULT, BACKOFF_MS_MAX);
    let backoff_ms = duration(table, "backoff", pause, faults);
    let longest = (BACKOFF_MS_MAX_DEFAULT, BACKOFF_MS_MAX);
    let backoff_ms_max = duration(table, "backoff_max", longest, faults);
    let budget = match table.take("budget") {
        Some(said) => budget(&said, faults),
        None => Some(TaskBudget::default()),
    };
    let backoff_ms = backoff_ms?;
    let retry = match times? {
        0 => Retry::default(),
        times => Retry {
            times,
            backoff_ms,
            backoff_ms_max: backoff_ms_max?.max(backoff_ms),
        },
    };
    Some(Limits {
        timeout_ms: timeout_ms?,
        max_concurrent: max_concurrent?,
        cooldown_ms: cooldown_ms?,
        retry,
        budget: budget?,
    })
}

/// Reads a duration; `limits` are what holds when it is absent, and the longest.
fn duration(
    table: &mut Table<'_>,
    name: &'static str,
    limits: (u64, u64),
    faults: &mut Faults,
) -> Option<u64> {
    let (default, max) = limits;
    match table.take(name) {
        Some(said) => said.duration_ms(max, faults),
        None => Some(default),
    }
}

fn budget(said: &Said<'_>, faults: &mut Faults) -> Option<TaskBudget> {
    let mut table = said.table(faults)?;
    let tokens = table.take_either(["maxTokens", "max_tokens"], faults);
    let usd = table.take_either(["maxCostUsd", "max_cost_usd"], faults);
    let seconds = table.take_either(["maxDurationSec", "max_duration_sec"], faults);
    table.finish(faults);
    let mut budget = TaskBudget::default();
    if let Some(said) = tokens {
        let tokens = said.whole(1, BUDGET_MAX, faults)?;
        budget.tokens = u64::try_from(tokens).ok();
    }
    if let Some(said) = usd {
        let usd = said.number(faults)?;
        let micros = u64::try_from(usd.0).ok().filter(|micros| *micros > 0);
        if micros.is_none() {
            let what = format!("{usd} is out of range");
            said.refuse(faults, what, "give more than 0 US dollars, or leave it out");
        }
        budget.usd_micros = micros;
    }
    if let Some(said) = seconds {
        let ms = said.duration_ms(TIMEOUT_MS_MAX, faults)?;
        if ms == 0 {
            said.refuse(
                faults,
                "0 is out of range".to_owned(),
                "leave it out for no limit",
            );
        }
        budget.time_ms = Some(ms);
    }
    Some(budget)
}

/// What counts as well done.
struct Proof {
    evals: Vec<Eval>,
    verify: Vec<String>,
    protect: Vec<String>,
    checks: CheckPolicy,
}

fn proof(table: &mut Table<'_>, files: Files<'_>, faults: &mut Faults) -> Option<Proof> {
    let evals = match table.take_either(["eval", "evals"], faults) {
        Some(said) => evals::read(&said, files, faults),
        None => Some(evals::assumed()),
    };
    let verify = match table.take("verify") {
        Some(said) => said.texts(VERIFY_MAX, faults),
        None => Some(Vec::new()),
    };
    let protect = match table.take("protect") {
        Some(said) => said.texts(PROTECT_MAX, faults),
        None => Some(Vec::new()),
    };
    let checks = checks(table, faults);
    Some(Proof {
        evals: evals?,
        verify: verify?,
        protect: protect?,
        checks: checks?,
    })
}

/// What the checks are held to.
fn checks(table: &mut Table<'_>, faults: &mut Faults) -> Option<CheckPolicy> {
    let tests = word_or(table, "tests", TESTS, TestPolicy::default(), faults);
    let mut switch = |name| match table.take(name) {
        Some(said) => said.truth(faults),
        None => Some(false),
    };
    let already_green = switch("already_green");
    let changed_steering = switch("allow_changed_setup");
    let strength = switch("prove_diff");
    Some(CheckPolicy {
        tests: tests?,
        already_green: already_green?,
        changed_steering: changed_steering?,
        strength: strength?,
    })
}

/// Who works.
struct Party {
    agent: String,
    backend: Option<String>,
    model: Option<String>,
}

fn party(table: &mut Table<'_>, faults: &mut Faults) -> Option<Party> {
    let agent = match table.take("agent") {
        Some(said) => said
            .text(faults)
            .map(|text| text.trim_start_matches('@').to_owned()),
        None => Some(AGENT_DEFAULT.to_owned()),
    };
    let backend = match table.take("backend") {
        Some(said) => backend(&said, faults).map(Some),
        None => Some(None),
    };
    let model = match table.take("model") {
        Some(said) => said.text(faults).map(|text| Some(text.to_owned())),
        None => Some(None),
    };
    Some(Party {
        agent: agent?,
        backend: backend?,
        model: model?,
    })
}

/// Reads the name of an agent program.
pub(in crate::kernel) fn backend(said: &Said<'_>, faults: &mut Faults) -> Option<String> {
    let text = said.text(faults)?;
    let is_own = |prefix: &str| {
        text.strip_prefix(prefix)
            .is_some_and(|rest| !rest.trim().is_empty())
    };
    if is_own("command:") || is_own("script:") {
        return Some(text.to_owned());
    }
    said.word(BACKENDS, faults).map(str::to_owned)
}

fn learn(table: &mut Table<'_>, faults: &mut Faults) -> Option<Learn> {
    let Some(said) = table.take("learn") else {
        return Some(Learn::OnFailure);
    };
    match said.node.value {
        Yaml::Bool(true) => Some(Learn::Always),
        Yaml::Bool(false) => Some(Learn::Never),
        _ => said.word(LEARNS, faults),
    }
}

fn word_or<T: Copy>(
    table: &mut Table<'_>,
    name: &'static str,
    words: &[(&'static str, T)],
    default: T,
    faults: &mut Faults,
) -> Option<T> {
    match table.take(name) {
        Some(said) => said.word(words, faults),
        None => Some(default),
    }
}

/// The first `None` is a fault, the inner one a loop that always runs.
#[expect(clippy::option_option, reason = "a fault is not an absent key")]
fn should_run(table: &mut Table<'_>, faults: &mut Faults) -> Option<Option<Condition>> {
    let Some(said) = table.take_either(["should_run", "run_if"], faults) else {
        return Some(None);
    };
    let value = said.value(faults)?;
    match condition::read(&Place::root(&value)) {
        Ok(condition) => match unknown_zone(&condition) {
            None => Some(Some(condition)),
            Some(zone) => {
                let what = format!("there is no time zone {zone:?}");
                said.refuse(faults, what, "name one as Europe/Berlin or UTC");
                None
            }
        },
        Err(fault) => {
            let line = line_of(said.node, said.line, &fault.at);
            let key = std::iter::once(said.key.as_str())
                .chain(fault.at.iter().map(String::as_str))
                .collect::<Vec<_>>()
                .join(".");
            faults.at_key(line, &key, fault.what, fault.remedy);
            None
        }
    }
}

/// Returns the line of what some keys and places in lists lead to, or of what is nearest to it.
fn line_of(node: &Node, key_line: usize, path: &[String]) -> usize {
    let mut here = (node, key_line);
    for key in path {
        let next = match &here.0.value {
            Yaml::Map(entries) => entries
                .iter()
                .find(|entry| entry.key == *key)
                .map(|entry| (&entry.node, entry.line)),
            Yaml::List(items) => key
                .parse::<usize>()
                .ok()
                .and_then(|place| items.get(place))
                .map(|item| (item, item.line)),
            _ => None,
        };
        let Some(next) = next else { break };
        here = next;
    }
    here.1
}
