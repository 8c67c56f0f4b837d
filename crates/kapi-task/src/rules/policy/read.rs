//! From the content of a policy file to its rules, strictly: a key that is not known, a pattern that
//! could never match and a rule that could not be kept are faults, and a fault denies everything.

use kapi_core::isolation::NetworkMode;
use kapi_settings::fault::Faults;
use kapi_settings::node::{ValueNode, below};
use kapi_settings::read::read;
use kapi_settings::scalar::{TrimmedText, UsdMicros, Whole};
use kapi_settings::setting::{OneOrMany, Setting};
use serde::Deserialize;

use crate::rules::condition::window::{DaysForm, HoursForm, Window, ZoneForm};
use crate::rules::policy::classic::{Classic, plain_name};
use crate::rules::policy::{
    PolicyRule, PolicySource, RULES_MAX, RequestKind, RuleEffect, RunPart, When,
};
use crate::rules::task_terms::TaskBudget;

/// The most entries of one list.
const LIST_MAX: usize = 128;
/// The largest number of tokens, characters or seconds.
const COUNT_MAX: i64 = 1_000_000_000_000;
/// The most that a budget is compared with, in millionths of a US dollar.
const USD_MICROS_MAX: u64 = 1_000_000_000_000;

type Text = TrimmedText<512>;
type Texts = OneOrMany<Text, 1, LIST_MAX>;
type Number = Whole<1, COUNT_MAX>;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PolicyForm {
    default: Option<Setting<DefaultForm>>,
    rules: Option<OneOrMany<Setting<PolicyRuleForm>, 1, RULES_MAX>>,
    background_task: Option<Setting<ClassicForm>>,
    loop_trigger: Option<Setting<ClassicForm>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DefaultForm {
    Deny,
    Allow,
}

#[derive(Deserialize)]
struct PolicyRuleForm {
    name: Option<Text>,
    effect: Setting<RuleEffect>,
    when: Option<Setting<WhenForm>>,
    reason: Option<Text>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WhenForm {
    kind: OneOrMany<RequestKind, 1, 2>,
    agent: Texts,
    #[serde(rename = "loop")]
    loop_name: Texts,
    project: Texts,
    path: Option<Setting<Texts>>,
    command: Option<Setting<Texts>>,
    network: Option<Setting<Texts>>,
    backend: Texts,
    tool: Texts,
    trigger_source: Texts,
    hours: Option<HoursForm>,
    days: Option<DaysForm>,
    zone: Option<ZoneForm>,
    prompt_contains: Texts,
    prompt_chars_over: Option<Number>,
    budget_over: Option<Setting<PolicyBudgetForm>>,
    unattended: Option<bool>,
}

#[derive(Deserialize)]
struct PolicyBudgetForm {
    tokens: Option<Number>,
    usd: Option<Setting<UsdMicros>>,
    seconds: Option<Number>,
}

/// An empty list says nothing, as in the original.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClassicForm {
    allowed_agents: OneOrMany<Text, 0, LIST_MAX>,
    denied_agents: OneOrMany<Text, 0, LIST_MAX>,
    denied_tools: OneOrMany<Text, 0, LIST_MAX>,
    max_prompt_chars: Option<Number>,
    denied_patterns: OneOrMany<Text, 0, LIST_MAX>,
    require_trigger_source: bool,
}

/// Reads a file.
pub(super) fn source(file: &str, root: &ValueNode, mut faults: Faults) -> PolicySource {
    let mut source = PolicySource::empty(file);
    if let Some(form) = read(root, &mut faults) {
        fill(&mut source, form, &mut faults);
    }
    source.faults = faults.into_list();
    if !source.faults.is_empty() {
        // Of a file that is not understood, nothing else is said.
        source.rules.clear();
    }
    source
}

fn fill(source: &mut PolicySource, form: PolicyForm, faults: &mut Faults) {
    for (at, item) in form.rules.unwrap_or_default().0.into_iter().enumerate() {
        let location = item.with(());
        let Some(rule) = rule(item, at, faults) else {
            continue;
        };
        if let Some(first) = source.rules.iter().find(|other| other.name == rule.name) {
            let what = format!("the rule of line {} has the same name", first.line);
            faults.at(&location, what, "give each rule a unique name");
        }
        source.rules.push(rule);
    }
    let is_allowing = source
        .rules
        .iter()
        .any(|rule| rule.effect == RuleEffect::Allow);
    if let Some(default) = form.default {
        source.default_line = default.line;
        if default.value == DefaultForm::Deny {
            source.default = RuleEffect::Deny;
        } else if is_allowing {
            let what = "once a rule allows something, everything that no rule allows is denied";
            faults.at(&default, what, "remove `default`, or set it to deny");
        }
    }
    source.background_task = form.background_task.map(classic);
    source.loop_trigger = form.loop_trigger.map(classic);
}

fn rule(item: Setting<PolicyRuleForm>, at: usize, faults: &mut Faults) -> Option<PolicyRule> {
    let PolicyRuleForm {
        name,
        effect,
        when,
        reason,
    } = item.value;
    let (when, part) = match when {
        Some(form) => self::when(form, faults)?,
        None => (When::default(), None),
    };
    match (effect.value, &part) {
        (RuleEffect::Deny, Some(RunPart::Network(NetworkMode::None))) => {
            let what = "denying `network: none` denies every run";
            let remedy = "write filtered or open, or remove `network`";
            faults.at(&effect, what, remedy);
        }
        (RuleEffect::Deny, _)
        | (RuleEffect::Allow, None | Some(RunPart::Network(_)))
        | (RuleEffect::Ask, Some(RunPart::Commands(_))) => {}
        (RuleEffect::Allow, Some(RunPart::Commands(_) | RunPart::Paths(_) | RunPart::Hosts(_))) => {
            let what = "commands, paths and hosts can only be denied, not allowed";
            let remedy = "use deny, or give a network level";
            faults.at(&effect, what, remedy);
        }
        (
            RuleEffect::Ask,
            Some(RunPart::Paths(_) | RunPart::Network(_) | RunPart::Hosts(_)) | None,
        ) => {
            let what = "only commands can ask for approval";
            let remedy = "add `command:` under `when`, or write deny";
            faults.at(&effect, what, remedy);
        }
    }
    Some(PolicyRule {
        name: name.map_or_else(|| format!("rule {}", at + 1), |name| name.0),
        line: item.line,
        effect: effect.value,
        when,
        part,
        reason: reason.map(|reason| reason.0),
    })
}

fn when(form: Setting<WhenForm>, faults: &mut Faults) -> Option<(When, Option<RunPart>)> {
    let at_when = form.with(());
    let form = form.value;
    let is_timed = form.hours.is_some() || form.days.is_some() || form.zone.is_some();
    let window = match form.zone {
        Some(zone) => {
            let hours = form.hours.unwrap_or(HoursForm::DAY);
            let window = Window::checked(form.days, hours.from, hours.to, zone);
            window.map_err(|error| {
                let (what, remedy) = error.split_once('\n').unwrap_or((&error, ""));
                faults.at(&at_when, what, remedy);
            })
        }
        None if is_timed && !faults.blames(&below(&at_when.key, "zone")) => {
            let remedy = "add `zone: Europe/Berlin` with your own, `zone: local` or `zone: UTC`";
            faults.at(&at_when, "a time needs its zone", remedy);
            Err(())
        }
        None => Err(()),
    };
    let when = When {
        kinds: form.kind.0,
        agents: names(form.agent),
        loops: names(form.loop_name),
        projects: texts(form.project),
        backends: names(form.backend),
        tools: names(form.tool),
        trigger_sources: names(form.trigger_source),
        prompt_contains: texts(form.prompt_contains),
        prompt_chars_over: form.prompt_chars_over.map(count),
        budget_over: form
            .budget_over
            .map(|form| budget(&form, faults))
            .unwrap_or_default(),
        unattended: form.unattended,
        window: window.ok(),
    };
    let named = [form.command.is_some(), form.path.is_some()];
    let second = match named {
        [true, true] => form.path.as_ref().or(form.network.as_ref()),
        [false, false] => None,
        _ => form.network.as_ref(),
    };
    if let Some(second) = second {
        let what = "a rule can have only one of command, path and network";
        faults.at(second, what, "write a separate rule for each");
        return None;
    }
    let part = match (form.command, form.path, form.network) {
        (Some(commands), _, _) => Some(RunPart::Commands(texts(commands.value))),
        (None, Some(patterns), _) => Some(paths(patterns, faults)?),
        (None, None, Some(words)) => Some(network(words, faults)?),
        (None, None, None) => None,
    };
    Some((when, part))
}

fn texts<const MIN: usize>(words: OneOrMany<Text, MIN, LIST_MAX>) -> Vec<String> {
    words.0.into_iter().map(|word| word.0).collect()
}

fn names(words: Texts) -> Vec<String> {
    let plain = |name: String| {
        let name = plain_name(&name);
        name.strip_prefix('@').unwrap_or(&name).to_owned()
    };
    texts(words).into_iter().map(plain).collect()
}

fn count(number: Number) -> u64 {
    number.0.unsigned_abs()
}

fn paths(patterns: Setting<Texts>, faults: &mut Faults) -> Option<RunPart> {
    let location = patterns.with(());
    let mut patterns = texts(patterns.value);
    for pattern in &mut patterns {
        if pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
            let what = format!("{pattern:?} points outside the project");
            let remedy = "write it relative to the project, without `..`";
            faults.at(&location, what, remedy);
            return None;
        }
        *pattern = pattern
            .trim_start_matches("./")
            .trim_end_matches('/')
            .to_owned();
    }
    Some(RunPart::Paths(patterns))
}

fn network(words: Setting<Texts>, faults: &mut Faults) -> Option<RunPart> {
    let location = words.with(());
    let words = texts(words.value);
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["none"] => return Some(RunPart::Network(NetworkMode::None)),
        ["filtered"] => return Some(RunPart::Network(NetworkMode::Filtered)),
        ["open"] => return Some(RunPart::Network(NetworkMode::Open)),
        _ => {}
    }
    let is_host = |word: &String| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-._*".contains(c);
        word.contains(['.', '*']) && word.chars().all(is_part) || word == "localhost"
    };
    if let Some(word) = words.iter().find(|word| !is_host(word)) {
        let what = format!("{word:?} is neither a host nor none, filtered or open");
        let remedy = "write a host like example.com or *.example.com, without a port";
        faults.at(&location, what, remedy);
        return None;
    }
    let hosts = words.iter().map(|word| word.to_lowercase()).collect();
    Some(RunPart::Hosts(hosts))
}

fn budget(form: &Setting<PolicyBudgetForm>, faults: &mut Faults) -> TaskBudget {
    let PolicyBudgetForm {
        tokens,
        usd,
        seconds,
    } = &form.value;
    let is_empty = tokens.is_none() && usd.is_none() && seconds.is_none();
    if is_empty && !faults.blames(&form.key) {
        faults.at(form, "no limit is named", "add tokens, usd or seconds");
    }
    if let Some(usd) = usd.as_ref().filter(|usd| usd.value.0 > USD_MICROS_MAX) {
        faults.at(usd, "it is out of range", "give 0 to 1000000 US dollars");
    }
    TaskBudget {
        tokens: tokens.map(count),
        usd_micros: usd.as_ref().map(|usd| usd.value.0),
        time_ms: seconds.map(|seconds| count(seconds) * 1_000),
    }
}

fn classic(form: Setting<ClassicForm>) -> Classic {
    let line = form.line;
    let form = form.value;
    let names = |words| {
        let words = texts::<0>(words);
        words.iter().map(|name| plain_name(name)).collect()
    };
    Classic {
        line,
        allowed_agents: names(form.allowed_agents),
        denied_agents: names(form.denied_agents),
        denied_tools: names(form.denied_tools),
        prompt_units_max: form.max_prompt_chars.map(count),
        denied_patterns: texts(form.denied_patterns),
        is_source_required: form.require_trigger_source,
    }
}
