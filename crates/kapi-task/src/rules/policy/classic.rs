//! A rule in the form of the original: lists of agents, tools and texts for one kind of request.
//!
//! The checks, their order and their words are the original's. Lengths are counted in UTF-16 units,
//! as it counts them.

use crate::rules::policy::{PolicyRequest, RequestKind};

/// One rule of the original. Names are in lower case, without blanks around them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Classic {
    /// Its line, from 1.
    pub line: usize,
    /// Only these agents may work, when there are any.
    pub allowed_agents: Vec<String>,
    /// These agents may not work.
    pub denied_agents: Vec<String>,
    /// These tools may not be used.
    pub denied_tools: Vec<String>,
    /// The longest prompt.
    pub prompt_units_max: Option<u64>,
    /// Texts that may not stand in a prompt, whatever their case.
    pub denied_patterns: Vec<String>,
    /// Whether a run of a loop must say what triggered it.
    pub is_source_required: bool,
}

/// Brings a name to the form in which names are compared.
pub(super) fn plain_name(name: &str) -> String {
    name.trim().to_lowercase()
}

/// Returns everything that speaks against a request.
pub(super) fn violations(rule: &Classic, request: &PolicyRequest) -> Vec<String> {
    let mut found = Vec::new();
    let agent = request.agent.as_deref().map(plain_name).unwrap_or_default();
    let is_listed = |list: &[String]| list.contains(&agent);
    if !agent.is_empty() {
        if !rule.allowed_agents.is_empty() && !is_listed(&rule.allowed_agents) {
            found.push(format!("agent not allowed: {agent}"));
        }
        if is_listed(&rule.denied_agents) {
            found.push(format!("agent denied: {agent}"));
        }
    }
    let tools = request.tools.iter().flatten().map(|tool| plain_name(tool));
    let denied = tools.filter(|tool| rule.denied_tools.contains(tool));
    found.extend(denied.map(|tool| format!("tool denied: {tool}")));
    let units = request.prompt.encode_utf16().count();
    if let Some(max) = rule.prompt_units_max
        && u64::try_from(units).is_ok_and(|units| units > max)
    {
        found.push(format!("prompt too long: {units} > {max}"));
    }
    let prompt = request.prompt.to_lowercase();
    let patterns = rule.denied_patterns.iter();
    let matched = patterns.filter(|pattern| prompt.contains(&pattern.to_lowercase()));
    found.extend(matched.map(|pattern| format!("prompt matched denied pattern: {pattern}")));
    let source = request.trigger_source.as_deref().unwrap_or_default();
    if rule.is_source_required && request.kind == RequestKind::Loop && source.trim().is_empty() {
        found.push("trigger source required by policy".to_owned());
    }
    found
}
