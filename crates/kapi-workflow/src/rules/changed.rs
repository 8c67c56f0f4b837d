//! The paths that a landing changed, as Kapi saw them.
//!
//! Capped; whoever needs the rest reads the commit.

use kapi_core::glob::covers;
use serde::{Deserialize, Serialize};

/// The most paths that are kept of one landing.
pub const PATHS_MAX: usize = 500;

/// The paths that a landing changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LandedPaths {
    /// The paths, relative to the top.
    pub paths: Vec<String>,
    /// How many more there were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_more: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl LandedPaths {
    /// Keeps as many paths as are kept.
    #[must_use]
    pub fn of(mut paths: Vec<String>) -> Self {
        let n_more = paths.len().saturating_sub(PATHS_MAX);
        paths.truncate(PATHS_MAX);
        Self {
            paths,
            n_more: u64::try_from(n_more).unwrap_or(u64::MAX),
        }
    }

    /// Returns the paths that no pattern names; none where there are no patterns.
    #[must_use]
    pub fn outside(&self, patterns: &[String]) -> Vec<&str> {
        if patterns.is_empty() {
            return Vec::new();
        }
        let is_named = |path: &str| patterns.iter().any(|glob| covers(glob, path));
        let paths = self.paths.iter().map(String::as_str);
        paths.filter(|path| !is_named(path)).collect()
    }

    /// Tells whether two landings may have changed one path.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.n_more > 0
            || other.n_more > 0
            || self.paths.iter().any(|path| other.paths.contains(path))
    }
}
