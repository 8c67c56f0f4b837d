//! What pi-autoresearch recorded: its ledger, line by line, read as runs of segments of their own.
//!
//! Strict where its readers guess: an unknown status or a line that is no object is refused with its
//! number, because a run that is taken for kept is one that others are compared with. Parses no JSON.

use kapi_check::rules::measure::Reading;
use kapi_check::rules::measure::metric_line::is_name;
use kapi_check::rules::measure::number::Number;
use kapi_core::value::KernelValue;
use serde::{Deserialize, Serialize};

use crate::rules::changed::LandedPaths;
use crate::rules::modes::autoresearch::contract::{Direction, Metric};
use crate::rules::modes::autoresearch::run::{Run, RunStatus};

/// The most runs that are taken over.
pub const RUNS_MAX: usize = 5_000;

/// What was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// What the search was called.
    pub name: Option<String>,
    /// What was measured last.
    pub metric: Option<Metric>,
    /// The runs, with their segments counted anew.
    pub runs: Vec<Run>,
    /// The backlog.
    pub ideas: Vec<String>,
    /// The segment of the next run.
    pub segment: u32,
}

/// A line that is not what a ledger holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {rule}")]
pub struct HistoryError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub rule: String,
}

impl History {
    /// Takes the next line of a ledger.
    ///
    /// # Errors
    /// When it is not what a ledger holds.
    pub fn add(&mut self, line: usize, value: &KernelValue) -> Result<(), HistoryError> {
        let refused = |rule: String| HistoryError { line, rule };
        let KernelValue::Map(_) = value else {
            return Err(refused("it is not an object".to_owned()));
        };
        match text(value, "type").as_deref() {
            Some("config") => self.config(value),
            Some("hook") => {}
            Some(other) => return Err(refused(format!("its type {other:?} is not known"))),
            None => {
                let run = self.run(value).map_err(refused)?;
                if self.runs.len() >= RUNS_MAX {
                    return Err(refused(format!("there are more than {RUNS_MAX} runs")));
                }
                self.runs.push(run);
            }
        }
        Ok(())
    }

    /// A header after results begins another segment.
    fn config(&mut self, value: &KernelValue) {
        let name = text(value, "name");
        self.name = self.name.take().or(name);
        let higher = text(value, "bestDirection").as_deref() == Some("higher");
        self.metric = Some(Metric {
            name: text(value, "metricName").unwrap_or_default(),
            unit: text(value, "metricUnit").unwrap_or_default(),
            direction: if higher {
                Direction::Higher
            } else {
                Direction::Lower
            },
        });
        if let Some(last) = self.runs.last() {
            self.segment = last.segment.saturating_add(1);
        }
    }

    fn run(&self, value: &KernelValue) -> Result<Run, String> {
        let number = number(value, "run").ok_or("it has neither a type nor the number of a run")?;
        let status = text(value, "status").unwrap_or_default();
        let status = RunStatus::ALL
            .into_iter()
            .find(|known| known.as_str() == status)
            .ok_or_else(|| format!("run {number} has the unknown status {status:?}"))?;
        let asi = |name: &str| text(value, &format!("asi.{name}")).unwrap_or_default();
        // A crash has no metric, whatever stands for it.
        let metric = number_of(value, "metric").filter(|_| status != RunStatus::Crash);
        let segment = self.segment;
        let is_first = !self.runs.iter().any(|run| run.segment == segment);
        Ok(Run {
            number: u32::try_from(self.runs.len())
                .unwrap_or(u32::MAX)
                .saturating_add(1),
            segment,
            is_baseline: is_first,
            commit: text(value, "commit").unwrap_or_default(),
            tree: String::new(),
            status,
            metric,
            samples: metric.into_iter().collect(),
            parent: None,
            lines: 1,
            rule: None,
            metrics: secondary(value),
            description: text(value, "description").unwrap_or_default(),
            hypothesis: asi("hypothesis"),
            reason: asi("rollback_reason"),
            changed: LandedPaths::default(),
            benchmark_ms: 0,
            at_ms: number_of(value, "timestamp").map_or(0, whole),
        })
    }
}

fn text(value: &KernelValue, path: &str) -> Option<String> {
    match value.get(path)? {
        KernelValue::Text(text) => Some(text.clone()),
        KernelValue::Null
        | KernelValue::Bool(_)
        | KernelValue::Integer(_)
        | KernelValue::Decimal(_)
        | KernelValue::List(_)
        | KernelValue::Map(_) => None,
    }
}

fn number(value: &KernelValue, path: &str) -> Option<i64> {
    match value.get(path)? {
        KernelValue::Integer(number) => Some(*number),
        KernelValue::Null
        | KernelValue::Bool(_)
        | KernelValue::Text(_)
        | KernelValue::Decimal(_)
        | KernelValue::List(_)
        | KernelValue::Map(_) => None,
    }
}

fn number_of(value: &KernelValue, path: &str) -> Option<Number> {
    as_number(value.get(path)?)
}

fn as_number(value: &KernelValue) -> Option<Number> {
    match value {
        KernelValue::Integer(number) => Number::parse(&number.to_string()),
        KernelValue::Decimal(number) => Number::parse(number.as_str()),
        KernelValue::Null
        | KernelValue::Bool(_)
        | KernelValue::Text(_)
        | KernelValue::List(_)
        | KernelValue::Map(_) => None,
    }
}

fn whole(number: Number) -> i64 {
    format!("{:.0}", number.get()).parse().unwrap_or(0)
}

fn secondary(value: &KernelValue) -> Vec<Reading> {
    let Some(KernelValue::Map(entries)) = value.get("metrics") else {
        return Vec::new();
    };
    let numbers = entries.iter().filter(|(name, _)| is_name(name));
    let readings =
        numbers.filter_map(|(name, value)| Some(Reading::of(name.clone(), as_number(value)?)));
    readings.collect()
}
