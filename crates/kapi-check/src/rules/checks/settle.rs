//! From what a root asks for and what the probes found to what is run and what is skipped.
//!
//! A missing tool never fails and never stops anybody; it is told with its reason.

use std::collections::BTreeMap;
use std::iter;

use super::{Check, CheckChoice, CheckDisposition, CheckVerb, PlannedCheck, ProjectRoot, mise};

/// What the probes found in one root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RootProbes {
    /// Each need that is not met, and why, as a fragment.
    pub missing: BTreeMap<String, String>,
    /// Whether mise can be used.
    pub mise: Mise,
    /// The names of the root's own tasks of mise.
    pub tasks: Vec<String>,
}

/// Whether commands go through mise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mise {
    /// There is none, or it does not work here; commands are run as they are.
    #[default]
    No,
    /// Commands go through it.
    Yes,
}

/// Returns what is run in a root and what is skipped, in the order of the verbs.
///
/// Tasks of mise that are named like a verb come before every profile.
#[must_use]
pub fn settle(root: &ProjectRoot, found: &RootProbes) -> Vec<PlannedCheck> {
    let planned = CheckVerb::ALL.iter().filter_map(|verb| {
        if found.mise == Mise::Yes && found.tasks.iter().any(|task| task == verb.name()) {
            return Some(task(root, *verb));
        }
        let choice = root
            .choices
            .iter()
            .find(|choice| verb_of(choice) == *verb)?;
        Some(choice_planned(root, choice, found))
    });
    planned.collect()
}

/// Returns what the probes are to look for in a root: each need once.
#[must_use]
pub fn needs(root: &ProjectRoot) -> Vec<String> {
    let checks = root.choices.iter().filter_map(|choice| match choice {
        CheckChoice::Check(check) => Some(check),
        CheckChoice::Declined { .. } => None,
    });
    let all = checks.flat_map(|check| iter::once(check).chain(check.otherwise.as_deref()));
    let mut needs: Vec<String> = Vec::new();
    for need in all.flat_map(|check| &check.needs) {
        if !needs.contains(need) {
            needs.push(need.clone());
        }
    }
    needs
}

/// Tells whether a need is a program to find, and not a command line to try.
#[must_use]
pub fn is_program(need: &str) -> bool {
    !need.contains(' ')
}

const fn verb_of(choice: &CheckChoice) -> CheckVerb {
    match choice {
        CheckChoice::Check(check) => check.verb,
        CheckChoice::Declined { verb, .. } => *verb,
    }
}

fn task(root: &ProjectRoot, verb: CheckVerb) -> PlannedCheck {
    PlannedCheck {
        check: Check {
            root: root.path.clone(),
            verb,
            provider: mise::PROVIDER.to_owned(),
            command: format!("mise run {verb}"),
            timeout_ms: verb.timeout_ms(),
            needs: Vec::new(),
            nothing: None,
            otherwise: None,
        },
        disposition: CheckDisposition::Run,
    }
}

fn choice_planned(root: &ProjectRoot, choice: &CheckChoice, found: &RootProbes) -> PlannedCheck {
    match choice {
        CheckChoice::Check(check) => {
            let lack = |check: &Check| {
                let mut needs = check.needs.iter();
                needs.find_map(|need| found.missing.get(need))
            };
            let missing = lack(check);
            let otherwise = check.otherwise.as_deref();
            let (mut check, missing) = match otherwise.filter(|one| lack(one).is_none()) {
                Some(otherwise) if missing.is_some() => (otherwise.clone(), None),
                Some(_) | None => (check.clone(), missing),
            };
            if found.mise == Mise::Yes {
                check.command = mise::route(&check.command);
            }
            let disposition =
                missing.map_or(CheckDisposition::Run, |reason| CheckDisposition::Skip {
                    reason: reason.clone(),
                });
            PlannedCheck { check, disposition }
        }
        CheckChoice::Declined {
            verb,
            profile,
            reason,
        } => PlannedCheck {
            check: Check {
                root: root.path.clone(),
                verb: *verb,
                provider: profile.clone(),
                command: String::new(),
                timeout_ms: verb.timeout_ms(),
                needs: Vec::new(),
                nothing: None,
                otherwise: None,
            },
            disposition: CheckDisposition::Skip {
                reason: reason.clone(),
            },
        },
    }
}
