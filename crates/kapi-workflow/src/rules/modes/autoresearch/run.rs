//! One experiment as it was decided, and an idea for one.

use kapi_check::rules::measure::Reading;
use kapi_check::rules::measure::number::Number;
use serde::{Deserialize, Serialize};

use crate::rules::changed::LandedPaths;
use crate::rules::modes::autoresearch::contract::Keep;

/// What became of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It is on the branch.
    Keep,
    /// It was no better, or may not be measured.
    Discard,
    /// There is no measurement that could be believed.
    Crash,
    /// It broke what else must hold.
    ChecksFailed,
}

impl RunStatus {
    /// Every status there is.
    pub const ALL: [Self; 4] = [Self::Keep, Self::Discard, Self::Crash, Self::ChecksFailed];

    /// Returns the word, as ledgers have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Discard => "discard",
            Self::Crash => "crash",
            Self::ChecksFailed => "checks_failed",
        }
    }
}

/// One decided run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Its number, from 1, over all segments.
    pub number: u32,
    /// The segment, from 0.
    pub segment: u32,
    /// Whether it is what its segment is compared with.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_baseline: bool,
    /// The commit: of the branch where it was kept, else the candidate.
    pub commit: String,
    /// Its tree; empty in what was imported.
    pub tree: String,
    /// What became of it.
    pub status: RunStatus,
    /// The primary metric: the median of its samples; none of what crashed.
    pub metric: Option<Number>,
    /// The primary metric of every sample.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Number>,
    /// The primary metric of the commit that it was measured against in turn: the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Number>,
    /// How many lines of one sample said the primary metric, at most.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub lines: u32,
    /// The rule that decided; none where it was not measured, or decided elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Keep>,
    /// The medians of everything else that was printed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Reading>,
    /// What was changed, in a line.
    pub description: String,
    /// Why it should have helped: the agent's words from before it was measured.
    pub hypothesis: String,
    /// Why it was decided so, and by which rule.
    pub reason: String,
    /// The paths that it changed.
    #[serde(default)]
    pub changed: LandedPaths,
    /// How long the benchmark took altogether by Kapi's clock, in milliseconds.
    #[serde(default)]
    pub benchmark_ms: u64,
    /// When it was decided, in milliseconds since the epoch.
    pub at_ms: i64,
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_one(number: &u32) -> bool {
    *number == 1
}

/// Something that may be tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Idea {
    /// What.
    pub text: String,
    /// The run that tried it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<u32>,
}
