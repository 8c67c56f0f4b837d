//! What a measurement means: keep, discard, crash, checks failed, or measure once more.
//!
//! The only place where a number decides. An agent's words are not among the arguments.

use kapi_check::rules::measure::number::Number;
use kapi_check::rules::measure::statistics::{Sequential, median, sign_test};
use kapi_check::rules::measure::{MeasurementReport, Sample, ScriptRun, values};

use crate::rules::modes::autoresearch::contract::{Contract, Keep};
use crate::rules::modes::autoresearch::run::RunStatus;

/// How many pairs the sequential test is given at most.
pub const PAIRS_MAX: usize = 30;

/// What a measurement means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is decided.
    Decided(Ruling),
    /// The rule wants another measurement.
    Again,
}

/// A decision about a measured commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// What becomes of it.
    pub status: RunStatus,
    /// The primary metric; none where nothing can be believed.
    pub metric: Option<Number>,
    /// Why, in a sentence without a period.
    pub reason: String,
}

/// Judges a candidate by all its measurements, against the metric of the run that the branch holds.
#[must_use]
pub fn candidate(contract: &Contract, best: Number, all: &[MeasurementReport]) -> Verdict {
    let metric = match sound(contract, all) {
        Ok(metric) => metric,
        Err(judged) => return Verdict::Decided(judged),
    };
    let decided = |status, reason| {
        Verdict::Decided(Ruling {
            status,
            metric: Some(metric),
            reason,
        })
    };
    let rule = &contract.rule;
    match rule.keep {
        Keep::Plain | Keep::Confirm => {
            let worse = all
                .iter()
                .filter_map(|it| it.median(&contract.metric.name))
                .find(|it| !is_better(contract, best, *it));
            if let Some(worse) = worse {
                let said = compared(contract, worse, best);
                return decided(
                    RunStatus::Discard,
                    format!("{}: {said}", rule.keep.as_str()),
                );
            }
            let wanted = if rule.keep == Keep::Confirm { 2 } else { 1 };
            if all.len() < wanted {
                return Verdict::Again;
            }
            let said = compared(contract, metric, best);
            decided(RunStatus::Keep, format!("{}: {said}", rule.keep.as_str()))
        }
        Keep::Paired => {
            let wins = wins(contract, all);
            let won = wins.iter().filter(|is_win| **is_win).count();
            let said = format!("paired: it won {won} of {} pairs", wins.len());
            match sign_test(&wins) {
                Sequential::Better => decided(RunStatus::Keep, said),
                Sequential::NotBetter => decided(RunStatus::Discard, said),
                Sequential::Undecided if wins.len() < PAIRS_MAX => Verdict::Again,
                Sequential::Undecided => {
                    decided(RunStatus::Discard, format!("{said}, which decides nothing"))
                }
            }
        }
    }
}

/// Judges what a segment is to be compared with: it holds, or why it does not.
///
/// # Errors
/// With what became of it.
pub fn baseline(contract: &Contract, measured: &MeasurementReport) -> Result<Ruling, Ruling> {
    let metric = sound(contract, std::slice::from_ref(measured))?;
    Ok(Ruling {
        status: RunStatus::Keep,
        metric: Some(metric),
        reason: "baseline: what the others of its segment are compared with".to_owned(),
    })
}

/// Returns the primary metric over every sample, if everything ended as it must.
fn sound(contract: &Contract, all: &[MeasurementReport]) -> Result<Number, Ruling> {
    let crash = |reason: String| Ruling {
        status: RunStatus::Crash,
        metric: None,
        reason,
    };
    let tampered: Vec<&str> = all
        .iter()
        .flat_map(|it| &it.tampered)
        .map(String::as_str)
        .collect();
    if !tampered.is_empty() {
        let names = tampered.join(", ");
        return Err(crash(format!("{names} changed while it was measured")));
    }
    let samples: Vec<&Sample> = all.iter().flat_map(|it| &it.samples).collect();
    if let Some(failed) = samples.iter().find(|sample| !sample.run.passed()) {
        return Err(crash(format!("benchmark.sh {}", failed.run.words())));
    }
    let parents = all.iter().flat_map(|it| &it.against);
    if let Some(failed) = parents.clone().find(|sample| !sample.run.passed()) {
        let ended = failed.run.words();
        return Err(crash(format!("benchmark.sh of its parent {ended}")));
    }
    let name = &contract.metric.name;
    let has_metric = |sample: &Sample| sample.value(name).is_some();
    let values: Option<Vec<Number>> = samples.iter().map(|sample| sample.value(name)).collect();
    let metric = values.as_deref().and_then(median);
    let Some(metric) = metric.filter(|_| parents.clone().all(has_metric)) else {
        return Err(crash(format!("benchmark.sh printed no `METRIC {name}=…`")));
    };
    let checks: Vec<&ScriptRun> = all.iter().filter_map(|it| it.checks.as_ref()).collect();
    if let Some(failed) = checks.iter().find(|run| !run.passed()) {
        return Err(Ruling {
            status: RunStatus::ChecksFailed,
            metric: Some(metric),
            reason: format!("checks.sh {}", failed.words()),
        });
    }
    if contract.checks.is_some() && checks.is_empty() {
        return Err(crash("checks.sh was not run".to_owned()));
    }
    Ok(metric)
}

/// Tells whether a number is strictly better, and by as much as the contract demands.
fn is_better(contract: &Contract, from: Number, to: Number) -> bool {
    let gain = contract.metric.direction.gain(from, to);
    let least = f64::from(contract.rule.least_permille) / 1_000.0 * from.get().abs();
    gain > 0.0 && gain >= least
}

/// Returns for each pair, in order, whether the candidate won it.
fn wins(contract: &Contract, all: &[MeasurementReport]) -> Vec<bool> {
    let name = &contract.metric.name;
    let pairs = all.iter().flat_map(|measured| {
        let parents = values(&measured.against, name).unwrap_or_default();
        let candidates = values(&measured.samples, name).unwrap_or_default();
        parents.into_iter().zip(candidates)
    });
    pairs
        .map(|(parent, candidate)| is_better(contract, parent, candidate))
        .collect()
}

fn compared(contract: &Contract, found: Number, best: Number) -> String {
    let unit = &contract.metric.unit;
    let gain = contract.metric.direction.gain(best, found);
    let word = if is_better(contract, best, found) {
        "better than"
    } else if gain > 0.0 {
        "better by too little than"
    } else if gain < 0.0 {
        "worse than"
    } else {
        "equal to"
    };
    format!("{found}{unit} is {word} {best}{unit}")
}

#[cfg(test)]
mod tests {
    use kapi_check::rules::measure::MeasurementReport;
    use kapi_check::rules::measure::number::Number;
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, proptest};

    use super::{PAIRS_MAX, Ruling, Verdict, baseline, candidate};
    use crate::rules::modes::autoresearch::contract::{Contract, Direction, Keep};
    use crate::rules::modes::autoresearch::fixture::{contract, ended, measured, sample};
    use crate::rules::modes::autoresearch::run::RunStatus;

    fn number(number: f64) -> Number {
        Number::new(number).unwrap()
    }

    fn judged(contract: &Contract, best: f64, all: &[MeasurementReport]) -> Ruling {
        match candidate(contract, number(best), all) {
            Verdict::Decided(judged) => judged,
            Verdict::Again => panic!("it is not decided"),
        }
    }

    fn check(all: &[MeasurementReport], status: RunStatus, reason: &str) {
        let judged = judged(&contract(), 100.0, all);
        assert_eq!(judged.status, status, "{}", judged.reason);
        assert_eq!(judged.reason, reason);
    }

    #[test]
    fn only_what_is_strictly_better_is_kept() {
        check(
            &[measured("c", &[99.0])],
            RunStatus::Keep,
            "plain: 99ops is better than 100ops",
        );
        check(
            &[measured("c", &[100.0])],
            RunStatus::Discard,
            "plain: 100ops is equal to 100ops",
        );
        check(
            &[measured("c", &[101.0])],
            RunStatus::Discard,
            "plain: 101ops is worse than 100ops",
        );
        let mut higher = contract();
        higher.metric.direction = Direction::Higher;
        let found = judged(&higher, 100.0, &[measured("c", &[101.0])]);
        assert_eq!(found.status, RunStatus::Keep);
        let mut least = contract();
        least.rule.least_permille = 50;
        let found = judged(&least, 100.0, &[measured("c", &[96.0])]);
        assert_eq!(
            found.reason,
            "plain: 96ops is better by too little than 100ops"
        );
        assert_eq!(
            judged(&least, 100.0, &[measured("c", &[95.0])]).status,
            RunStatus::Keep
        );
    }

    #[test]
    fn what_cannot_be_believed_is_a_crash_and_has_no_metric() {
        let mut failed = measured("c", &[1.0]);
        failed.samples[0].run = ended(Some(3), false);
        check(
            &[failed.clone()],
            RunStatus::Crash,
            "benchmark.sh exited with 3",
        );
        failed.samples[0].run = ended(None, true);
        check(
            &[failed.clone()],
            RunStatus::Crash,
            "benchmark.sh was ended at its time limit after 5 ms",
        );
        let mut silent = measured("c", &[1.0]);
        silent.samples[0].readings.clear();
        check(
            &[silent.clone()],
            RunStatus::Crash,
            "benchmark.sh printed no `METRIC ops=…`",
        );
        let mut tampered = measured("c", &[1.0]);
        tampered.tampered = vec!["bench/input".to_owned()];
        check(
            &[tampered],
            RunStatus::Crash,
            "bench/input changed while it was measured",
        );
        let mut unchecked = measured("c", &[1.0]);
        unchecked.checks = None;
        check(&[unchecked], RunStatus::Crash, "checks.sh was not run");
        assert_eq!(judged(&contract(), 100.0, &[failed]).metric, None);
        assert!(baseline(&contract(), &silent).is_err());
    }

    #[test]
    fn checks_that_fail_outweigh_any_gain() {
        let mut broken = measured("c", &[1.0]);
        broken.checks = Some(ended(Some(1), false));
        check(
            &[broken.clone()],
            RunStatus::ChecksFailed,
            "checks.sh exited with 1",
        );
        broken.checks = Some(ended(None, true));
        let found = judged(&contract(), 100.0, &[broken]);
        assert_eq!(
            (found.status, found.metric),
            (RunStatus::ChecksFailed, Some(number(1.0)))
        );
    }

    #[test]
    fn a_lucky_spike_is_not_confirmed() {
        let mut strict = contract();
        strict.rule.keep = Keep::Confirm;
        let spike = measured("c", &[70.0]);
        assert_eq!(
            candidate(&strict, number(100.0), std::slice::from_ref(&spike)),
            Verdict::Again
        );
        let again = judged(&strict, 100.0, &[spike.clone(), measured("c", &[100.0])]);
        assert_eq!(again.status, RunStatus::Discard);
        let twice = judged(&strict, 100.0, &[spike, measured("c", &[80.0])]);
        assert_eq!(
            (twice.status, twice.metric),
            (RunStatus::Keep, Some(number(75.0)))
        );
    }

    #[test]
    fn pairs_decide_between_what_was_measured_in_turn() {
        let mut strict = contract();
        strict.rule.keep = Keep::Paired;
        let pairs = |parent: f64, found: f64, n: usize| {
            let mut pairs = measured("c", &vec![found; n]);
            pairs.against = vec![sample(parent); n];
            pairs
        };
        // The machine became slower since the best was measured, and the change helps all the same.
        let better = [pairs(150.0, 140.0, 3), pairs(150.0, 140.0, 3)];
        assert_eq!(
            candidate(&strict, number(100.0), &better[..1]),
            Verdict::Again
        );
        let found = judged(&strict, 100.0, &better);
        assert_eq!(found.reason, "paired: it won 6 of 6 pairs");
        assert_eq!(found.status, RunStatus::Keep);
        let found = judged(&strict, 100.0, &[pairs(90.0, 90.0, 3)]);
        assert_eq!(found.reason, "paired: it won 0 of 3 pairs");
        assert_eq!(found.status, RunStatus::Discard);
        let mut mixed = Vec::new();
        for _ in 0..PAIRS_MAX / 5 {
            mixed.push(pairs(10.0, 9.0, 2));
            mixed.push(pairs(9.0, 10.0, 1));
            mixed.push(pairs(10.0, 9.0, 2));
        }
        let found = judged(&strict, 100.0, &mixed);
        assert_ne!(found.status, RunStatus::Crash);
    }

    proptest! {
        #[test]
        fn nothing_is_kept_that_is_not_better_and_checked(
            best in any::<f64>(),
            found in any::<f64>(),
            code in 0..2_i32,
            checks in 0..2_i32,
            permille in 0..1_000_u32,
        ) {
            let (Some(best), Some(found)) = (Number::new(best), Number::new(found)) else {
                return Ok(());
            };
            let mut contract = contract();
            contract.rule.least_permille = permille;
            let mut one = measured("c", &[found.get()]);
            one.samples[0].run.exit_code = Some(code);
            one.checks = Some(ended(Some(checks), false));
            if let Verdict::Decided(judged) = candidate(&contract, best, &[one])
                && judged.status == RunStatus::Keep
            {
                prop_assert!(found < best && code == 0 && checks == 0);
            }
        }

        #[test]
        fn a_rule_always_comes_to_an_end(values in vec(0..4_u8, 1..60)) {
            let mut strict = contract();
            strict.rule.keep = Keep::Paired;
            let mut all = Vec::new();
            for pair in values.chunks(2) {
                let mut one = measured("c", &[f64::from(pair[0])]);
                one.against = vec![sample(1.0)];
                all.push(one);
                if let Verdict::Decided(_) = candidate(&strict, number(1.0), &all) {
                    return Ok(());
                }
                prop_assert!(all.len() < PAIRS_MAX);
            }
        }
    }
}
