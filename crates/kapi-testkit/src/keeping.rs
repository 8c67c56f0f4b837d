//! A thousand experiments under noise, and which of them each rule keeps: how often a change without a
//! gain is kept, and how often a gain is missed.
//!
//! The rules are the product's own; noise and effects are made here, by a seed. Effects are known, which
//! in a real search nobody knows.

use kapi_check::rules::measure::number::Number;
use kapi_check::rules::measure::statistics::{confidence, median};
use kapi_check::rules::measure::{MeasurementReport, Reading, Sample, ScriptRun};
use kapi_workflow::rules::modes::autoresearch::contract::{
    Contract, Direction, Keep, Metric, Rule,
};
use kapi_workflow::rules::modes::autoresearch::run::RunStatus;
use kapi_workflow::rules::modes::autoresearch::verdict;
use kapi_workflow::rules::modes::autoresearch::verdict::Verdict;

use crate::converge::random::Random;

/// The metric without any effect.
const NORMAL: f64 = 100.0;
/// By how many percent a gain is better, and a loss worse.
const EFFECT: f64 = 3.0;
/// Samples of a baseline; the median counts.
const BASELINE: usize = 3;
/// Other results that a search has by then, for the rule of confidence.
const EARLIER: usize = 10;
/// Pairs of one measurement in turn.
const PAIRS: u32 = 3;
/// The value of a normal distribution that leaves out one in forty on each side.
const Z: f64 = 1.96;

/// How a machine scatters what it measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    /// Half a percent, evenly.
    Quiet,
    /// One percent, and now and then much slower or a little faster.
    Tails,
    /// Two speeds, six percent apart, by chance.
    TwoModes,
    /// Half a percent around a speed that wanders.
    Drift,
}

/// How a run is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// A rule of ours.
    Rule(Rule),
    /// Better, and twice the scatter of all results away: what pi-autoresearch calls likely real.
    Confident,
}

/// How often a policy was wrong under a noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// Changes without a gain, and how many of them were kept.
    pub kept: (u32, u32),
    /// Changes with a gain, and how many of them were not kept.
    pub missed: (u32, u32),
    /// Runs of the benchmark for one experiment, in the mean.
    pub samples: f64,
}

impl Noise {
    /// Every noise.
    pub const ALL: [Self; 4] = [Self::Quiet, Self::Tails, Self::TwoModes, Self::Drift];

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Tails => "heavy tails",
            Self::TwoModes => "two modes",
            Self::Drift => "drift",
        }
    }
}

impl Policy {
    /// Every policy, each with its name.
    #[must_use]
    pub const fn all() -> [(&'static str, Self); 5] {
        const fn rule(keep: Keep, samples: u32) -> Policy {
            Policy::Rule(Rule {
                keep,
                samples,
                least_permille: 0,
            })
        }
        [
            ("plain, 1 sample", rule(Keep::Plain, 1)),
            ("plain, median of 5", rule(Keep::Plain, 5)),
            ("confirm, median of 3", rule(Keep::Confirm, 3)),
            ("paired", rule(Keep::Paired, 1)),
            ("confidence of 2", Self::Confident),
        ]
    }
}

/// A machine while it measures.
struct Machine {
    noise: Noise,
    random: Random,
    /// How much slower it is now, as a part of the whole.
    speed: f64,
    n_samples: u32,
}

impl Machine {
    /// Returns one measured value of a change with this effect in percent.
    fn measure(&mut self, effect: f64) -> Number {
        self.n_samples += 1;
        let mut part = |width: f64| {
            let per_mille = f64::from(self.random.between(0, 2_000)) - 1_000.0;
            per_mille / 1_000.0 * width
        };
        let scatter = match self.noise {
            Noise::Quiet => part(0.005),
            Noise::Drift => {
                let step = part(0.004);
                self.speed += step;
                self.speed + part(0.005)
            }
            Noise::TwoModes => part(0.005) + if part(1.0) > 0.0 { 0.06 } else { 0.0 },
            Noise::Tails => {
                let usual = part(0.01);
                match part(1.0) {
                    rare if rare > 0.9 => usual + 0.3,
                    rare if rare < -0.95 => usual - 0.1,
                    _ => usual,
                }
            }
        };
        let value = NORMAL * (1.0 - effect / 100.0) * (1.0 + scatter);
        Number::new(value).unwrap_or_else(zero)
    }

    fn several(&mut self, effect: f64, n: usize) -> Vec<Number> {
        (0..n).map(|_| self.measure(effect)).collect()
    }
}

fn zero() -> Number {
    Number::parse("0").unwrap_or_else(zero)
}

/// Lets a policy decide about `n` experiments: half without an effect, a quarter better, a quarter worse.
#[must_use]
pub fn errors(noise: Noise, policy: Policy, seed: u64, n: u32) -> Errors {
    let mut machine = Machine {
        noise,
        random: Random::new(seed),
        speed: 0.0,
        n_samples: 0,
    };
    let mut errors = Errors {
        kept: (0, 0),
        missed: (0, 0),
        samples: 0.0,
    };
    let mut n_samples = 0_u32;
    for number in 0..n {
        let effect = match number % 4 {
            0 => EFFECT,
            1 => -EFFECT,
            _ => 0.0,
        };
        let best = median(&machine.several(0.0, BASELINE)).unwrap_or_else(zero);
        let earlier = machine.several(0.0, EARLIER);
        machine.n_samples = 0;
        let is_kept = match policy {
            Policy::Rule(rule) => by_rule(&mut machine, rule, best, effect),
            Policy::Confident => by_confidence(&mut machine, &earlier, best, effect),
        };
        n_samples += machine.n_samples;
        let (of, wrong) = if effect > 0.0 {
            (&mut errors.missed, !is_kept)
        } else {
            (&mut errors.kept, is_kept)
        };
        of.0 += 1;
        of.1 += u32::from(wrong);
    }
    errors.samples = f64::from(n_samples) / f64::from(n.max(1));
    errors
}

fn by_confidence(machine: &mut Machine, earlier: &[Number], best: Number, effect: f64) -> bool {
    let found = machine.measure(effect);
    let results = [earlier, &[best, found]].concat();
    let gain = Direction::Lower.gain(best, found);
    gain > 0.0 && confidence(&results, gain).is_some_and(|it| it.get() >= 2.0)
}

/// Measures until the rule has an answer.
fn by_rule(machine: &mut Machine, rule: Rule, best: Number, effect: f64) -> bool {
    let contract = contract(rule);
    let mut all = Vec::new();
    for _ in 0..=verdict::PAIRS_MAX {
        all.push(report(machine, rule, effect));
        match verdict::candidate(&contract, best, &all) {
            Verdict::Decided(ruling) => return ruling.status == RunStatus::Keep,
            Verdict::Again => {}
        }
    }
    false
}

fn report(machine: &mut Machine, rule: Rule, effect: f64) -> MeasurementReport {
    let sample = |value: Number| Sample {
        run: ScriptRun {
            exit_code: Some(0),
            ..ScriptRun::default()
        },
        readings: vec![Reading {
            name: "ms".to_owned(),
            value,
        }],
    };
    let mut report = MeasurementReport::default();
    if rule.keep != Keep::Paired {
        for _ in 0..rule.samples {
            report.samples.push(sample(machine.measure(effect)));
        }
        return report;
    }
    for n in 0..PAIRS {
        if n.is_multiple_of(2) {
            report.against.push(sample(machine.measure(0.0)));
            report.samples.push(sample(machine.measure(effect)));
        } else {
            report.samples.push(sample(machine.measure(effect)));
            report.against.push(sample(machine.measure(0.0)));
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
        scope: vec!["src".to_owned()],
        off_limits: Vec::new(),
        constraints: Vec::new(),
        runs: 1,
        failures: 1,
        rule,
    }
}

/// Returns a part of a whole in percent, with the interval that holds the true one in 95 of 100 cases
/// (Wilson's).
#[must_use]
pub fn percent(of: u32, wrong: u32) -> String {
    let n = f64::from(of.max(1));
    let part = f64::from(wrong) / n;
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

#[cfg(test)]
mod tests {
    use kapi_workflow::rules::modes::autoresearch::contract::{Keep, Rule};

    use super::{Noise, Policy, errors, percent};

    fn rule(keep: Keep, samples: u32) -> Policy {
        Policy::Rule(Rule {
            keep,
            samples,
            least_permille: 0,
        })
    }

    #[test]
    fn pairs_keep_few_changes_without_a_gain_under_every_noise() {
        for noise in Noise::ALL {
            let plain = errors(noise, rule(Keep::Plain, 1), 7, 400);
            let paired = errors(noise, rule(Keep::Paired, 1), 7, 400);
            assert!(
                paired.kept.1 * 2 < plain.kept.1.max(1) || plain.kept.1 < 4,
                "{noise:?}"
            );
            // At most 5 % of the changes without any effect, which are two in three here.
            assert!(
                paired.kept.1 * 100 <= paired.kept.0 * 8,
                "{noise:?}: {paired:?}"
            );
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_experiments() {
        let one = errors(Noise::Tails, Policy::Confident, 3, 200);
        assert_eq!(one, errors(Noise::Tails, Policy::Confident, 3, 200));
        assert_eq!(percent(100, 0), "0.0 (0.0 to 3.7)");
        assert_eq!(percent(200, 10), "5.0 (2.7 to 9.0)");
    }
}
