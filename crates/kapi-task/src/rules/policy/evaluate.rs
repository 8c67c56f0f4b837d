//! From rules and a request to a decision.
//!
//! Every file is judged alone and must allow; limits of all of them hold together. Whether a rule is
//! about a request may be unknown: then a denial is, and a permission is not.

mod when;

use kapi_core::consent_rule::ToolField;
use kapi_core::isolation::NetworkMode;
use kapi_core::{consent_rule, pattern};

use crate::rules::policy::{
    Constraints, DENIED, NetworkMax, Policy, PolicyDecision, PolicyLimit, PolicyRequest,
    PolicyRule, PolicySource, PolicyViolation, RequestKind, RuleEffect, RunPart, classic,
};

/// Decides a request.
pub(super) fn decision(policy: &Policy, request: &PolicyRequest) -> PolicyDecision {
    let mut found = PolicyMatch::default();
    for source in &policy.sources {
        found.source(source, request);
    }
    let allowed = found.violations.is_empty();
    PolicyDecision {
        allowed,
        reason: (!allowed).then(|| DENIED.to_owned()),
        violations: found.violations,
        constraints: found.constraints,
    }
}

#[derive(Default)]
struct PolicyMatch {
    violations: Vec<PolicyViolation>,
    constraints: Constraints,
}

impl PolicyMatch {
    fn source(&mut self, source: &PolicySource, request: &PolicyRequest) {
        let faults = source.faults.iter().map(|fault| PolicyViolation {
            rule: "policy file".to_owned(),
            file: fault.file.clone(),
            line: fault.line,
            text: match &fault.key {
                None => format!(
                    "the policy cannot be used: {}; {}",
                    fault.what, fault.remedy
                ),
                Some(key) => format!(
                    "the policy cannot be used: `{key}`: {}; {}",
                    fault.what, fault.remedy
                ),
            },
        });
        self.violations.extend(faults);
        if !source.faults.is_empty() {
            // Of a file that is not understood, nothing else is said.
            return;
        }
        let (name, original) = match request.kind {
            RequestKind::Task => ("backgroundTask", &source.background_task),
            RequestKind::Loop => ("loopTrigger", &source.loop_trigger),
        };
        if let Some(original) = original {
            let texts = classic::violations(original, request).into_iter();
            self.violations.extend(texts.map(|text| PolicyViolation {
                rule: name.to_owned(),
                file: source.file.clone(),
                line: original.line,
                text,
            }));
        }
        for rule in &source.rules {
            match rule.effect {
                RuleEffect::Deny if when::is_about(&rule.when, request) != Some(false) => {
                    self.denial(source, rule, request);
                }
                RuleEffect::Ask if when::is_about(&rule.when, request) != Some(false) => {
                    let commands = rule.part.iter().flat_map(commands);
                    let asked = commands.map(|pattern| limit(source, rule, pattern));
                    self.constraints.ask_before.extend(asked);
                }
                RuleEffect::Deny | RuleEffect::Ask | RuleEffect::Allow => {}
            }
        }
        self.permission(source, request);
    }

    fn denial(&mut self, source: &PolicySource, rule: &PolicyRule, request: &PolicyRequest) {
        let against = |what: &str| violation(source, rule, what);
        let limits = |patterns: &[String]| -> Vec<PolicyLimit> {
            let each = patterns.iter().map(|pattern| limit(source, rule, pattern));
            each.collect()
        };
        match &rule.part {
            None => self.violations.push(violation(source, rule, "")),
            Some(RunPart::Commands(patterns)) => {
                let named = request.commands.iter();
                let denied = named.filter_map(|command| {
                    let pattern = command_of(patterns, command)?;
                    Some(against(&format!(
                        "command denied: {command} falls under {pattern}"
                    )))
                });
                self.violations.extend(denied);
                self.constraints.forbidden_commands.extend(limits(patterns));
            }
            Some(RunPart::Paths(patterns)) => {
                let named = request.paths.iter();
                let denied = named.filter(|path| is_path_of(patterns, path));
                let denied = denied.map(|path| against(&format!("path denied: {path}")));
                self.violations.extend(denied);
                self.constraints.read_only.extend(limits(patterns));
            }
            Some(RunPart::Network(mode)) => {
                if request.network.is_some_and(|asked| asked >= *mode) {
                    self.violations.push(against("network denied"));
                }
                self.cap(narrower(*mode), against("the network is limited"));
            }
            Some(RunPart::Hosts(patterns)) => {
                let named = request.hosts.iter();
                let denied = named.filter(|host| is_host_of(patterns, host));
                let denied = denied.map(|host| against(&format!("host denied: {host}")));
                self.violations.extend(denied);
                self.constraints.forbidden_hosts.extend(limits(patterns));
                // Where everything is reached, nothing in particular can be refused.
                self.cap(NetworkMode::Filtered, against("the network is limited"));
            }
        }
    }

    /// Demands a rule that allows the request, where there are such rules or nothing is allowed
    /// without one.
    fn permission(&mut self, source: &PolicySource, request: &PolicyRequest) {
        let is_kind = |rule: &&PolicyRule| {
            let kinds = &rule.when.kinds;
            rule.effect == RuleEffect::Allow && (kinds.is_empty() || kinds.contains(&request.kind))
        };
        let rules: Vec<&PolicyRule> = source.rules.iter().filter(is_kind).collect();
        if rules.is_empty() && source.default == RuleEffect::Allow {
            return;
        }
        let allows = |rule: &&&PolicyRule| {
            let is_enough = |mode: NetworkMode| match request.network {
                Some(asked) => asked <= mode,
                None => true,
            };
            when::is_about(&rule.when, request) == Some(true)
                && network_of(rule).is_none_or(is_enough)
        };
        let allowing: Vec<&&PolicyRule> = rules.iter().filter(allows).collect();
        let Some(widest) = allowing.iter().max_by_key(|rule| {
            let mode = network_of(rule);
            (mode.is_none(), mode)
        }) else {
            let line = rules.first().map_or(source.default_line, |rule| rule.line);
            self.violations.push(PolicyViolation {
                rule: "default".to_owned(),
                file: source.file.clone(),
                line,
                text: "no rule allows it".to_owned(),
            });
            return;
        };
        if let Some(mode) = network_of(widest) {
            self.cap(
                mode,
                violation(source, widest, "only this much network is allowed"),
            );
        }
    }

    fn cap(&mut self, mode: NetworkMode, set_by: PolicyViolation) {
        let old = self.constraints.network_max.as_ref();
        if old.is_none_or(|old| old.mode > mode) {
            self.constraints.network_max = Some(NetworkMax { mode, set_by });
        }
    }
}

fn violation(source: &PolicySource, rule: &PolicyRule, what: &str) -> PolicyViolation {
    let why = rule.reason.as_deref().unwrap_or_default();
    let text = match (what, why) {
        ("", "") => format!("denied by {}", rule.name),
        ("", why) => why.to_owned(),
        (what, "") => what.to_owned(),
        (what, why) => format!("{what}: {why}"),
    };
    PolicyViolation {
        rule: rule.name.clone(),
        file: source.file.clone(),
        line: rule.line,
        text,
    }
}

fn limit(source: &PolicySource, rule: &PolicyRule, pattern: &str) -> PolicyLimit {
    PolicyLimit {
        pattern: pattern.to_owned(),
        set_by: violation(source, rule, ""),
    }
}

fn commands(part: &RunPart) -> impl Iterator<Item = &str> {
    let list: &[String] = match part {
        RunPart::Commands(patterns) => patterns,
        RunPart::Paths(_) | RunPart::Network(_) | RunPart::Hosts(_) => &[],
    };
    list.iter().map(String::as_str)
}

fn network_of(rule: &PolicyRule) -> Option<NetworkMode> {
    match &rule.part {
        Some(RunPart::Network(mode)) => Some(*mode),
        Some(RunPart::Commands(_) | RunPart::Paths(_) | RunPart::Hosts(_)) | None => None,
    }
}

/// Returns the entry that a command falls under.
fn command_of<'a>(patterns: &'a [String], command: &str) -> Option<&'a str> {
    let field = ToolField {
        key: "command".to_owned(),
        text: command.to_owned(),
    };
    consent_rule::matches(patterns, "bash", &[field])
}

/// Tells whether a path is one of these, lies in one, or leads nobody knows where.
fn is_path_of(patterns: &[String], path: &str) -> bool {
    let plain = path.trim_start_matches("./");
    let is_odd = plain.starts_with('/') || plain.split('/').any(|part| part == ".." || part == ".");
    is_odd
        || patterns
            .iter()
            .any(|pattern| pattern::covers(pattern, plain))
}

fn is_host_of(patterns: &[String], host: &str) -> bool {
    let host = host.trim().trim_end_matches('.').to_lowercase();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => &host,
    };
    let is_of = |pattern: &String| {
        let below = pattern.strip_prefix("*.");
        pattern::is_name(pattern, name) || below.is_some_and(|bare| bare == name)
    };
    patterns.iter().any(is_of)
}

/// Returns what is left when something is denied.
const fn narrower(mode: NetworkMode) -> NetworkMode {
    match mode {
        NetworkMode::Open => NetworkMode::Filtered,
        NetworkMode::Filtered | NetworkMode::None => NetworkMode::None,
    }
}
