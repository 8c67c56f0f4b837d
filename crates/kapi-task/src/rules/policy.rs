//! What may be submitted at all: rules as data, the original's form beside them, and one decision.
//!
//! A denial wins over everything, and what a rule needs but nobody knows counts against the request.
//! What can only be decided while an agent works comes back as limits of its run. A file that could
//! not be read denies everything. Knows no file and no clock.

pub mod classic;
mod evaluate;
mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use kapi_core::isolation::NetworkMode;
use kapi_settings::fault::{Faults, SettingsFault};
use kapi_settings::node::ValueNode;
use serde::{Deserialize, Serialize};

use super::task_terms::TaskBudget;
use crate::rules::condition::window::{LocalTime, Window};
use crate::rules::policy::classic::Classic;

/// Why a request was refused, in the words of the original.
pub const DENIED: &str = "policy denied request";
/// The most rules of one file.
pub const RULES_MAX: usize = 256;

/// All rules that apply, of all their files; none allow everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// The files, each of which must allow a request.
    pub sources: Vec<PolicySource>,
}

/// The rules of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySource {
    /// The file, as a person is told of it.
    pub file: String,
    /// What happens to a request that no rule speaks of; denied as soon as a rule allows anything
    /// of its kind.
    pub default: RuleEffect,
    /// The line of that setting, from 1; 1 where it is not set.
    pub default_line: usize,
    /// The rules in the order of the file.
    pub rules: Vec<PolicyRule>,
    /// The original's rule for tasks.
    pub background_task: Option<Classic>,
    /// The original's rule for loops.
    pub loop_trigger: Option<Classic>,
    /// What is wrong with the file; with any fault it denies everything.
    pub faults: Vec<SettingsFault>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRule {
    /// Its name.
    pub name: String,
    /// Its line, from 1.
    pub line: usize,
    /// What it does to the requests it is about.
    pub effect: RuleEffect,
    /// Which requests it is about: everything that is said here applies.
    pub when: When,
    /// What of a run it is about; the whole request where nothing is said.
    pub part: Option<RunPart>,
    /// Why, for whoever is refused.
    pub reason: Option<String>,
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleEffect {
    /// Refuse.
    Deny,
    /// Let through what no other rule denies.
    Allow,
    /// Ask a person while the run waits; for commands only.
    Ask,
}

/// Which requests a rule is about; what is empty or absent is not looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct When {
    /// Tasks or runs of loops.
    pub kinds: Vec<RequestKind>,
    /// Patterns for the agent profile.
    pub agents: Vec<String>,
    /// Patterns for the loop.
    pub loops: Vec<String>,
    /// Patterns for the project's path, or without a slash for its name.
    pub projects: Vec<String>,
    /// Patterns for the agent program.
    pub backends: Vec<String>,
    /// Patterns for tools of the profile; any of them.
    pub tools: Vec<String>,
    /// Patterns for what set a loop off.
    pub trigger_sources: Vec<String>,
    /// Texts in the prompt, whatever their case; any of them.
    pub prompt_contains: Vec<String>,
    /// A length of the prompt in characters that it exceeds.
    pub prompt_chars_over: Option<u64>,
    /// Limits that the request's budget exceeds, any of them; no limit exceeds every limit.
    pub budget_over: TaskBudget,
    /// Whether nobody is there to answer.
    pub unattended: Option<bool>,
    /// A time of day.
    pub window: Option<Window>,
}

/// What of a run a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunPart {
    /// Programs or words of a command line.
    Commands(Vec<String>),
    /// Patterns for paths of the project.
    Paths(Vec<String>),
    /// This much network; denied with everything wider, allowed with everything narrower.
    Network(NetworkMode),
    /// Patterns for hosts.
    Hosts(Vec<String>),
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// A task of its own.
    Task,
    /// A run of a loop.
    Loop,
}

/// A request, as far as rules speak of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRequest {
    /// What is asked for.
    pub kind: RequestKind,
    /// The agent profile.
    pub agent: Option<String>,
    /// The loop, for a run of one.
    pub loop_name: Option<String>,
    /// The project's absolute path.
    pub project: String,
    /// The agent program, where it is known already.
    pub backend: Option<String>,
    /// The tools of the profile; none where it may use whatever its program has.
    pub tools: Option<Vec<String>>,
    /// The prompt as it is sent.
    pub prompt: String,
    /// What set a loop off.
    pub trigger_source: Option<String>,
    /// What the run may use, its timeout included.
    pub budget: TaskBudget,
    /// Whether nobody is there to answer.
    pub is_unattended: bool,
    /// How much network it asks for, where it is known already.
    pub network: Option<NetworkMode>,
    /// Hosts that it names.
    pub hosts: Vec<String>,
    /// Commands that it names, to verify or evaluate with.
    pub commands: Vec<String>,
    /// Paths that it names, relative to the project.
    pub paths: Vec<String>,
    /// What time it is in the zones that [`Policy::zones`] names.
    pub local_times: BTreeMap<String, LocalTime>,
}

/// What the rules come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyDecision {
    /// Whether the request may go on.
    pub allowed: bool,
    /// [`DENIED`], when it may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Every rule that speaks against it.
    pub violations: Vec<PolicyViolation>,
    /// What holds inside the run.
    pub constraints: Constraints,
}

/// A rule that speaks against a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyViolation {
    /// The rule's name.
    pub rule: String,
    /// Its file.
    pub file: String,
    /// Its line, from 1.
    pub line: usize,
    /// What is wrong.
    pub text: String,
}

/// What holds inside a run, whatever its profile and contract say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constraints {
    /// Commands that are refused, each as an entry of [`kapi_core::consent_rule`].
    pub forbidden_commands: Vec<PolicyLimit>,
    /// Commands that a person is asked about, in the same form.
    pub ask_before: Vec<PolicyLimit>,
    /// Patterns for paths of the project that may be read but not changed.
    pub read_only: Vec<PolicyLimit>,
    /// Patterns for hosts that are not reached.
    pub forbidden_hosts: Vec<PolicyLimit>,
    /// The widest network there may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_max: Option<NetworkMax>,
}

/// One limit and where it is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyLimit {
    /// The command, path or host.
    pub pattern: String,
    /// The rule that sets it; its text says why.
    pub set_by: PolicyViolation,
}

/// The widest network and where it is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkMax {
    /// How much.
    pub mode: NetworkMode,
    /// The rule that sets it; its text says why.
    pub set_by: PolicyViolation,
}

/// Decides a request.
#[must_use]
pub fn evaluate(policy: &Policy, request: &PolicyRequest) -> PolicyDecision {
    evaluate::decision(policy, request)
}

/// Reads the rules of a file, besides the faults that its text has. Never fails: what is wrong
/// stands in the faults, and denies.
#[must_use]
pub fn read(file: &str, root: &ValueNode, faults: Faults) -> PolicySource {
    read::source(file, root, faults)
}

impl Policy {
    /// Returns the time zones whose time a request must carry.
    #[must_use]
    pub fn zones(&self) -> BTreeSet<&str> {
        let rules = self.sources.iter().flat_map(|source| &source.rules);
        let windows = rules.filter_map(|rule| rule.when.window.as_ref());
        windows.map(|window| window.zone.as_str()).collect()
    }

    /// Returns what is wrong with its files.
    pub fn faults(&self) -> impl Iterator<Item = &SettingsFault> {
        self.sources.iter().flat_map(|source| &source.faults)
    }
}

impl PolicySource {
    /// Returns a file without a rule, which allows everything.
    #[must_use]
    pub fn empty(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            default: RuleEffect::Allow,
            default_line: 1,
            rules: Vec::new(),
            background_task: None,
            loop_trigger: None,
            faults: Vec::new(),
        }
    }

    /// Returns what stands for a file that cannot be used: it denies everything and says why.
    #[must_use]
    pub fn broken(file: &str, faults: Vec<SettingsFault>) -> Self {
        Self {
            default: RuleEffect::Deny,
            faults,
            ..Self::empty(file)
        }
    }
}

impl fmt::Display for PolicyViolation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} ({}, {}, line {})",
            self.text, self.rule, self.file, self.line
        )
    }
}

#[cfg(test)]
mod tests;
