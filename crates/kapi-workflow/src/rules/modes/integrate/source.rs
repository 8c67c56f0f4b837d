//! A source: finished work with its proof, and what it was meant to be.
//!
//! Data alone; how it is read from a workflow or a goal stands in [`super::offer`].

use kapi_core::id::{GoalId, Slug};
use kapi_core::mode::Mode;
use serde::{Deserialize, Serialize};

/// The most sources of one integration.
pub const SOURCES_MAX: usize = 32;

/// One source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Which workflow or goal.
    pub id: GoalId,
    /// The workflow's mode; `None` for a goal.
    pub mode: Option<Mode>,
    /// What it is for, in a line.
    pub title: String,
    /// The branch that holds it.
    pub branch: String,
    /// The commit that it was begun on.
    pub base: String,
    /// The proved commit.
    pub commit: String,
    /// What it was meant to do: plan tasks and criteria, the contract, kept experiments.
    pub intents: Vec<SourceIntent>,
    /// What it left out on purpose.
    pub excluded: Vec<String>,
    /// The commands that proved it.
    pub checks: Vec<SourceCheck>,
    /// What its completion rests on, a line each.
    pub evidence: Vec<String>,
}

/// One thing that a source was meant to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceIntent {
    /// Its name within the source: a task, a criterion, a run.
    pub name: String,
    /// What.
    pub text: String,
}

/// One command that proved a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceCheck {
    /// The shell command.
    pub command: String,
    /// Whether it fails where the source began, so that only its work makes it pass; where nobody
    /// looked, that is taken to be so.
    pub failed_before: bool,
}

impl Source {
    /// Returns a commit as a source that says nothing of itself.
    pub(crate) fn of_commit(commit: &str) -> Self {
        Self {
            id: GoalId::new(0, Slug::from_sentence("commit")),
            mode: None,
            title: "A commit".to_owned(),
            branch: "commit".to_owned(),
            base: commit.to_owned(),
            commit: commit.to_owned(),
            intents: Vec::new(),
            excluded: Vec::new(),
            checks: Vec::new(),
            evidence: Vec::new(),
        }
    }

    /// Returns the check of a command, where it is one of this source's.
    #[must_use]
    pub fn check(&self, command: &str) -> Option<&SourceCheck> {
        self.checks.iter().find(|check| check.command == command)
    }
}
