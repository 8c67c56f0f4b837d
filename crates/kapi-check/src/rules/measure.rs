//! Measuring a commit: what is run, how often, and what it showed.
//!
//! A metric is what Kapi parsed of its own run; nothing that an agent says is one. What a measurement
//! leads to is the mode's affair.

pub mod counter;
pub mod metric_line;
pub mod number;
pub mod ranks;
pub mod results;
pub mod statistics;

use kapi_core::hidden_checks::HiddenCheckSet;
use kapi_core::isolation::SandboxLevel;
use serde::{Deserialize, Serialize};

use crate::rules::measure::counter::Counter;
use crate::rules::measure::number::Number;

/// A script that a person approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Its file name: `benchmark.sh`.
    pub name: &'static str,
    /// Its text.
    pub text: String,
    /// The longest that one run may take, in milliseconds.
    pub timeout_ms: u64,
}

/// One measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measurement {
    /// The commit.
    pub commit: String,
    /// The commit that it is measured against in turn; `None` where it is measured alone.
    pub against: Option<String>,
    /// The commit from which sealed files are taken.
    pub base: String,
    /// What prints the metrics.
    pub benchmark: Script,
    /// What must hold besides; run once the benchmark has ended well every time.
    pub checks: Option<Script>,
    /// How often the benchmark is run, each time in a sandbox of its own.
    pub samples: u32,
    /// How often it is run before, on each commit, without counting.
    pub warmups: u32,
    /// The processors that the benchmark runs on; all where this is empty.
    pub processors: Vec<u32>,
    /// Metrics that Kapi takes itself.
    pub counters: Vec<Counter>,
    /// Inputs that no agent sees, which are laid over the checkout.
    pub held_back: Option<HiddenCheckSet>,
    /// Files that are as at the base and that nothing may change.
    pub sealed: Vec<String>,
    /// The isolation.
    pub sandbox: SandboxLevel,
}

/// What a measurement showed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasurementReport {
    /// The commit.
    pub commit: String,
    /// Its tree.
    pub tree: String,
    /// Whether it was measured on the inputs that no agent sees.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held_back: bool,
    /// Every run of the benchmark, in order; none follows one that did not end well.
    pub samples: Vec<Sample>,
    /// The runs on the other commit, each before the one of the same place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<Sample>,
    /// How the checks ended; `None` where there are none or they were not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<ScriptRun>,
    /// Sealed files that were changed while something ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tampered: Vec<String>,
}

/// One run of the benchmark.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// How it ended.
    pub run: ScriptRun,
    /// What it printed, in the order of first mention.
    pub readings: Vec<Reading>,
}

/// How a script ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptRun {
    /// The exit code; `None` where it was killed.
    pub exit_code: Option<i32>,
    /// Whether it was killed at its time limit.
    pub timed_out: bool,
    /// How long it took by Kapi's clock, in milliseconds.
    pub duration_ms: u64,
    /// The end of what it printed, capped.
    pub output_tail: String,
}

/// A metric and its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// The metric.
    pub name: String,
    /// Its value.
    pub value: Number,
    /// How many lines said it; the last one holds.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub lines: u32,
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_one(number: &u32) -> bool {
    *number == 1
}

impl Reading {
    /// Returns a metric that was said once.
    #[must_use]
    pub const fn of(name: String, value: Number) -> Self {
        Self {
            name,
            value,
            lines: 1,
        }
    }
}

impl ScriptRun {
    /// Tells whether it ended well.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.exit_code == Some(0) && !self.timed_out
    }

    /// Says how it ended, after the script's name.
    #[must_use]
    pub fn words(&self) -> String {
        match (self.timed_out, self.exit_code) {
            (true, _) => format!("was ended at its time limit after {} ms", self.duration_ms),
            (false, Some(code)) => format!("exited with {code}"),
            (false, None) => "was killed".to_owned(),
        }
    }
}

impl Sample {
    /// Returns how many lines said a metric.
    #[must_use]
    pub fn lines(&self, name: &str) -> u32 {
        let found = self.readings.iter().find(|reading| reading.name == name);
        found.map_or(0, |reading| reading.lines)
    }

    /// Returns the value of a metric.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<Number> {
        let found = self.readings.iter().find(|reading| reading.name == name);
        found.map(|reading| reading.value)
    }
}

impl MeasurementReport {
    /// Returns the median of a metric over the samples; `None` where one of them has none.
    #[must_use]
    pub fn median(&self, name: &str) -> Option<Number> {
        statistics::median(&values(&self.samples, name)?)
    }

    /// Returns the names of everything that was printed, in the order of first mention.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for reading in self.samples.iter().flat_map(|sample| &sample.readings) {
            if !names.contains(&reading.name.as_str()) {
                names.push(&reading.name);
            }
        }
        names
    }
}

/// Returns a metric of every sample; `None` where one of them has none, or there is no sample.
#[must_use]
pub fn values(samples: &[Sample], name: &str) -> Option<Vec<Number>> {
    let found: Option<Vec<Number>> = samples.iter().map(|sample| sample.value(name)).collect();
    found.filter(|values| !values.is_empty())
}
