//! Conflicts that need no judgement, by declared rules: what the ecosystem's own tool writes is written
//! anew, and of a list of entries both are taken.
//!
//! Pure: tells which rule a path has. No rule takes one side wholesale.

use std::fmt;

use kapi_check::rules::proof::ecosystem::EcosystemTable;
use kapi_core::glob::Glob;

/// Files with an entry for each change, in which both sides' entries are taken.
const CHANGELOGS: &str = "**/{CHANGELOG,CHANGES,HISTORY,NEWS,RELEASES,RELEASE_NOTES,\
    Changelog,Changes,History,changelog,changes,history}{,.md,.rst,.txt,.adoc}";

/// The word for a rule that takes both sides.
const UNION: &str = "union";
/// The word for a rule that runs a command.
const RUN: &str = "run ";

/// How the conflicts of some paths are settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictRule {
    /// The paths: a pattern.
    pub pattern: String,
    /// How.
    pub way: ConflictWay,
}

/// How a conflict is settled without judgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConflictWay {
    /// The lines of both sides are taken, the head's first.
    Union,
    /// Its version in the head is put there, and a command beside the file brings it into step.
    Regenerate {
        /// The shell line.
        run: String,
    },
}

/// A rule that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read the rule {text:?}: write `<pattern>: union` or `<pattern>: run <command>`")]
pub struct ConflictRuleError {
    /// The text.
    pub text: String,
}

impl ConflictRule {
    /// Reads `<pattern>: union` or `<pattern>: run <command>`.
    pub fn parse(text: &str) -> Result<Self, ConflictRuleError> {
        let error = || ConflictRuleError {
            text: text.to_owned(),
        };
        let (pattern, way) = text.split_once(": ").ok_or_else(error)?;
        let (pattern, way) = (pattern.trim(), way.trim());
        let way = match way.strip_prefix(RUN).map(str::trim) {
            Some(run) if !run.is_empty() => ConflictWay::Regenerate {
                run: run.to_owned(),
            },
            None if way == UNION => ConflictWay::Union,
            Some(_) | None => return Err(error()),
        };
        if pattern.is_empty() {
            return Err(error());
        }
        Ok(Self {
            pattern: pattern.to_owned(),
            way,
        })
    }

    /// Tells whether it is about a path.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        Glob::new(&self.pattern).matches(path)
    }
}

impl fmt::Display for ConflictRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.way {
            ConflictWay::Union => write!(f, "{}: {UNION}", self.pattern),
            ConflictWay::Regenerate { run } => write!(f, "{}: {RUN}{run}", self.pattern),
        }
    }
}

/// Returns the rules that hold where a project declares none: lock files are written by their tools, and
/// changelogs take both entries.
#[must_use]
pub fn defaults(table: &EcosystemTable) -> Vec<ConflictRule> {
    let prepares = table.all.iter().flat_map(|one| &one.prepare);
    let locks = prepares.filter_map(|prepare| {
        let run = prepare.relock.clone()?;
        Some(ConflictRule {
            pattern: format!("**/{}", prepare.lock),
            way: ConflictWay::Regenerate { run },
        })
    });
    let changelogs = ConflictRule {
        pattern: CHANGELOGS.to_owned(),
        way: ConflictWay::Union,
    };
    locks.chain([changelogs]).collect()
}

/// Returns the rule of a path: the first declared one, otherwise the first of the defaults.
#[must_use]
pub fn rule_for<'a>(
    path: &str,
    declared: &'a [ConflictRule],
    defaults: &'a [ConflictRule],
) -> Option<&'a ConflictRule> {
    let mut rules = declared.iter().chain(defaults);
    rules.find(|rule| rule.covers(path))
}

#[cfg(test)]
mod tests;
