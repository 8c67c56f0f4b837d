//! The branch that a workflow works for, and the types that its name may begin with.
//!
//! A record only: who makes and moves it is the world's affair.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The workflow's branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// Its name, `feat/ralph-fix-login`.
    pub name: String,
    /// Its worktree.
    pub worktree: String,
    /// The commit it points at.
    pub head: String,
    /// That commit's tree; `None` while it is the base.
    pub tree: Option<String>,
}

/// The branch of one part of what is on a workflow's branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartBranch {
    /// Its name.
    pub branch: String,
    /// Its commit.
    pub commit: String,
}

/// A branch's type (Conventional Commits).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BranchType {
    /// A feature.
    Feat,
    /// A repair.
    Fix,
    /// Speed.
    Perf,
    /// The same behaviour in another shape.
    Refactor,
    /// Tests.
    Test,
    /// Documents.
    Docs,
    /// Housekeeping.
    Chore,
    /// The build.
    Build,
    /// Continuous integration.
    Ci,
}

impl BranchType {
    /// Every type there is.
    pub const ALL: [Self; 9] = [
        Self::Feat,
        Self::Fix,
        Self::Perf,
        Self::Refactor,
        Self::Test,
        Self::Docs,
        Self::Chore,
        Self::Build,
        Self::Ci,
    ];

    /// Returns the prefix.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Feat => "feat",
            Self::Fix => "fix",
            Self::Perf => "perf",
            Self::Refactor => "refactor",
            Self::Test => "test",
            Self::Docs => "docs",
            Self::Chore => "chore",
            Self::Build => "build",
            Self::Ci => "ci",
        }
    }
}
