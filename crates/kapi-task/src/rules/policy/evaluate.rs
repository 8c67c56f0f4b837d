//! From rules and a request to a decision.
//!
//! Every file is judged alone and must allow; limits of all of them hold together. Whether a rule is
//! about a request may be unknown: then a denial is, and a permission is not.

mod when;

use kapi_core::consent_rule::Field;
use kapi_core::isolation::NetworkMode;
use kapi_core::{consent_rule, pattern};

use crate::rules::policy::{
    Constraints, DENIED, Decision, Effect, Limit, NetworkMax, Part, Policy, PolicyRequest,
    PolicySource, RequestKind, Rule, Violation, classic,
};

/// Decides a request.
pub(super) fn decision(policy: &Policy, request: &PolicyRequest) -> Decision {
    let mut found = Found::default();
    for source in &policy.sources {
        found.source(source, request);
    }
    let allowed = found.violations.is_empty();
    Decision {
        allowed,
        reason: (!allowed).then(|| DENIED.to_owned()),
        violations: found.violations,
        constraints: found.constraints,
    }
}

#[derive(Default)]
struct Found {
    violations: Vec<Violation>,
    constraints: Constraints,
}

impl Found {
    fn source(&mut self, source: &PolicySource, request: &PolicyRequest) {
        let faults = source.faults.iter().map(|fault| Violation {
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
            self.violations.extend(texts.map(|text| Violation {
                rule: name.to_owned(),
                file: source.file.clone(),
                line: original.line,
                text,
            }));
        }
        for rule in &source.rules {
            match rule.effect {
                Effect::Deny if when::is_about(&rule.when, request) != Some(false) => {
                    self.denial(source, rule, request);
                }
                Effect::Ask if when::is_about(&rule.when, request) != Some(false) => {
                    let commands = rule.part.iter().flat_map(commands);
                    let asked = commands.map(|pattern| limit(source, rule, pattern));
                    self.constraints.ask_before.extend(asked);
                }
                Effect::Deny | Effect::Ask | Effect::Allow => {}
            }
        }
        self.permission(source, request);
    }

    fn denial(&mut self, source: &PolicySource, rule: &Rule, request: &PolicyRequest) {
        let against = |what: &str| violation(source, rule, what);
        let limits = |patterns: &[String]| -> Vec<Limit> {
            let each = patterns.iter().map(|pattern| limit(source, rule, pattern));
            each.collect()
        };
        match &rule.part {
            None => self.violations.push(violation(source, rule, "")),
            Some(Part::Commands(patterns)) => {
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
            Some(Part::Paths(patterns)) => {
                let named = request.paths.iter();
                let denied = named.filter(|path| is_path_of(patterns, path));
                let denied = denied.map(|path| against(&format!("path denied: {path}")));
                self.violations.extend(denied);
                self.constraints.read_only.extend(limits(patterns));
            }
            Some(Part::Network(mode)) => {
                if request
                    .network
                    .is_some_and(|asked| width(asked) >= width(*mode))
                {
                    self.violations.push(against("network denied"));
                }
                self.cap(narrower(*mode), against("the network is limited"));
            }
            Some(Part::Hosts(patterns)) => {
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
        let is_kind = |rule: &&Rule| {
            let kinds = &rule.when.kinds;
            rule.effect == Effect::Allow && (kinds.is_empty() || kinds.contains(&request.kind))
        };
        let rules: Vec<&Rule> = source.rules.iter().filter(is_kind).collect();
        if rules.is_empty() && source.default == Effect::Allow {
            return;
        }
        let allows = |rule: &&&Rule| {
            let is_enough = |mode: NetworkMode| match request.network {
                Some(asked) => width(asked) <= width(mode),
                None => true,
            };
            when::is_about(&rule.when, request) == Some(true)
                && network_of(rule).is_none_or(is_enough)
        };
        let allowing: Vec<&&Rule> = rules.iter().filter(allows).collect();
        let Some(widest) = allowing
            .iter()
            .max_by_key(|rule| network_of(rule).map_or(u8::MAX, width))
        else {
            let line = rules.first().map_or(source.default_line, |rule| rule.line);
            self.violations.push(Violation {
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

    fn cap(&mut self, mode: NetworkMode, set_by: Violation) {
        let old = self.constraints.network_max.as_ref();
        if old.is_none_or(|old| width(old.mode) > width(mode)) {
            self.constraints.network_max = Some(NetworkMax { mode, set_by });
        }
    }
}

fn violation(source: &PolicySource, rule: &Rule, what: &str) -> Violation {
    let why = rule.reason.as_deref().unwrap_or_default();
    let text = match (what, why) {
        ("", "") => format!("denied by {}", rule.name),
        ("", why) => why.to_owned(),
        (what, "") => what.to_owned(),
        (what, why) => format!("{what}: {why}"),
    };
    Violation {
        rule: rule.name.clone(),
        file: source.file.clone(),
        line: rule.line,
        text,
    }
}

fn limit(source: &PolicySource, rule: &Rule, pattern: &str) -> Limit {
    Limit {
        pattern: pattern.to_owned(),
        set_by: violation(source, rule, ""),
    }
}

fn commands(part: &Part) -> impl Iterator<Item = &str> {
    let list: &[String] = match part {
        Part::Commands(patterns) => patterns,
        Part::Paths(_) | Part::Network(_) | Part::Hosts(_) => &[],
    };
    list.iter().map(String::as_str)
}

fn network_of(rule: &Rule) -> Option<NetworkMode> {
    match &rule.part {
        Some(Part::Network(mode)) => Some(*mode),
        Some(Part::Commands(_) | Part::Paths(_) | Part::Hosts(_)) | None => None,
    }
}

/// Returns the entry that a command falls under.
fn command_of<'a>(patterns: &'a [String], command: &str) -> Option<&'a str> {
    let field = Field {
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

const fn width(mode: NetworkMode) -> u8 {
    match mode {
        NetworkMode::None => 0,
        NetworkMode::Filtered => 1,
        NetworkMode::Open => 2,
    }
}

/// Returns what is left when something is denied.
const fn narrower(mode: NetworkMode) -> NetworkMode {
    match mode {
        NetworkMode::Open => NetworkMode::Filtered,
        NetworkMode::Filtered | NetworkMode::None => NetworkMode::None,
    }
}
