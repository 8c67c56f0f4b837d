//! The rules in force as others see them, and what they come to for one request.

use kapi_core::isolation::NetworkMode;
use kapi_settings::fault::SettingsFault;
use kapi_task::rules::policy::{Policy, PolicyRule, PolicySource, RuleEffect, RunPart, When};
use serde::Serialize;

/// All rules that apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyView {
    /// Whether every file could be read; a file that could not denies everything.
    pub ok: bool,
    /// The files, each of which must allow a request.
    pub files: Vec<FileView>,
}

/// The rules of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileView {
    /// The file.
    pub file: String,
    /// What happens to a request that no rule speaks of.
    pub default: RuleEffect,
    /// The rules, in their order.
    pub rules: Vec<RuleView>,
    /// Whether it has the original's rule for tasks, or for loops.
    pub background_task: bool,
    /// Whether it has the original's rule for loops.
    pub loop_trigger: bool,
    /// What is wrong with it.
    pub faults: Vec<PolicyFaultView>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleView {
    /// Its name.
    pub rule: String,
    /// Its line, from 1.
    pub line: usize,
    /// What it does.
    pub effect: RuleEffect,
    /// Which requests it is about, in words.
    pub when: Vec<String>,
    /// What of a run it is about, in words.
    pub part: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyFaultView {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The key, dotted.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

impl From<&Policy> for PolicyView {
    fn from(policy: &Policy) -> Self {
        Self {
            ok: policy.faults().next().is_none(),
            files: policy.sources.iter().map(FileView::from).collect(),
        }
    }
}

impl From<&PolicySource> for FileView {
    fn from(source: &PolicySource) -> Self {
        Self {
            file: source.file.clone(),
            default: source.default,
            rules: source.rules.iter().map(RuleView::from).collect(),
            background_task: source.background_task.is_some(),
            loop_trigger: source.loop_trigger.is_some(),
            faults: source.faults.iter().map(PolicyFaultView::from).collect(),
        }
    }
}

impl From<&SettingsFault> for PolicyFaultView {
    fn from(fault: &SettingsFault) -> Self {
        Self {
            file: fault.file.clone(),
            line: fault.line,
            key: fault.key.clone().unwrap_or_default(),
            what: fault.what.clone(),
            remedy: fault.remedy.clone(),
        }
    }
}

impl From<&PolicyRule> for RuleView {
    fn from(rule: &PolicyRule) -> Self {
        Self {
            rule: rule.name.clone(),
            line: rule.line,
            effect: rule.effect,
            when: when_words(&rule.when),
            part: rule.part.as_ref().map(part_words),
            reason: rule.reason.clone(),
        }
    }
}

/// Returns the word of an effect.
#[must_use]
pub const fn effect_word(effect: RuleEffect) -> &'static str {
    match effect {
        RuleEffect::Deny => "deny",
        RuleEffect::Allow => "allow",
        RuleEffect::Ask => "ask",
    }
}

fn when_words(when: &When) -> Vec<String> {
    let lists = [
        ("agent", &when.agents),
        ("loop", &when.loops),
        ("project", &when.projects),
        ("backend", &when.backends),
        ("tool", &when.tools),
        ("trigger", &when.trigger_sources),
        ("prompt has", &when.prompt_contains),
    ];
    let said = lists.into_iter().filter(|(_, list)| !list.is_empty());
    let mut words: Vec<String> = said
        .map(|(key, list)| format!("{key} {}", list.join("|")))
        .collect();
    if !when.kinds.is_empty() {
        let kinds = when.kinds.iter().map(|kind| match kind {
            kapi_task::rules::policy::RequestKind::Task => "task",
            kapi_task::rules::policy::RequestKind::Loop => "loop",
        });
        words.insert(0, format!("kind {}", kinds.collect::<Vec<_>>().join("|")));
    }
    words.extend(
        when.prompt_chars_over
            .map(|n| format!("prompt over {n} characters")),
    );
    let over = when.budget_over;
    words.extend(over.tokens.map(|n| format!("tokens over {n}")));
    words.extend(
        over.usd_micros
            .map(|n| format!("US dollars over {}.{:06}", n / 1_000_000, n % 1_000_000)),
    );
    words.extend(over.time_ms.map(|n| format!("time over {}s", n / 1_000)));
    words.extend(
        when.unattended
            .map(|is| if is { "unattended" } else { "attended" }.to_owned()),
    );
    words.extend(when.window.as_ref().map(|window| {
        let time = |minute: u16| format!("{:02}:{:02}", minute / 60, minute % 60);
        format!(
            "{} to {} {}",
            time(window.from),
            time(window.to),
            window.zone
        )
    }));
    words
}

fn part_words(part: &RunPart) -> String {
    match part {
        RunPart::Commands(list) => format!("command {}", list.join("|")),
        RunPart::Paths(list) => format!("path {}", list.join("|")),
        RunPart::Network(mode) => format!("network {}", network_word(*mode)),
        RunPart::Hosts(list) => format!("host {}", list.join("|")),
    }
}

fn network_word(mode: NetworkMode) -> String {
    mode.to_string()
}
