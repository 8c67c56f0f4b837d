//! The contract of a search: what is measured, by what, within what bounds, and when a run is kept.
//!
//! Frozen by its approval; another one opens a new segment.

pub mod sound;

use kapi_check::rules::measure::counter::Counter;
use kapi_check::rules::measure::number::Number;
use kapi_core::hidden_checks::HiddenCheckSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Seconds that one run of the benchmark may take, where nobody says otherwise.
const BENCHMARK_SECONDS: u32 = 600;
/// Seconds that the checks may take, where nobody says otherwise.
const CHECKS_SECONDS: u32 = 300;
/// Runs of one segment, where nobody says otherwise.
pub const RUNS_DEFAULT: u32 = 50;
/// Discards and crashes in a row after which a search ends, where nobody says otherwise.
pub const FAILURES_DEFAULT: u32 = 20;

/// A contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// What is to become better, and for whom.
    pub objective: String,
    /// The number that decides.
    pub metric: Metric,
    /// Numbers that are recorded beside it.
    #[serde(default)]
    pub secondary: Vec<SecondaryMetric>,
    /// `benchmark.sh`: prints a line `METRIC name=value` for each metric.
    pub benchmark: String,
    /// `checks.sh`: exits with 0 while everything else is right.
    #[serde(default)]
    pub checks: Option<String>,
    /// Why there are no checks.
    #[serde(default)]
    pub no_checks: Option<String>,
    /// Seconds that one run of the benchmark may take.
    #[serde(default = "benchmark_seconds")]
    pub benchmark_seconds: u32,
    /// Seconds that the checks may take.
    #[serde(default = "checks_seconds")]
    pub checks_seconds: u32,
    /// How often the benchmark is run before each measurement without counting.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub warmups: u32,
    /// The processors that the benchmark runs on, by number; all where this is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processors: Vec<u32>,
    /// Inputs that no agent sees, on which each gain has to show, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HiddenCheckSet>,
    /// Patterns of the files that may be changed.
    pub scope: Vec<String>,
    /// Patterns of files that stay as they are, wherever else the scope reaches.
    #[serde(default)]
    pub off_limits: Vec<String>,
    /// What every change has to respect.
    #[serde(default)]
    pub constraints: Vec<String>,
    /// The most runs of a segment, apart from its baseline.
    #[serde(default = "runs_default")]
    pub runs: u32,
    /// The most discards and crashes in a row; one more ends the search.
    #[serde(default = "failures_default")]
    pub failures: u32,
    /// How many agents propose a change from the same parent at once.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub parallel: u32,
    /// When a run is kept.
    #[serde(default)]
    pub rule: Rule,
}

/// The number that decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Its name in the benchmark's output.
    pub name: String,
    /// Its unit; empty where it has none.
    #[serde(default)]
    pub unit: String,
    /// Which way is better.
    pub direction: Direction,
}

/// A number that is recorded and decides nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecondaryMetric {
    /// Its name in the benchmark's output.
    pub name: String,
    /// Its unit; empty where it has none.
    #[serde(default)]
    pub unit: String,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Less.
    Lower,
    /// More.
    Higher,
}

/// When a run is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What has to be better than what.
    pub keep: Keep,
    /// How often the benchmark is run for one measurement; the median counts.
    #[serde(default = "one")]
    pub samples: u32,
    /// By how many thousandths it has to be better at least, beyond strictly.
    #[serde(default)]
    pub least_permille: u32,
}

/// What has to be better than what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// One measurement than the last kept one.
    Plain,
    /// Two measurements, the second made for that.
    Confirm,
    /// The candidate than its parent, measured in turn, by the median of their differences.
    Interleaved,
    /// The candidate than its parent, measured in turn, by a sequential sign test.
    Paired,
    /// The candidate than its parent, measured in turn, by a signed-rank test that looks several times.
    Ranked,
}

const fn benchmark_seconds() -> u32 {
    BENCHMARK_SECONDS
}

const fn checks_seconds() -> u32 {
    CHECKS_SECONDS
}

const fn runs_default() -> u32 {
    RUNS_DEFAULT
}

const fn failures_default() -> u32 {
    FAILURES_DEFAULT
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_nothing(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_one(number: &u32) -> bool {
    *number == 1
}

const fn one() -> u32 {
    1
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            keep: Keep::Plain,
            samples: 1,
            least_permille: 0,
        }
    }
}

impl Direction {
    /// Returns the word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lower => "lower",
            Self::Higher => "higher",
        }
    }

    /// Returns by how much a number is better than another; negative where it is worse.
    #[must_use]
    pub fn gain(self, from: Number, to: Number) -> f64 {
        match self {
            Self::Lower => from.get() - to.get(),
            Self::Higher => to.get() - from.get(),
        }
    }
}

impl Keep {
    /// Returns the word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Confirm => "confirm",
            Self::Interleaved => "interleaved",
            Self::Paired => "paired",
            Self::Ranked => "ranked",
        }
    }

    /// Tells whether candidate and parent are measured in turn, so that what the machine does meanwhile
    /// hits both.
    #[must_use]
    pub const fn is_in_turn(self) -> bool {
        match self {
            Self::Plain | Self::Confirm => false,
            Self::Interleaved | Self::Paired | Self::Ranked => true,
        }
    }
}

impl Contract {
    /// Returns the metrics that Kapi takes itself.
    #[must_use]
    pub fn counters(&self) -> Vec<Counter> {
        let others = self.secondary.iter().map(|metric| &metric.name);
        let names = std::iter::once(&self.metric.name).chain(others);
        names.filter_map(|name| Counter::of(name)).collect()
    }
}

impl Rule {
    /// Says when a run is kept, in a sentence.
    #[must_use]
    pub fn words(&self) -> String {
        let least = match self.least_permille {
            0 => String::new(),
            permille => format!(", by {}.{} % at least", permille / 10, permille % 10),
        };
        let samples = match self.samples {
            1 => "one sample".to_owned(),
            n => format!("the median of {n} samples"),
        };
        match self.keep {
            Keep::Plain => {
                format!("plain: {samples} is strictly better than the last kept one{least}")
            }
            Keep::Confirm => format!(
                "confirm: {samples} is strictly better than the last kept one{least}, and so is a \
                 second measurement"
            ),
            Keep::Interleaved => format!(
                "interleaved: candidate and parent are measured in turn, {} each, and the median of \
                 their differences is strictly better{least}",
                match self.samples {
                    1 => "once".to_owned(),
                    n => format!("{n} times"),
                }
            ),
            Keep::Ranked => format!(
                "ranked: candidate and parent are measured in turn, in up to 30 pairs, and a signed-rank \
                 test after every sixth finds the candidate better{least} (at most 5 % of changes without \
                 effect are kept, at most 10 % of gains that are as large as the differences scatter are \
                 missed)"
            ),
            Keep::Paired => format!(
                "paired: candidate and parent are measured in turn, and a sequential sign test finds \
                 the candidate better{least} (at most 5 % of changes without effect are kept, at most \
                 10 % of clear gains are missed)"
            ),
        }
    }
}
