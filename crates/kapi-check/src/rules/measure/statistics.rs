//! What a few numbers say: their middle, how far they scatter, and whether one is better than another.
//!
//! Robust against single outliers, because a busy machine makes some. Nothing here decides.

use crate::rules::measure::number::Number;
use crate::rules::measure::results::Results;

/// The wins that a win weighs in the sequential sign test, in thousandths of a nat: the logarithm of
/// 0.85 over 0.5.
const WIN: i64 = 531;
/// What a loss weighs: the logarithm of 0.15 over 0.5.
const LOSS: i64 = -1204;
/// At this weight it is better: the logarithm of 0.9 over 0.05, so that at most 5 % of the changes
/// without an effect get here.
const BETTER_AT: i64 = 2890;
/// At this weight it is not: the logarithm of 0.1 over 0.95, so that at most 10 % of the changes that
/// win 85 % of their pairs get here.
const NOT_BETTER_AT: i64 = -2251;

/// Returns the middle number, or the mean of the two in the middle.
#[must_use]
pub fn median(numbers: &[Number]) -> Option<Number> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get(middle.checked_sub(1)?)?;
    Number::new(f64::midpoint(lower.get(), upper.get()))
}

/// Returns the median distance from the median: how far the numbers scatter, whatever a few outliers
/// do. `None` of fewer than two.
#[must_use]
pub fn scatter(numbers: &[Number]) -> Option<Number> {
    if numbers.len() < 2 {
        return None;
    }
    let middle = median(numbers)?.get();
    let away = numbers.iter().map(|number| (number.get() - middle).abs());
    let away: Option<Vec<Number>> = away.map(Number::new).collect();
    median(&away?)
}

/// Returns the confidence in a gain over all results, see [`Results::confidence`].
#[must_use]
pub fn confidence(results: &[Number], gain: f64) -> Option<Number> {
    let mut all = Results::default();
    for result in results {
        all.add(*result);
    }
    all.confidence(gain)
}

/// What a sequential test says so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequential {
    /// It is better.
    Better,
    /// It is not, or not by enough to be seen.
    NotBetter,
    /// One more pair is needed.
    Undecided,
}

/// Tests pairs that were measured in turn, in their order: whether the second of each wins. A draw is
/// a loss, because only what is better is kept.
#[must_use]
pub fn sign_test(wins: &[bool]) -> Sequential {
    let mut weight = 0_i64;
    for is_win in wins {
        weight = weight.saturating_add(if *is_win { WIN } else { LOSS });
        if weight >= BETTER_AT {
            return Sequential::Better;
        }
        if weight <= NOT_BETTER_AT {
            return Sequential::NotBetter;
        }
    }
    Sequential::Undecided
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::{Sequential, confidence, median, scatter, sign_test};
    use crate::rules::measure::number::Number;

    fn numbers(all: &[f64]) -> Vec<Number> {
        all.iter().map(|it| Number::new(*it).unwrap()).collect()
    }

    #[test]
    fn the_middle_and_the_scatter_do_not_see_an_outlier() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&numbers(&[3.0])), Number::new(3.0));
        assert_eq!(median(&numbers(&[1.0, 4.0])), Number::new(2.5));
        let noisy = numbers(&[10.0, 11.0, 9.0, 1e9, 10.0]);
        assert_eq!(median(&noisy), Number::new(10.0));
        assert_eq!(scatter(&noisy), Number::new(1.0));
        assert_eq!(scatter(&numbers(&[1.0])), None);
    }

    #[test]
    fn confidence_is_the_references_with_a_sign() {
        let results = numbers(&[100.0, 102.0, 98.0, 80.0]);
        assert_eq!(confidence(&results, 20.0), Number::new(10.0));
        assert_eq!(confidence(&results, -20.0), Number::new(-10.0));
        assert_eq!(confidence(&results[..2], 20.0), None);
        assert_eq!(confidence(&numbers(&[5.0, 5.0, 5.0]), 1.0), None);
    }

    #[test]
    fn six_wins_in_a_row_are_enough_and_two_losses_are() {
        assert_eq!(sign_test(&[true; 5]), Sequential::Undecided);
        assert_eq!(sign_test(&[true; 6]), Sequential::Better);
        assert_eq!(sign_test(&[false]), Sequential::Undecided);
        assert_eq!(sign_test(&[false; 2]), Sequential::NotBetter);
        assert_eq!(sign_test(&[]), Sequential::Undecided);
    }

    /// Returns what comes of a test that so far is undecided, with its wins, by one more pair: the
    /// part of it that is taken for better, and what stays open.
    fn one_more(wins: &[bool], win: f64) -> (f64, Vec<(Vec<bool>, f64)>) {
        let mut better = 0.0;
        let mut open = Vec::new();
        for (is_win, part) in [(true, win), (false, 1.0 - win)] {
            let more = [wins, &[is_win]].concat();
            match sign_test(&more) {
                Sequential::Better => better += part,
                Sequential::NotBetter => {}
                Sequential::Undecided => open.push((more, part)),
            }
        }
        (better, open)
    }

    /// The exact probability that a change is taken for better within so many pairs, by going through
    /// every state of the test: as many wins of as many pairs are one state.
    fn taken_for_better(win: f64, pairs: usize) -> f64 {
        let mut open = vec![(Vec::new(), 1.0)];
        let mut better = 0.0;
        for _ in 0..pairs {
            let mut all = Vec::new();
            for (wins, weight) in open {
                let (found, more) = one_more(&wins, win);
                better += weight * found;
                let more = more.into_iter().map(|(wins, part)| (wins, weight * part));
                all.extend(more);
            }
            let mut next: BTreeMap<usize, (Vec<bool>, f64)> = BTreeMap::new();
            for (wins, weight) in all {
                let n = wins.iter().filter(|it| **it).count();
                next.entry(n).or_insert((wins, 0.0)).1 += weight;
            }
            open = next.into_values().collect();
        }
        better
    }

    #[test]
    fn the_errors_of_the_sign_test_are_at_most_what_is_said() {
        let without_effect = taken_for_better(0.5, 40);
        assert!(without_effect <= 0.05, "{without_effect}");
        let with_effect = taken_for_better(0.85, 40);
        assert!(with_effect >= 0.9, "{with_effect}");
    }

    proptest! {
        #[test]
        fn order_and_shift_do_not_change_the_scatter(mut all in vec(-1000_i32..1000, 2..30), shift in -50_i32..50) {
            let as_numbers = |all: &[i32], by: i32| -> Vec<Number> {
                all.iter().filter_map(|it| Number::new(f64::from(*it + by))).collect()
            };
            let before = scatter(&as_numbers(&all, 0));
            all.reverse();
            prop_assert_eq!(before, scatter(&as_numbers(&all, shift)));
            let middle = median(&as_numbers(&all, 0)).unwrap();
            let below = all.iter().filter(|it| f64::from(**it) < middle.get()).count();
            prop_assert!(below * 2 <= all.len());
        }
    }
}
