//! What measurements mean: every status, every rule.

use kapi_check::rules::measure::MeasurementReport;
use kapi_check::rules::measure::counter::Counter;
use kapi_check::rules::measure::metric_line::Readings;
use kapi_check::rules::measure::number::Number;
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, proptest};

use super::pairs::PAIRS_MAX;
use super::{Inputs, Reference, Ruling, Verdict, baseline, candidate};
use crate::rules::modes::autoresearch::contract::{Contract, Direction, Keep};
use crate::rules::modes::autoresearch::fixture::{
    contract, ended, held_back_set, measured, sample,
};
use crate::rules::modes::autoresearch::run::RunStatus;

fn number(number: f64) -> Number {
    Number::new(number).unwrap()
}

fn reference(best: f64) -> Reference {
    Reference {
        best: number(best),
        lines: 1,
    }
}

fn judged(contract: &Contract, best: f64, all: &[MeasurementReport]) -> Ruling {
    match candidate(contract, &reference(best), all) {
        Verdict::Decided(judged) => judged,
        Verdict::Again(_) => panic!("it is not decided"),
    }
}

fn check(all: &[MeasurementReport], status: RunStatus, reason: &str) {
    let judged = judged(&contract(), 100.0, all);
    assert_eq!(judged.status, status, "{}", judged.reason);
    assert_eq!(judged.reason, reason);
}

/// A processor that counts says nearly the same twice.
#[test]
fn instructions_are_a_metric_as_any_other() {
    let mut counting = contract();
    counting.metric.name = Counter::Instructions.name().to_owned();
    counting.metric.unit.clear();
    let counted = |instructions: u64| {
        let mut report = measured("c", &[0.0]);
        let mut readings = Readings::default();
        readings.line("METRIC ops=1");
        readings.take(Counter::Instructions, instructions);
        report.samples[0].readings = readings.into_vec();
        report
    };
    for (instructions, status, reason) in [
        (
            900_000,
            RunStatus::Keep,
            "plain: 900000 is better than 1000000",
        ),
        (
            1_000_001,
            RunStatus::Discard,
            "plain: 1000001 is worse than 1000000",
        ),
    ] {
        let found = judged(&counting, 1_000_000.0, &[counted(instructions)]);
        assert_eq!((found.status, found.reason.as_str()), (status, reason));
    }
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
        candidate(&strict, &reference(100.0), std::slice::from_ref(&spike)),
        Verdict::Again(Inputs::Visible)
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
        candidate(&strict, &reference(100.0), &better[..1]),
        Verdict::Again(Inputs::Visible)
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

/// Returns a measurement in turn: of each pair the parent's number, then the candidate's.
fn in_turn(pairs: &[[f64; 2]]) -> MeasurementReport {
    let candidates: Vec<f64> = pairs.iter().map(|pair| pair[1]).collect();
    let mut report = measured("c", &candidates);
    report.against = pairs.iter().map(|pair| sample(pair[0])).collect();
    report
}

fn by(keep: Keep) -> Contract {
    let mut contract = contract();
    contract.rule.keep = keep;
    contract
}

#[test]
fn a_baseline_that_has_drifted_misleads_plain_and_not_what_is_measured_in_turn() {
    // The machine is a fifth slower than when the best was measured, and the change helps by a tenth.
    let slower = in_turn(&[[120.0, 108.0], [121.0, 109.0], [119.0, 107.0]]);
    let plain = judged(&contract(), 100.0, std::slice::from_ref(&slower));
    assert_eq!(plain.status, RunStatus::Discard);
    let found = judged(&by(Keep::Interleaved), 100.0, &[slower]);
    assert_eq!(found.status, RunStatus::Keep);
    assert_eq!(
        found.reason,
        "interleaved: it is better than its parent by 12ops in the median of 3 pairs"
    );
    // And the other way round: a change that does nothing while the machine becomes faster.
    let faster = in_turn(&[[80.0, 80.0], [79.0, 81.0], [81.0, 80.0]]);
    let plain = judged(&contract(), 100.0, std::slice::from_ref(&faster));
    assert_eq!(plain.status, RunStatus::Keep);
    let found = judged(&by(Keep::Interleaved), 100.0, &[faster]);
    assert_eq!(
        found.reason,
        "interleaved: it is equal to its parent in the median of 3 pairs"
    );
}

#[test]
fn a_least_gain_holds_for_pairs_too() {
    let mut least = by(Keep::Interleaved);
    least.rule.least_permille = 100;
    let found = judged(&least, 1.0, &[in_turn(&[[100.0, 91.0]])]);
    assert_eq!(
        found.reason,
        "interleaved: it is better than its parent by too little, by 9ops in one pair"
    );
    let found = judged(&least, 1.0, &[in_turn(&[[100.0, 90.0]])]);
    assert_eq!(found.status, RunStatus::Keep);
}

#[test]
fn signed_ranks_are_looked_at_after_every_sixth_pair() {
    let ranked = by(Keep::Ranked);
    let clear: Vec<[f64; 2]> = (1..=6).map(|n| [100.0, 99.0 - f64::from(n)]).collect();
    let found = judged(&ranked, 1.0, &[in_turn(&clear)]);
    assert_eq!(found.status, RunStatus::Keep);
    assert_eq!(
        found.reason,
        "ranked: the signed ranks of 6 pairs have the probability 0.0156 without any gain"
    );
    let mixed = [
        [100.0, 99.0],
        [100.0, 98.0],
        [100.0, 97.0],
        [100.0, 96.0],
        [100.0, 95.0],
        [100.0, 101.5],
    ];
    let once = in_turn(&mixed);
    assert_eq!(
        candidate(&ranked, &reference(1.0), std::slice::from_ref(&once)),
        Verdict::Again(Inputs::Visible)
    );
    let twice = judged(&ranked, 1.0, &[once.clone(), once]);
    assert_eq!(twice.status, RunStatus::Keep, "{}", twice.reason);
    let spike = [
        [100.0, 20.0],
        [100.0, 101.0],
        [100.0, 102.0],
        [100.0, 103.0],
        [100.0, 104.0],
        [100.0, 105.0],
    ];
    let found = judged(&ranked, 1.0, &[in_turn(&spike)]);
    assert_eq!(found.status, RunStatus::Discard, "{}", found.reason);
}

#[test]
fn a_lucky_spike_is_kept_by_plain_and_by_no_strict_rule() {
    // One run in six is lucky, whatever was changed; here it is the first.
    let spike = [
        [100.0, 70.0],
        [100.0, 100.0],
        [100.0, 101.0],
        [100.0, 100.0],
        [100.0, 101.0],
        [100.0, 102.0],
    ];
    let first = measured("c", &[70.0]);
    assert_eq!(
        judged(&contract(), 100.0, std::slice::from_ref(&first)).status,
        RunStatus::Keep
    );
    let again = measured("c", &[100.0]);
    let confirmed = judged(&by(Keep::Confirm), 100.0, &[first, again]);
    assert_eq!(confirmed.status, RunStatus::Discard);
    for keep in [Keep::Interleaved, Keep::Paired, Keep::Ranked] {
        let found = judged(&by(keep), 100.0, &[in_turn(&spike)]);
        assert_eq!(found.status, RunStatus::Discard, "{}", found.reason);
    }
}

#[test]
fn what_gains_on_the_inputs_that_it_knows_only_is_discarded() {
    let mut strict = contract();
    strict.held_back = Some(held_back_set());
    let seen = measured("c", &[10.0]);
    assert_eq!(
        candidate(&strict, &reference(100.0), std::slice::from_ref(&seen)),
        Verdict::Again(Inputs::HeldBack)
    );
    let held_back = |parent: f64, found: f64| MeasurementReport {
        held_back: true,
        checks: None,
        ..in_turn(&[[parent, found]])
    };
    for (found, expected) in [
        (130.0, "it is equal to its parent in one pair"),
        (131.0, "it is worse than its parent by 1ops in one pair"),
    ] {
        let all = [seen.clone(), held_back(130.0, found)];
        let special = judged(&strict, 100.0, &all);
        assert_eq!(special.status, RunStatus::Discard);
        assert_eq!(
            special.reason,
            format!("plain: 10ops is better than 100ops, but on the held-back inputs {expected}")
        );
    }
    let real = judged(&strict, 100.0, &[seen.clone(), held_back(130.0, 20.0)]);
    assert_eq!(
        (real.status, real.metric),
        (RunStatus::Keep, Some(number(10.0)))
    );
    let mut crashed = held_back(130.0, 20.0);
    crashed.samples[0].run = ended(Some(1), false);
    assert_eq!(
        judged(&strict, 100.0, &[seen, crashed]).status,
        RunStatus::Crash
    );
}

#[test]
fn a_line_that_the_baseline_did_not_print_is_not_believed() {
    let mut more = measured("c", &[1.0]);
    more.samples[0].readings[0].lines = 2;
    let said = "`METRIC ops=…` was printed 2 times in one run, at most 1 by the baseline: something \
                else than benchmark.sh may print it";
    check(&[more.clone()], RunStatus::Crash, said);
    // A benchmark that says it after each of its rounds is believed as before.
    let rounds = Reference {
        lines: 2,
        ..reference(100.0)
    };
    let found = candidate(&contract(), &rounds, &[more]);
    assert!(matches!(found, Verdict::Decided(judged) if judged.status == RunStatus::Keep));
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
        if let Verdict::Decided(judged) = candidate(&contract, &Reference { best, lines: 1 }, &[one])
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
            if let Verdict::Decided(_) = candidate(&strict, &reference(1.0), &all) {
                return Ok(());
            }
            prop_assert!(all.len() < PAIRS_MAX);
        }
    }
}
