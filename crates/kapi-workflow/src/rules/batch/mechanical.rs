//! Conflicts that need no judgement, by declared rules: what the ecosystem's own tool writes is written
//! anew, and of a list of entries both are taken.
//!
//! Pure: tells which rule a path has. Only a person's own rule takes one side wholesale.

use std::fmt;

use kapi_check::rules::proof::ecosystem::EcosystemTable;
use kapi_core::glob::Glob;
use serde::{Deserialize, Serialize};

/// Files with an entry for each change, in which both sides' entries are taken.
const CHANGELOGS: &str = "**/{CHANGELOG,CHANGES,HISTORY,NEWS,RELEASES,RELEASE_NOTES,\
    Changelog,Changes,History,changelog,changes,history}{,.md,.rst,.txt,.adoc}";

/// The word for a rule that takes both sides.
const UNION: &str = "union";
/// The word for a rule that keeps what the branch has.
const OURS: &str = "ours";
/// The word for a rule that takes what the source has.
const THEIRS: &str = "theirs";
/// What begins a rule that runs a command.
const REGENERATE: &str = "regenerate:";

/// How the conflicts of some paths are settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConflictRule {
    /// The paths: a pattern.
    pub pattern: String,
    /// How.
    pub way: ConflictWay,
}

/// How a conflict is settled without judgement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConflictWay {
    /// The lines of both sides are taken, the branch's first.
    Union,
    /// The branch's version stays; only where a person says so.
    Ours,
    /// The source's version is taken; only where a person says so.
    Theirs,
    /// The branch's version is put there, and a command beside the file brings it into step.
    Regenerate {
        /// The shell line.
        run: String,
    },
}

/// A rule that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} settles no conflict")]
pub struct ConflictRuleError {
    /// The text.
    pub text: String,
}

impl ConflictRuleError {
    /// What may be written instead.
    pub const REMEDY: &str = "write `union`, `ours`, `theirs` or `regenerate: <command>`";
}

impl ConflictWay {
    /// Reads `union`, `ours`, `theirs` or `regenerate: <command>`.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn parse(text: &str) -> Result<Self, ConflictRuleError> {
        let word = text.trim();
        match word.strip_prefix(REGENERATE).map(str::trim) {
            Some(run) if !run.is_empty() => Ok(Self::Regenerate {
                run: run.to_owned(),
            }),
            None if word == UNION => Ok(Self::Union),
            None if word == OURS => Ok(Self::Ours),
            None if word == THEIRS => Ok(Self::Theirs),
            Some(_) | None => Err(ConflictRuleError {
                text: text.to_owned(),
            }),
        }
    }

    /// Says what becomes of a file.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Union => "both sides' entries are kept".to_owned(),
            Self::Ours => "the branch's version is kept".to_owned(),
            Self::Theirs => "the source's version is taken".to_owned(),
            Self::Regenerate { run } => {
                format!("the branch's version is taken and `{run}` regenerates it")
            }
        }
    }
}

impl ConflictRule {
    /// Reads `<pattern>: <way>`.
    ///
    /// # Errors
    /// When the way is none, or there is no pattern.
    pub fn parse(text: &str) -> Result<Self, ConflictRuleError> {
        let error = || ConflictRuleError {
            text: text.to_owned(),
        };
        let (pattern, way) = text.split_once(": ").ok_or_else(error)?;
        let pattern = pattern.trim();
        if pattern.is_empty() {
            return Err(error());
        }
        Ok(Self {
            pattern: pattern.to_owned(),
            way: ConflictWay::parse(way)?,
        })
    }

    /// Tells whether it is about a path.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        Glob::new(&self.pattern).matches(path)
    }
}

impl fmt::Display for ConflictWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Union => f.write_str(UNION),
            Self::Ours => f.write_str(OURS),
            Self::Theirs => f.write_str(THEIRS),
            Self::Regenerate { run } => write!(f, "{REGENERATE} {run}"),
        }
    }
}

impl fmt::Display for ConflictRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pattern, self.way)
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
