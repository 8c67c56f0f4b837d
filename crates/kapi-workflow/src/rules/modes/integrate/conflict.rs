//! A source that does not fit: what is proposed for it, what tools wrote anew, and how it was settled.

use kapi_core::id::GoalId;
use serde::{Deserialize, Serialize};

use crate::rules::effect::combine::{ConflictedPath, RegenerationRun};
use crate::rules::identity::ReviewerIdentity;
use crate::rules::modes::integrate::answer::Resolution;

/// A source that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenConflict {
    /// The source.
    pub source: GoalId,
    /// The commit that it does not fit on.
    pub before: String,
    /// The commit with the conflict in its files, where the branch is now.
    pub at: String,
    /// What does not fit.
    pub paths: Vec<ConflictedPath>,
    /// The resolution that is proposed.
    pub proposed: Option<ProposedResolution>,
    /// What tools wrote anew of it, once they ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regenerated: Option<Regeneration>,
    /// Whether the worktree holds what an agent left and nobody wanted.
    pub is_worktree_left: bool,
}

/// Files that tools wrote anew, or tried to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Regeneration {
    /// Whose conflict it was.
    pub source: GoalId,
    /// The commit with them; nothing where a tool failed.
    pub commit: Option<String>,
    /// How each tool ended, up to the first that failed.
    pub runs: Vec<RegenerationRun>,
}

/// A resolution that is proposed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposedResolution {
    /// By whom.
    pub by: ReviewerIdentity,
    /// What they say of it.
    pub said: Resolution,
    /// The commit with the files.
    pub commit: String,
}

/// A conflict that was resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettledConflict {
    /// The source.
    pub source: GoalId,
    /// The commit that it did not fit on.
    pub before: String,
    /// What did not fit.
    pub paths: Vec<ConflictedPath>,
    /// By whom.
    pub by: ReviewerIdentity,
    /// What they say of it.
    pub said: Resolution,
    /// The branch's commit with it.
    pub after: String,
}

impl OpenConflict {
    /// Tells whether somebody has to resolve it: a path has no rule, or a tool failed.
    #[must_use]
    pub fn needs_resolver(&self) -> bool {
        let has_failed = |it: &Regeneration| it.commit.is_none();
        self.paths.iter().any(|it| it.by_rule.is_none())
            || self.regenerated.as_ref().is_some_and(has_failed)
    }

    /// Tells whether tools are still to write files anew.
    #[must_use]
    pub fn awaits_tools(&self) -> bool {
        self.regenerated.is_none() && self.paths.iter().any(|it| it.regenerate.is_some())
    }

    /// Returns the commit with everything that is resolved so far.
    #[must_use]
    pub fn resolution(&self) -> &str {
        let by_tools = self.regenerated.as_ref().and_then(|it| it.commit.as_ref());
        let proposed = self.proposed.as_ref().map(|it| &it.commit);
        by_tools.or(proposed).unwrap_or(&self.at)
    }

    /// Says how rules settle it.
    #[must_use]
    pub fn rules_text(&self) -> String {
        let rules = self.paths.iter().filter_map(|it| {
            let rule = it.by_rule.as_ref()?;
            Some(format!("{}: {rule}", it.path))
        });
        rules.collect::<Vec<_>>().join("; ")
    }
}
