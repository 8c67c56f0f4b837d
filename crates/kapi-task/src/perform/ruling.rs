//! The policy's word at the moment of launch: whether it may be, and what holds inside.
//!
//! Read anew for each attempt, with what is only known now. What was let in before may be denied
//! here; nothing that was denied before is let through.

use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::pattern;
use kapi_goal::rules::contract::Contract;
use kapi_run::gate::support;
use kapi_run::grant::Grant;

use super::Performer;
use super::ending::denied;
use super::setup::Setup;
use crate::record::admission::TaskAdmission;
use crate::record::policy_file;
use crate::record::policy_file::PolicyPaths;
use crate::rules::policy;
use crate::rules::policy::{Policy, PolicyDecision, PolicyLimit};
use crate::rules::task::{End, KernelTask};

/// What the policy leaves of an attempt.
#[derive(Debug)]
pub(super) struct Ruling {
    /// How much network there is.
    pub(super) network: NetworkMode,
    /// Commands that are refused.
    pub(super) forbidden: Vec<String>,
    /// Paths that stay as they are.
    pub(super) kept: Vec<String>,
    /// What the run may use.
    pub(super) grant: Grant,
}

/// Asks the policy about an attempt whose prompt is known.
pub(super) fn ask(
    performer: &Performer<'_>,
    task: &KernelTask,
    setup: &Setup,
    prompt: &str,
) -> Result<Ruling, End> {
    let root = performer.project.layout.root();
    let project = root.display().to_string();
    let policy = policy(performer);
    let mut asked = at_admission(performer, &policy, |admission| {
        admission.policy_request(&project, &task.request, &setup.profile)
    });
    prompt.clone_into(&mut asked.prompt);
    asked.backend = Some(setup.backend.clone());
    let first = allowed(policy::evaluate(&policy, &asked))?;
    let network = narrowed(performer, &first)?;
    // Asked once more: what is denied may be this very network.
    asked.network = Some(network);
    let decision = allowed(policy::evaluate(&policy, &asked))?;
    let limits = &decision.constraints;
    let commands = limits.forbidden_commands.iter().chain(&limits.ask_before);
    // Nobody is there to be asked, so what would be asked is refused.
    let forbidden: Vec<String> = commands.map(|limit| limit.pattern.clone()).collect();
    if let Err(failure) = support::check(&setup.kind, &forbidden) {
        let mut rules = limits.forbidden_commands.iter().chain(&limits.ask_before);
        let rule = rules.next().map(|limit| limit.set_by.to_string());
        return Err(denied(format!(
            "{}: nothing can {}; {}",
            policy::DENIED,
            failure.message,
            rule.unwrap_or_default()
        )));
    }
    Ok(Ruling {
        network,
        forbidden,
        kept: patterns(&limits.read_only),
        grant: without(&performer.grants.grant, &limits.forbidden_hosts),
    })
}

/// Asks the policy about a goal that is about to be driven, and returns what it leaves of what its
/// runs may use.
pub fn of_goal(
    performer: &Performer<'_>,
    task: &KernelTask,
    contract: &Contract,
    grant: &Grant,
) -> Result<Grant, End> {
    let project = performer.project.layout.root().display().to_string();
    let policy = policy(performer);
    let decision = at_admission(performer, &policy, |admission| {
        admission.ask_policy_of_goal(&project, &task.request, contract)
    });
    let decision = allowed(decision)?;
    Ok(without(grant, &decision.constraints.forbidden_hosts))
}

/// Reads the policy as it is now.
fn policy(performer: &Performer<'_>) -> Policy {
    policy_file::load(PolicyPaths {
        project: performer.project.layout.root(),
        person: &performer.setting.person,
    })
}

fn at_admission<T>(
    performer: &Performer<'_>,
    policy: &Policy,
    then: impl FnOnce(&TaskAdmission<'_>) -> T,
) -> T {
    let local_times = policy_file::local_times(policy, performer.project.clock.now_ms());
    then(&TaskAdmission {
        policy,
        local_times: &local_times,
        terms: &performer.terms,
        is_unattended: performer.setting.is_unattended,
        base: &|_| Ok(None),
    })
}

fn allowed(decision: PolicyDecision) -> Result<PolicyDecision, End> {
    if decision.allowed {
        return Ok(decision);
    }
    let violations = decision.violations.iter().map(ToString::to_string);
    let violations: Vec<String> = violations.collect();
    Err(denied(format!(
        "{}: {}",
        policy::DENIED,
        violations.join("; ")
    )))
}

/// Returns the network that the settings give and the policy leaves.
fn narrowed(performer: &Performer<'_>, decision: &PolicyDecision) -> Result<NetworkMode, End> {
    let set = match performer.setting.level {
        // Without isolation the network is the host's.
        SandboxLevel::None => NetworkMode::Open,
        SandboxLevel::Native | SandboxLevel::Podman => performer.setting.network,
    };
    let Some(max) = &decision.constraints.network_max else {
        return Ok(set);
    };
    let network = set.min(max.mode);
    if network != set && performer.setting.level == SandboxLevel::None {
        return Err(denied(format!(
            "{}: without isolation, the network cannot be limited; {}",
            policy::DENIED,
            max.set_by
        )));
    }
    Ok(network)
}

fn patterns(limits: &[PolicyLimit]) -> Vec<String> {
    limits.iter().map(|limit| limit.pattern.clone()).collect()
}

/// Returns a grant without the hosts that are forbidden. A rule that could reach one goes whole.
fn without(grant: &Grant, forbidden: &[PolicyLimit]) -> Grant {
    let mut grant = grant.clone();
    grant.allow.retain(|rule| {
        let host = host_of(rule.text());
        !forbidden.iter().any(|limit| meets(&limit.pattern, &host))
    });
    grant
}

/// Returns the host of a rule: without method, path and port.
fn host_of(text: &str) -> String {
    let last = text.split_whitespace().last().unwrap_or_default();
    let host = last.split('/').next().unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    name.to_lowercase()
}

/// Tells whether a forbidden pattern and a rule's host have a name in common.
fn meets(pattern: &str, host: &str) -> bool {
    let pattern = pattern.to_lowercase();
    let below = |pattern: &str, host: &str| {
        let bare = pattern.strip_prefix("*.");
        pattern::is_name(pattern, host) || bare.is_some_and(|bare| bare == host)
    };
    below(&pattern, host) || below(host, &pattern)
}

#[cfg(test)]
mod tests {
    use super::{host_of, meets};

    #[test]
    fn a_rule_that_could_reach_a_forbidden_host_goes() {
        for (text, host) in [
            ("github.com", "github.com"),
            ("GET Example.com:443/packages", "example.com"),
            ("*.crates.io", "*.crates.io"),
        ] {
            assert_eq!(host_of(text), host);
        }
        for (pattern, host, expected) in [
            ("github.com", "github.com", true),
            ("*.evil.org", "a.evil.org", true),
            ("*.evil.org", "evil.org", true),
            ("a.evil.org", "*.evil.org", true),
            ("evil.org", "good.org", false),
            ("a.evil.org", "b.evil.org", false),
        ] {
            assert_eq!(meets(pattern, host), expected, "{pattern} {host}");
        }
    }
}
