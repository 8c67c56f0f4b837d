//! A thousand experiments under recorded noise, and which of them each rule keeps: how often a change
//! without a gain is kept, and how often a gain is missed.
//!
//! The rules are the product's own and the noise is that of real benchmarks; effects are made here, by a
//! seed, so that they are known, which in a real search nobody knows.

use kapi_check::rules::measure::number::Number;
use kapi_check::rules::measure::statistics::{confidence, median};
use kapi_check::rules::measure::{MeasurementReport, Reading, Sample, ScriptRun};
use kapi_workflow::rules::modes::autoresearch::contract::{
    Contract, Direction, Keep, Metric, Rule,
};
use kapi_workflow::rules::modes::autoresearch::effects::{PAIRS, RANKED_PAIRS};
use kapi_workflow::rules::modes::autoresearch::run::RunStatus;
use kapi_workflow::rules::modes::autoresearch::verdict;
use kapi_workflow::rules::modes::autoresearch::verdict::{Reference, Verdict};

use self::series::NoiseSeries;
use crate::converge::random::Random;

pub mod series;

/// The metric of what a search begins with, without noise.
const NORMAL: f64 = 1_000.0;
/// By which part a gain is better, and a loss worse.
const EFFECT: f64 = 0.2;
/// Experiments of one search: what is kept is what the next is compared with.
const SEARCH: u32 = 10;
/// Samples of a baseline; the median counts.
const BASELINE: u32 = 3;
/// Recorded runs that pass while an agent makes a change.
const BETWEEN: usize = 10;
/// Measurements of one experiment at most, which no rule asks for.
const MEASUREMENTS_MAX: usize = 60;
/// The value of a normal distribution that leaves out one in forty on each side.
const Z: f64 = 1.96;

/// How a run is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// A rule of ours.
    Rule(Rule),
    /// What pi-autoresearch tells its agent: one run, and what is better than the best so far is kept.
    Reference,
    /// The same, and twice the scatter of all results away: what pi-autoresearch calls likely real.
    Confident,
}

/// How often a policy was wrong under a noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// Changes without a gain.
    pub without_gain: Tries,
    /// Changes with a gain.
    pub with_gain: Tries,
    /// Runs of the benchmark for one experiment, in the mean.
    pub samples: f64,
}

/// Some tries of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tries {
    /// How many there were.
    pub all: u32,
    /// How many of them were judged wrongly.
    pub wrong: u32,
}

impl Policy {
    /// Every policy, each with its name.
    #[must_use]
    pub const fn all() -> [(&'static str, Self); 10] {
        const fn rule(keep: Keep, samples: u32, least_permille: u32) -> Policy {
            Policy::Rule(Rule {
                keep,
                samples,
                least_permille,
            })
        }
        [
            ("pi-autoresearch", Self::Reference),
            ("pi-autoresearch, confidence of 2", Self::Confident),
            ("plain", rule(Keep::Plain, 1, 0)),
            ("plain, median of 5", rule(Keep::Plain, 5, 0)),
            ("confirm, median of 3", rule(Keep::Confirm, 3, 0)),
            ("interleaved, 5 pairs", rule(Keep::Interleaved, 5, 0)),
            (
                "interleaved, 5 pairs, 1 % at least",
                rule(Keep::Interleaved, 5, 10),
            ),
            ("paired", rule(Keep::Paired, 1, 0)),
            ("ranked", rule(Keep::Ranked, 1, 0)),
            ("ranked, 1 % at least", rule(Keep::Ranked, 1, 10)),
        ]
    }
}

/// A machine while it measures: it scatters as it did when the series was recorded.
struct Machine<'a> {
    series: &'a NoiseSeries,
    at: usize,
    n_samples: u32,
}

impl Machine<'_> {
    /// Returns one measured value of a program whose true metric is this.
    fn measure(&mut self, truth: f64) -> Number {
        self.n_samples += 1;
        let value = truth * self.series.relative(self.at);
        self.at = self.at.wrapping_add(1);
        // In whole millionths, so that every machine computes the same.
        Number::new((value * 1e6).round() / 1e6).unwrap_or_else(zero)
    }

    fn several(&mut self, truth: f64, n: u32) -> Vec<Number> {
        (0..n).map(|_| self.measure(truth)).collect()
    }
}

fn zero() -> Number {
    Number::parse("0").unwrap_or_else(zero)
}

/// A search while it goes on.
struct Search {
    /// The true metric of what the branch holds.
    truth: f64,
    /// What it was measured as.
    best: Number,
    /// Every result so far, the baseline first.
    results: Vec<Number>,
}

/// Lets a policy decide about `n` experiments: half without an effect, a quarter better, a quarter worse.
#[must_use]
pub fn errors(series: &NoiseSeries, policy: Policy, seed: u64, n: u32) -> Errors {
    let mut random = Random::new(seed);
    let mut machine = Machine {
        series,
        at: 0,
        n_samples: 0,
    };
    let mut errors = Errors {
        without_gain: Tries::default(),
        with_gain: Tries::default(),
        samples: 0.0,
    };
    let mut n_samples = 0_u32;
    let mut search = None;
    for number in 0..n {
        if number.is_multiple_of(SEARCH) {
            machine.at = usize::try_from(random.between(0, u32::MAX)).unwrap_or(0);
            search = None;
        }
        let search = search.get_or_insert_with(|| begin(&mut machine, policy));
        machine.at = machine.at.wrapping_add(BETWEEN);
        let effect = match random.between(0, 3) {
            0 => EFFECT,
            1 => -EFFECT,
            _ => 0.0,
        };
        machine.n_samples = 0;
        let is_kept = experiment(&mut machine, policy, search, search.truth * (1.0 - effect));
        n_samples += machine.n_samples;
        let (of, is_wrong) = if effect > 0.0 {
            (&mut errors.with_gain, !is_kept)
        } else {
            (&mut errors.without_gain, is_kept)
        };
        of.all += 1;
        of.wrong += u32::from(is_wrong);
    }
    errors.samples = f64::from(n_samples) / f64::from(n.max(1));
    errors
}

fn begin(machine: &mut Machine<'_>, policy: Policy) -> Search {
    let samples = match policy {
        Policy::Rule(rule) => rule.samples.max(BASELINE),
        Policy::Reference | Policy::Confident => 1,
    };
    let best = median(&machine.several(NORMAL, samples)).unwrap_or_else(zero);
    Search {
        truth: NORMAL,
        best,
        results: vec![best],
    }
}

/// Measures a change with this true metric, and tells whether it is kept.
fn experiment(machine: &mut Machine<'_>, policy: Policy, search: &mut Search, truth: f64) -> bool {
    let (is_kept, found) = match policy {
        Policy::Rule(rule) => by_rule(machine, rule, search, truth),
        Policy::Reference => {
            let found = machine.measure(truth);
            (found < search.best, found)
        }
        Policy::Confident => {
            let found = machine.measure(truth);
            (is_confident(search, found), found)
        }
    };
    search.results.push(found);
    if is_kept {
        search.truth = truth;
        search.best = found;
    }
    is_kept
}

fn is_confident(search: &Search, found: Number) -> bool {
    let results = [search.results.as_slice(), &[found]].concat();
    let baseline = search.results.first().copied().unwrap_or_else(zero);
    let gain = Direction::Lower.gain(baseline, found);
    found < search.best && confidence(&results, gain).is_some_and(|it| it.get() >= 2.0)
}

/// Measures until the rule has an answer.
fn by_rule(machine: &mut Machine<'_>, rule: Rule, search: &Search, truth: f64) -> (bool, Number) {
    let contract = contract(rule);
    let reference = Reference {
        best: search.best,
        lines: 1,
    };
    let mut all = Vec::new();
    for _ in 0..MEASUREMENTS_MAX {
        all.push(report(machine, rule, search.truth, truth));
        match verdict::candidate(&contract, &reference, &all) {
            Verdict::Decided(ruling) => {
                let is_kept = ruling.status == RunStatus::Keep;
                return (is_kept, ruling.metric.unwrap_or_else(zero));
            }
            Verdict::Again(_) => {}
        }
    }
    (false, zero())
}

fn report(machine: &mut Machine<'_>, rule: Rule, parent: f64, truth: f64) -> MeasurementReport {
    let sample = |value: Number| Sample {
        run: ScriptRun {
            exit_code: Some(0),
            ..ScriptRun::default()
        },
        readings: vec![Reading::of("ms".to_owned(), value)],
    };
    let mut report = MeasurementReport::default();
    let n = match rule.keep {
        Keep::Plain | Keep::Confirm | Keep::Interleaved => rule.samples,
        Keep::Paired => PAIRS,
        Keep::Ranked => RANKED_PAIRS,
    };
    for number in 0..n {
        if !rule.keep.is_in_turn() {
            report.samples.push(sample(machine.measure(truth)));
        } else if number.is_multiple_of(2) {
            report.against.push(sample(machine.measure(parent)));
            report.samples.push(sample(machine.measure(truth)));
        } else {
            report.samples.push(sample(machine.measure(truth)));
            report.against.push(sample(machine.measure(parent)));
        }
    }
    report
}

fn contract(rule: Rule) -> Contract {
    Contract {
        objective: "Faster.".to_owned(),
        metric: Metric {
            name: "ms".to_owned(),
            unit: "ms".to_owned(),
            direction: Direction::Lower,
        },
        secondary: Vec::new(),
        benchmark: "sh bench.sh".to_owned(),
        checks: None,
        no_checks: Some("Only time is simulated.".to_owned()),
        benchmark_seconds: 1,
        checks_seconds: 1,
        warmups: 0,
        processors: Vec::new(),
        held_back: None,
        scope: vec!["src".to_owned()],
        off_limits: Vec::new(),
        constraints: Vec::new(),
        runs: 1,
        failures: 1,
        parallel: 1,
        rule,
    }
}

impl Tries {
    /// Returns how many are wrong in percent, with the interval that holds the true part in 95 of 100
    /// cases (Wilson's).
    #[must_use]
    pub fn percent(self) -> String {
        let n = f64::from(self.all.max(1));
        let part = f64::from(self.wrong) / n;
        let middle = part + Z * Z / (2.0 * n);
        let width = Z * (part * (1.0 - part) / n + Z * Z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + Z * Z / n;
        format!(
            "{:.1} ({:.1} to {:.1})",
            part * 100.0,
            ((middle - width) / scale * 100.0).max(0.0),
            (middle + width) / scale * 100.0
        )
    }
}

#[cfg(test)]
mod tests {
    use kapi_workflow::rules::modes::autoresearch::contract::{Keep, Rule};

    use super::series::NoiseSeries;
    use super::{Policy, Tries, errors};

    fn rule(keep: Keep, samples: u32) -> Policy {
        Policy::Rule(Rule {
            keep,
            samples,
            least_permille: 0,
        })
    }

    /// Ten parts in a thousand around a thousand, and one run in eleven far below: lucky.
    fn lucky() -> NoiseSeries {
        let values = (0..990_u32).map(|n| match n % 11 {
            10 => 700.0,
            other => 995.0 + f64::from(other * n % 10),
        });
        NoiseSeries::of("lucky", values.collect())
    }

    #[test]
    fn lucky_runs_are_kept_by_one_run_and_by_no_strict_rule() {
        let wrong = |policy| errors(&lucky(), policy, 7, 400).without_gain;
        for policy in [Policy::Reference, rule(Keep::Plain, 1)] {
            let found = wrong(policy);
            assert!(found.wrong * 10 > found.all, "{policy:?}: {found:?}");
        }
        for keep in [Keep::Paired, Keep::Ranked] {
            let found = wrong(rule(keep, 1));
            // At most 5 % of those without any effect, and chance around that.
            assert!(found.wrong * 100 <= found.all * 8, "{keep:?}: {found:?}");
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_experiments() {
        let one = errors(&lucky(), Policy::Confident, 3, 200);
        assert_eq!(one, errors(&lucky(), Policy::Confident, 3, 200));
        assert_eq!(one.with_gain.all + one.without_gain.all, 200);
        let percent = |all, wrong| Tries { all, wrong }.percent();
        assert_eq!(percent(100, 0), "0.0 (0.0 to 3.7)");
        assert_eq!(percent(200, 10), "5.0 (2.7 to 9.0)");
    }
}
