//! The keys of a loop definition, and what each of them says.
//!
//! The forms are the keys; what follows from several of them together is decided here. Reads on
//! after a fault, so that a person sees all of them at once.

use std::collections::BTreeMap;

use kapi_check::rules::proof::policy::{CheckPolicy, TestPolicy};
use kapi_core::task_id::LoopNameForm;
use kapi_core::text::one_line;
use kapi_core::value::KernelValue;
use kapi_settings::fault::{Faults, did_you_mean, short};
use kapi_settings::node::ValueNode;
use kapi_settings::read::read;
use kapi_settings::scalar::{
    Millis, RangedCount, Scalar, TrimmedText, UsdMicros, Whole, scalar, word,
};
use kapi_settings::setting::{OneOrMany, Setting};
use kapi_settings::yaml;
use serde::{Deserialize, Deserializer};

use super::directory::Files;
use crate::record::condition_file::unknown_zone;
use crate::record::definition_file::evals::EvalForm;
use crate::record::definition_file::front_matter::FileParts;
use crate::record::definition_file::triggers::TriggerForm;
use crate::record::definition_file::{body, evals, front_matter, triggers};
use crate::rules::condition::{Condition, ConditionForm};
use crate::rules::definition::trigger::Ending;
use crate::rules::definition::{
    AGENT_DEFAULT, BACKOFF_MS_DEFAULT, BACKOFF_MS_MAX, BACKOFF_MS_MAX_DEFAULT, CONCURRENT_MAX,
    COOLDOWN_MS_MAX, DEPTH_MAX, DESCRIPTION_BYTES_MAX, Definition, DefinitionSource, EVALS_MAX,
    Learn, PROTECT_MAX, Retrigger, TIMEOUT_MS_DEFAULT, VERIFY_MAX, VERSION_MAX, WorkspaceMode,
};
use crate::rules::request::{RETRIES_MAX, TIMEOUT_MS_MAX};
use crate::rules::task_terms::{Priority, Retry, TaskBudget};

/// The agent programs by name; the others begin with `command:` or `script:`.
const BACKENDS: &[&str] = &["pi", "claude", "codex", "gemini"];
/// The most any budget may be: far more than anybody means, and no sum of them overflows.
const BUDGET_MAX: i64 = 1_000_000_000_000;
/// How many runs set each other off when the definition does not say.
const DEPTH_DEFAULT: u32 = 3;

/// A definition's settings, as they are written.
#[derive(Default, Deserialize)]
#[serde(default)]
struct LoopForm {
    name: Option<LoopNameForm>,
    version: Option<RangedCount<1, VERSION_MAX>>,
    description: Option<TrimmedText<DESCRIPTION_BYTES_MAX>>,
    trigger: Option<Setting<TriggerForm>>,
    retrigger: Option<RetriggerForm>,
    inputs: Option<Setting<BTreeMap<String, Setting<KernelValue>>>>,
    timeout: Option<Millis<0, TIMEOUT_MS_MAX>>,
    cooldown: Option<Millis<0, COOLDOWN_MS_MAX>>,
    coalesce: bool,
    max_concurrent: Option<RangedCount<1, CONCURRENT_MAX>>,
    max_retries: Option<RangedCount<0, RETRIES_MAX>>,
    backoff: Option<Millis<0, BACKOFF_MS_MAX>>,
    backoff_max: Option<Millis<0, BACKOFF_MS_MAX>>,
    budget: LoopBudgetForm,
    #[serde(alias = "evals")]
    eval: Option<OneOrMany<Setting<EvalForm>, 1, EVALS_MAX>>,
    verify: OneOrMany<TrimmedText, 1, VERIFY_MAX>,
    protect: OneOrMany<TrimmedText, 1, PROTECT_MAX>,
    tests: TestPolicy,
    already_green: bool,
    allow_changed_setup: bool,
    allow_flagged_code: bool,
    prove_diff: bool,
    keep_commits: bool,
    agent: Option<TrimmedText>,
    backend: Option<BackendForm>,
    model: Option<TrimmedText>,
    learn: Option<LearnForm>,
    workspace: Option<WorkspaceMode>,
    priority: Priority,
    #[serde(alias = "run_if")]
    should_run: Option<Setting<ConditionForm>>,
}

#[derive(Deserialize)]
struct RetriggerForm {
    #[serde(rename = "loop")]
    loop_name: Option<LoopNameForm>,
    on: Option<Ending>,
    depth_max: Option<RangedCount<1, DEPTH_MAX>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LoopBudgetForm {
    #[serde(alias = "max_tokens")]
    max_tokens: Option<Whole<1, BUDGET_MAX>>,
    #[serde(alias = "max_cost_usd")]
    max_cost_usd: Option<Setting<UsdMicros>>,
    #[serde(alias = "max_duration_sec")]
    max_duration_sec: Option<Millis<1, TIMEOUT_MS_MAX>>,
}

/// The name of an agent program.
pub(in crate::record) struct BackendForm(pub(in crate::record) String);

impl<'de> Deserialize<'de> for BackendForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word(deserializer, usize::MAX, |text| {
            let is_own = |prefix: &str| {
                let rest = text.strip_prefix(prefix);
                rest.is_some_and(|rest| !rest.trim().is_empty())
            };
            let is_command = ["acp:", "command:", "script:"].into_iter().any(is_own);
            if is_command || BACKENDS.contains(&text) {
                return Ok(Self(text.to_owned()));
            }
            let remedy = did_you_mean(text, BACKENDS, "use");
            Err(format!("unknown value {:?}\n{remedy}", short(text)))
        })
    }
}

struct LearnForm(Learn);

impl<'de> Deserialize<'de> for LearnForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const WORDS: &[&str] = &["never", "on_failure", "always"];
        scalar(deserializer, "true, false or a word", |value| {
            Some(Ok(Self(match value {
                Scalar::Bool(true) | Scalar::Text("always") => Learn::Always,
                Scalar::Bool(false) | Scalar::Text("never") => Learn::Never,
                Scalar::Text("on_failure") => Learn::OnFailure,
                Scalar::Text(text) => {
                    let remedy = did_you_mean(text, WORDS, "use");
                    return Some(Err(format!("unknown value {:?}\n{remedy}", short(text))));
                }
                Scalar::Whole(_) | Scalar::Real(_) => return None,
            })))
        })
    }
}

/// Cuts a file, and returns its settings.
pub(in crate::record) fn settings(
    text: &str,
    faults: &mut Faults,
) -> Option<(ValueNode, FileParts)> {
    match front_matter::cut(text) {
        Ok(parts) => Some((yaml::parse(&parts.front, faults)?, parts)),
        Err(refusal) => {
            faults.at_line(refusal.line, refusal.what, refusal.remedy);
            None
        }
    }
}

/// Reads a definition.
pub(super) fn definition(
    text: &str,
    source: DefinitionSource,
    files: Files<'_>,
    faults: &mut Faults,
) -> Option<Definition> {
    let (root, parts) = settings(text, faults)?;
    let form: LoopForm = read(&root, faults)?;
    let inputs = match (form.inputs, faults.blames("inputs")) {
        (Some(inputs), _) => Some(body::inputs(&inputs, faults)),
        (None, true) => None,
        (None, false) => Some(BTreeMap::new()),
    };
    body::check(&parts, inputs.as_ref(), faults);
    if form.name.is_none() && !faults.blames("name") {
        faults.at_line(1, "the loop has no name", "add `name`");
    }
    let trigger = triggers::trigger(form.trigger, faults);
    let evals = match form.eval {
        Some(evals) => evals::evals(evals.0, files, faults),
        None => evals::assumed(),
    };
    let should_run = form.should_run.map(|said| should_run(said, faults));
    let name = form.name?.0;
    let retrigger = form.retrigger.map(|form| Retrigger {
        loop_name: form.loop_name.map_or_else(|| name.clone(), |name| name.0),
        on: form.on.unwrap_or(Ending::Completed),
        depth_max: form.depth_max.map_or(DEPTH_DEFAULT, |depth| depth.0),
    });
    let timeout_ms = form.timeout.map_or(TIMEOUT_MS_DEFAULT, |time| time.0);
    let texts = |words: Vec<TrimmedText>| words.into_iter().map(|word| word.0).collect();
    Some(Definition {
        description: match form.description {
            // A folded text has line breaks where the file has them.
            Some(text) => one_line(&text.0),
            None => format!("Loop: {name}"),
        },
        name,
        version: form.version.map_or(1, |version| version.0),
        trigger: trigger?,
        agent: form.agent.map_or_else(
            || AGENT_DEFAULT.to_owned(),
            |agent| agent.0.trim_start_matches('@').to_owned(),
        ),
        backend: form.backend.map(|backend| backend.0),
        model: form.model.map(|model| model.0),
        timeout_ms,
        max_concurrent: form.max_concurrent.map_or(1, |count| count.0),
        cooldown_ms: form.cooldown.map_or(0, |time| time.0),
        coalesce: form.coalesce,
        retry: retry(form.max_retries, form.backoff, form.backoff_max),
        evals,
        inputs: inputs?,
        budget: budget(form.budget, faults),
        should_run,
        retrigger,
        learn: form.learn.map_or(Learn::OnFailure, |learn| learn.0),
        priority: form.priority,
        verify: texts(form.verify.0),
        protect: texts(form.protect.0),
        checks: CheckPolicy {
            tests: form.tests,
            already_green: form.already_green,
            changed_steering: form.allow_changed_setup,
            flagged_code: form.allow_flagged_code,
            strength: form.prove_diff,
        },
        keep_commits: form.keep_commits,
        workspace: form.workspace.unwrap_or(WorkspaceMode::Branch),
        body: parts.body,
        source,
    })
}

fn should_run(said: Setting<ConditionForm>, faults: &mut Faults) -> Condition {
    if let Some(zone) = unknown_zone(&said.value.0) {
        let what = format!("there is no time zone {zone:?}");
        faults.at(
            &said,
            what,
            "use a name such as Europe/Berlin, UTC or local",
        );
    }
    said.value.0
}

type Backoff = Millis<0, BACKOFF_MS_MAX>;

fn retry(
    times: Option<RangedCount<0, RETRIES_MAX>>,
    first: Option<Backoff>,
    longest: Option<Backoff>,
) -> Retry {
    let Some(times) = times.filter(|times| times.0 > 0) else {
        return Retry::default();
    };
    let backoff_ms = first.map_or(BACKOFF_MS_DEFAULT, |time| time.0);
    let longest = longest.map_or(BACKOFF_MS_MAX_DEFAULT, |time| time.0);
    Retry {
        times: times.0,
        backoff_ms,
        backoff_ms_max: longest.max(backoff_ms),
    }
}

fn budget(form: LoopBudgetForm, faults: &mut Faults) -> TaskBudget {
    if let Some(usd) = form.max_cost_usd.as_ref().filter(|usd| usd.value.0 == 0) {
        let remedy = "give more than 0 US dollars, or omit it";
        faults.at(usd, "0 is out of range", remedy);
    }
    TaskBudget {
        tokens: form.max_tokens.map(|tokens| tokens.0.unsigned_abs()),
        usd_micros: form.max_cost_usd.map(|usd| usd.value.0),
        time_ms: form.max_duration_sec.map(|time| time.0),
    }
}
