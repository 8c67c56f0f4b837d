//! The checks of a project: which there are, which are run, how they came out.
//!
//! What kinds of projects are known is data, in `profiles.toml`. Selection is pure: it is given what
//! lies in the directories, and what the probes found. Knows no disk, no process and no sandbox.

pub mod directory;
pub mod mise;
pub mod profile;
pub mod program;
pub mod report;
pub mod select;
pub mod settle;
pub mod stray;
pub mod words;

mod makefile;

#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckVerb {
    /// Types fit.
    Typecheck,
    /// Nothing suspicious is written.
    Lint,
    /// The text has its usual form.
    Format,
    /// It can be translated.
    Compile,
    /// The tests pass.
    Test,
    /// What is delivered can be made.
    Build,
}

impl CheckVerb {
    /// Every verb, in the order in which they are told.
    pub const ALL: [Self; 6] = [
        Self::Typecheck,
        Self::Lint,
        Self::Format,
        Self::Compile,
        Self::Test,
        Self::Build,
    ];

    /// Returns the verb's name, which is also the name of a task that provides it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Typecheck => "typecheck",
            Self::Lint => "lint",
            Self::Format => "format",
            Self::Compile => "compile",
            Self::Test => "test",
            Self::Build => "build",
        }
    }

    /// Returns the verb of a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }

    /// Returns the longest that a check of it may take.
    #[must_use]
    pub const fn timeout_ms(self) -> u64 {
        match self {
            Self::Typecheck => 30_000,
            Self::Lint => 20_000,
            Self::Format => 15_000,
            Self::Compile => 60_000,
            Self::Test => 120_000,
            Self::Build => 180_000,
        }
    }
}

impl fmt::Display for CheckVerb {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// One command that tells whether one root is well in one respect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The root, relative to the top of the project; empty for the top itself.
    pub root: String,
    /// What it is about.
    pub verb: CheckVerb,
    /// Who provides it: a profile's id, or [`mise::PROVIDER`].
    pub provider: String,
    /// The shell line, run in the root.
    pub command: String,
    /// The longest it may take.
    pub timeout_ms: u64,
    /// What must be there first: a program's name, or a command line that must succeed.
    pub needs: Vec<String>,
    /// The exit code that means that there was nothing to check.
    pub nothing: Option<profile::Nothing>,
    /// What is run in its place where something that it needs is missing.
    pub otherwise: Option<Box<Self>>,
}

/// A check of a root, or why it has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckChoice {
    /// The check to run.
    Check(Check),
    /// A profile of the root knows the verb, and the project does not ask for it.
    Declined {
        /// The verb.
        verb: CheckVerb,
        /// The profile's id.
        profile: String,
        /// Why, as a fragment.
        reason: String,
    },
}

/// A directory that is a project of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectRoot {
    /// Relative to the top of the project; empty for the top itself.
    pub path: String,
    /// The profiles that are recognised in it, in their order.
    pub profiles: Vec<String>,
    /// At most one for each verb, in the order of the verbs.
    pub choices: Vec<CheckChoice>,
    /// Directories below it that come first on `PATH`.
    pub first_on_path: Vec<String>,
    /// Directories below the home with what was downloaded before.
    pub caches: Vec<String>,
}

/// A check with whether it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedCheck {
    /// The check.
    pub check: Check,
    /// What becomes of it.
    pub disposition: CheckDisposition,
}

/// What becomes of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckDisposition {
    /// It is run.
    Run,
    /// It is not run, and stops nobody.
    Skip {
        /// Why, as a fragment.
        reason: String,
    },
}
