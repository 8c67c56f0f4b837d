//! A contract from flags, and from what another tool left; where neither says enough, an agent drafts
//! it.
//!
//! Whether a contract is sound is decided in core.

use std::fs;
use std::path::{Path, PathBuf};

use kapi_workflow::rules::modes::ModeCommand;
use kapi_workflow::rules::modes::autoresearch::command::AutoresearchCommand;
use kapi_workflow::rules::modes::autoresearch::contract::{
    Contract, Direction, FAILURES_DEFAULT, Keep, Metric, RUNS_DEFAULT, Rule, SecondaryMetric, sound,
};

use crate::context::Context;
use crate::error::Error;
use crate::modes::autoresearch::import::{self, ImportedSearch};
use crate::modes::autoresearch::machine;
use crate::{amount, help};

/// Milliseconds that the benchmark may take, where nobody says otherwise.
const BENCHMARK_MS: u64 = 600_000;
/// Milliseconds that the checks may take, where nobody says otherwise.
const CHECKS_MS: u64 = 300_000;

/// Options that say what is measured and when a run is kept; without them an agent drafts a contract.
#[derive(Debug, Clone, clap::Args)]
#[group(skip)]
pub(crate) struct Flags {
    /// Primary metric, named as the benchmark prints it, optionally with a unit (parse_ms:ms)
    #[arg(long, value_name = "NAME[:UNIT]", help_heading = "Contract")]
    metric: Option<String>,
    /// Whether a lower or a higher value is better
    #[arg(
        long,
        value_name = "WAY",
        value_enum,
        default_value = "lower",
        help_heading = "Contract"
    )]
    direction: Way,
    /// Secondary metric to record (repeatable)
    #[arg(long, value_name = "NAME[:UNIT]", help_heading = "Contract")]
    secondary: Vec<String>,
    /// Benchmark that prints `METRIC name=value`: a script file or a shell command
    #[arg(long, value_name = "SCRIPT", help_heading = "Contract")]
    benchmark: Option<String>,
    /// Checks that must exit with 0: a script file or a shell command
    #[arg(long, value_name = "SCRIPT", help_heading = "Contract")]
    checks: Option<String>,
    /// Run without checks, for this reason
    #[arg(
        long,
        value_name = "REASON",
        conflicts_with = "checks",
        help_heading = "Contract"
    )]
    no_checks: Option<String>,
    #[arg(help = help::with_default("Time limit of one benchmark run", help::time(BENCHMARK_MS)), long, value_name = "TIME", value_parser = amount::parse_duration_ms, help_heading = "Contract")]
    benchmark_timeout: Option<u64>,
    #[arg(help = help::with_default("Time limit of the checks", help::time(CHECKS_MS)), long, value_name = "TIME", value_parser = amount::parse_duration_ms, help_heading = "Contract")]
    checks_timeout: Option<u64>,
    /// Warm-up runs before each measurement
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Contract")]
    warmups: u32,
    /// Processors to pin the benchmark to (2 or 2,3)
    #[arg(
        long,
        value_name = "NUMBERS",
        value_delimiter = ',',
        help_heading = "Contract"
    )]
    pin: Vec<u32>,
    /// Directory of held-back inputs that no agent sees, used to confirm each gain
    #[arg(long, value_name = "DIR", help_heading = "Contract")]
    held_back: Option<PathBuf>,
    /// Files the agent may change (repeatable)
    #[arg(long, value_name = "GLOB", help_heading = "Contract")]
    scope: Vec<String>,
    /// Files the agent must not change (repeatable)
    #[arg(long, value_name = "GLOB", help_heading = "Contract")]
    off_limits: Vec<String>,
    /// Constraint that every change must respect (repeatable)
    #[arg(long, value_name = "TEXT", help_heading = "Contract")]
    constraint: Vec<String>,
    #[arg(help = help::with_default("Maximum number of experiments", RUNS_DEFAULT), long, value_name = "N", help_heading = "Contract")]
    runs: Option<u32>,
    /// Number of agents that propose changes to the same parent in parallel
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Contract")]
    parallel: u32,
    #[arg(help = help::with_default("Stop after this many discards and crashes in a row", FAILURES_DEFAULT), long, value_name = "N", help_heading = "Contract")]
    failures: Option<u32>,
    /// Rule that keeps an experiment: one better measurement, a second one that confirms it, or
    /// candidate and parent measured in turn
    #[arg(
        long,
        value_name = "RULE",
        value_enum,
        default_value = "plain",
        help_heading = "Contract"
    )]
    keep: KeepName,
    /// Benchmark runs per measurement; the median counts
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Contract")]
    samples: u32,
    /// Minimum improvement that counts, in percent (0.5)
    #[arg(long, value_name = "PERCENT", value_parser = permille, default_value = "0", help_heading = "Contract")]
    least: u32,
    /// Continue a search that pi-autoresearch began in a directory
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".", help_heading = "Contract")]
    import: Option<PathBuf>,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Way {
    /// Less
    Lower,
    /// More
    Higher,
}

/// When a run is kept, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum KeepName {
    /// One measurement is strictly better
    Plain,
    /// A second measurement is strictly better, too
    Confirm,
    /// Candidate and parent are measured in turn, and the median of their differences decides
    Interleaved,
    /// Candidate and parent are measured in turn, and a sequential sign test decides
    Paired,
    /// Candidate and parent are measured in turn, and a signed-rank test decides
    Ranked,
}

/// Reads a percentage with at most one decimal, as thousandths.
fn permille(text: &str) -> Result<u32, String> {
    let (whole, tenths) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    match (whole.parse::<u32>(), tenths.parse::<u32>()) {
        (Ok(percent), Ok(tenth))
            if percent <= 100 && tenths.len() == 1 && is_digits(whole) && is_digits(tenths) =>
        {
            Ok(percent * 10 + tenth)
        }
        _ => Err("a percentage has at most one decimal, like 0.5".to_owned()),
    }
}

impl Flags {
    /// Returns what is asked of a search before it is driven.
    pub(super) fn commands(
        &self,
        context: &Context,
        purpose: &str,
    ) -> Result<Vec<ModeCommand>, Error> {
        let imported = self.import.as_deref().map(import::read).transpose()?;
        let mut commands = Vec::new();
        let mut contract = self.contract(purpose, imported.as_ref())?;
        if let Some(dir) = &self.held_back {
            let contract = contract.as_mut().ok_or_else(|| not_drafted(dir))?;
            contract.held_back = Some(machine::held_back(context, dir)?);
        }
        if let Some(imported) = imported {
            let history = Box::new(imported.history);
            commands.push(AutoresearchCommand::Import { history });
        }
        if let Some(contract) = contract {
            sound::check(&contract).map_err(Error::usage)?;
            machine::check(&contract)?;
            let contract = Box::new(contract);
            commands.push(AutoresearchCommand::Draft { contract });
        }
        Ok(commands
            .into_iter()
            .map(ModeCommand::Autoresearch)
            .collect())
    }

    /// Returns the contract; `None` where an agent is to draft it.
    fn contract(
        &self,
        purpose: &str,
        imported: Option<&ImportedSearch>,
    ) -> Result<Option<Contract>, Error> {
        let metric = match &self.metric {
            Some(text) => Some(self.metric_of(text)),
            None => imported.and_then(|it| it.history.metric.clone()),
        };
        let benchmark = match &self.benchmark {
            Some(given) => Some(script(given)?),
            None => imported.and_then(|it| it.benchmark.clone()),
        };
        let or = |given: &[String], found: Option<&Vec<String>>| match (given, found) {
            ([], Some(found)) => found.clone(),
            (given, _) => given.to_vec(),
        };
        let scope = or(&self.scope, imported.map(|it| &it.scope));
        let (Some(metric), Some(benchmark), false) = (metric, benchmark, scope.is_empty()) else {
            return self
                .given()
                .map_or(Ok(None), |option| Err(incomplete(option)));
        };
        let checks = match &self.checks {
            Some(given) => Some(script(given)?),
            None if self.no_checks.is_some() => None,
            None => imported.and_then(|it| it.checks.clone()),
        };
        let no_checks = match (&checks, &self.no_checks) {
            (Some(_), _) => None,
            (None, Some(why)) => Some(why.clone()),
            (None, None) => Some("no `--checks` were given".to_owned()),
        };
        Ok(Some(Contract {
            objective: purpose.trim().to_owned(),
            metric,
            secondary: self.secondary.iter().map(|text| secondary(text)).collect(),
            benchmark,
            checks,
            no_checks,
            benchmark_seconds: seconds(self.benchmark_timeout, BENCHMARK_MS),
            checks_seconds: seconds(self.checks_timeout, CHECKS_MS),
            warmups: self.warmups,
            processors: self.pin.clone(),
            held_back: None,
            scope,
            off_limits: or(&self.off_limits, imported.map(|it| &it.off_limits)),
            constraints: or(&self.constraint, imported.map(|it| &it.constraints)),
            runs: self.runs.unwrap_or(RUNS_DEFAULT),
            failures: self.failures.unwrap_or(FAILURES_DEFAULT),
            parallel: self.parallel,
            rule: Rule {
                keep: match self.keep {
                    KeepName::Plain => Keep::Plain,
                    KeepName::Confirm => Keep::Confirm,
                    KeepName::Interleaved => Keep::Interleaved,
                    KeepName::Paired => Keep::Paired,
                    KeepName::Ranked => Keep::Ranked,
                },
                samples: self.samples,
                least_permille: self.least,
            },
        }))
    }

    /// Returns the first option of a contract that says something: an agent's draft would drop it.
    fn given(&self) -> Option<&'static str> {
        let given = [
            ("--metric", self.metric.is_some()),
            ("--benchmark", self.benchmark.is_some()),
            ("--scope", !self.scope.is_empty()),
            ("--direction", self.direction != Way::Lower),
            ("--secondary", !self.secondary.is_empty()),
            ("--checks", self.checks.is_some()),
            ("--no-checks", self.no_checks.is_some()),
            ("--benchmark-timeout", self.benchmark_timeout.is_some()),
            ("--checks-timeout", self.checks_timeout.is_some()),
            ("--warmups", self.warmups != 0),
            ("--pin", !self.pin.is_empty()),
            ("--off-limits", !self.off_limits.is_empty()),
            ("--constraint", !self.constraint.is_empty()),
            ("--runs", self.runs.is_some()),
            ("--parallel", self.parallel != 1),
            ("--failures", self.failures.is_some()),
            ("--keep", self.keep != KeepName::Plain),
            ("--samples", self.samples != 1),
            ("--least", self.least != 0),
        ];
        let mut given = given.iter().filter(|(_, is_given)| *is_given);
        given.next().map(|(option, _)| *option)
    }

    fn metric_of(&self, text: &str) -> Metric {
        let SecondaryMetric { name, unit } = secondary(text);
        Metric {
            name,
            unit,
            direction: match self.direction {
                Way::Lower => Direction::Lower,
                Way::Higher => Direction::Higher,
            },
        }
    }
}

fn incomplete(option: &str) -> Error {
    Error::usage(format!(
        "{option} is part of a contract, which needs --metric, --benchmark and --scope"
    ))
    .with_hint(
        "give all three; or start without options of the contract to have an agent draft it from \
         the repository, and ask for changes with `kapi autoresearch resume N --revise TEXT`.",
    )
}

/// What is held back stands in the contract that a person approves, so there has to be one.
fn not_drafted(dir: &Path) -> Error {
    Error::usage("there is no contract yet to add held-back inputs to").with_hint(
        format!(
            "give --metric, --benchmark and --scope, too; or start without --held-back, and once the agent has \
             drafted the contract, type `kapi autoresearch resume N --held-back {} --no-drive` before you \
             approve it.",
            dir.display()
        ),
    )
}

fn secondary(text: &str) -> SecondaryMetric {
    let (name, unit) = text.split_once(':').unwrap_or((text, ""));
    SecondaryMetric {
        name: name.to_owned(),
        unit: unit.to_owned(),
    }
}

/// Whole seconds, and never none.
fn seconds(ms: Option<u64>, or: u64) -> u32 {
    u32::try_from(ms.unwrap_or(or).div_ceil(1_000).max(1)).unwrap_or(u32::MAX)
}

/// Returns a script: the content of a file where there is one of this name, else the line itself.
fn script(given: &str) -> Result<String, Error> {
    let path = Path::new(given);
    if !path.is_file() {
        return Ok(given.to_owned());
    }
    fs::read_to_string(path)
        .map_err(|error| Error::usage(format!("cannot read the script {given}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::permille;

    #[test]
    fn a_percentage_is_read_as_thousandths() {
        assert_eq!(permille("0"), Ok(0));
        assert_eq!(permille("0.5"), Ok(5));
        assert_eq!(permille("12"), Ok(120));
        for bad in ["", "-1", "0.05", "101", "x", "1."] {
            assert!(permille(bad).is_err(), "{bad}");
        }
    }
}
