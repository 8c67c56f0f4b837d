//! What did not fit on a branch, where, and what became of it.
//!
//! A record of its own in every mode that brings the work of several together; who settles a conflict,
//! and how, is the mode's affair. Knows no git.

use kapi_core::text::short_id;
use serde::{Deserialize, Serialize};

/// Conflicts that are kept; the oldest go first.
pub const CONFLICTS_MAX: usize = 200;
/// The most paths that are named in a sentence.
const PATHS_REPORTED_MAX: usize = 10;

/// One conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowConflict {
    /// What did not fit: a task, or a workflow's work.
    pub what: String,
    /// The paths where it did not.
    pub paths: Vec<String>,
    /// The commit that it did not fit on.
    pub onto: String,
    /// When that was found, in milliseconds since the epoch.
    pub at_ms: i64,
    /// What became of it; `None` while it is open.
    pub settled: Option<Settlement>,
}

/// What became of a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settlement {
    /// By whom or by what: a goal, a person.
    pub by: String,
    /// The branch's commit that holds it now; `None` where nothing of it was taken.
    pub commit: Option<String>,
    /// Why it is settled by that.
    pub why: String,
    /// When, in milliseconds since the epoch.
    pub at_ms: i64,
}

impl WorkflowConflict {
    /// Tells whether it is open, and of this.
    #[must_use]
    pub fn is_open_of(&self, what: &str) -> bool {
        self.settled.is_none() && self.what == what
    }

    /// Says it in a sentence, without a period.
    #[must_use]
    pub fn words(&self) -> String {
        let reported: Vec<&str> = self.paths.iter().map(String::as_str).collect();
        let more = match reported.len().saturating_sub(PATHS_REPORTED_MAX) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let reported = reported
            .get(..PATHS_REPORTED_MAX)
            .unwrap_or(&reported)
            .join(", ");
        let found = format!(
            "{} conflicted with {} in {reported}{more}",
            self.what,
            short_id(&self.onto)
        );
        match &self.settled {
            None => format!("{found}; it is open"),
            Some(Settlement {
                by,
                commit: Some(commit),
                why,
                ..
            }) => format!("{found}; settled as {} by {by}: {why}", short_id(commit)),
            Some(Settlement { by, why, .. }) => format!("{found}; settled by {by}: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Settlement, WorkflowConflict};

    #[test]
    fn a_conflict_is_said_with_what_became_of_it() {
        let mut conflict = WorkflowConflict {
            what: "T-002".to_owned(),
            paths: (0..12).map(|n| format!("src/{n}.rs")).collect(),
            onto: "0123456789abcdef".to_owned(),
            at_ms: 7,
            settled: None,
        };
        let found = "T-002 conflicted with 0123456789ab in src/0.rs, src/1.rs, src/2.rs, src/3.rs, \
                     src/4.rs, src/5.rs, src/6.rs, src/7.rs, src/8.rs, src/9.rs and 2 more";
        assert_eq!(conflict.words(), format!("{found}; it is open"));
        assert!(conflict.is_open_of("T-002") && !conflict.is_open_of("T-001"));
        conflict.settled = Some(Settlement {
            by: "goal 004-two".to_owned(),
            commit: Some("fedcba9876543210".to_owned()),
            why: "it was done again".to_owned(),
            at_ms: 8,
        });
        let settled = "settled as fedcba987654 by goal 004-two: it was done again";
        assert_eq!(conflict.words(), format!("{found}; {settled}"));
        assert!(!conflict.is_open_of("T-002"));
    }
}
