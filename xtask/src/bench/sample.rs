//! Samples taken by turns, and what they amount to.
//!
//! A machine's speed drifts; two things measured one right after the other drift together. So
//! the ratio is the median of the rounds' ratios, not the ratio of two medians. Knows no unit.

use std::time::Duration;

/// Rounds that are run and thrown away, so that both sides find their files in memory.
const WARM_UP: usize = 3;

/// One way to do something once; returns how long it took.
pub(super) type Work<'a> = &'a mut dyn FnMut() -> anyhow::Result<Duration>;

/// Two things measured by turns: A B A B.
#[derive(Debug, Default)]
pub(super) struct Pair {
    ours: Vec<f64>,
    peer: Vec<f64>,
}

/// The middle and the ends of some samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    /// What 99 of 100 samples do not exceed; of fewer samples, the greatest.
    pub(super) p99: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

/// Measures two things by turns.
pub(super) fn by_turns(rounds: usize, ours: Work<'_>, peer: Work<'_>) -> anyhow::Result<Pair> {
    let mut pair = Pair::default();
    for round in 0..WARM_UP + rounds {
        let (first, second) = (ours()?, peer()?);
        if round >= WARM_UP {
            pair.add(first, second);
        }
    }
    Ok(pair)
}

impl Pair {
    /// Adds a round's times.
    pub(super) fn add(&mut self, ours: Duration, peer: Duration) {
        self.add_numbers(ours.as_secs_f64(), peer.as_secs_f64());
    }

    /// Adds what a round gave, in whatever unit the table names.
    pub(super) fn add_numbers(&mut self, ours: f64, peer: f64) {
        self.ours.push(ours);
        self.peer.push(peer);
    }

    /// Returns how many rounds count.
    pub(super) fn rounds(&self) -> usize {
        self.ours.len()
    }

    /// Returns what our side gave.
    pub(super) fn ours(&self) -> Spread {
        Spread::of(self.ours.clone())
    }

    /// Returns what the other side gave.
    pub(super) fn peer(&self) -> Spread {
        Spread::of(self.peer.clone())
    }

    /// Returns ours divided by the peer's, round by round.
    pub(super) fn ratio(&self) -> Spread {
        Spread::of(
            self.ours
                .iter()
                .zip(&self.peer)
                .map(|(ours, peer)| ours / peer)
                .collect(),
        )
    }
}

impl Spread {
    /// Sums up samples; no samples make zeros.
    fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let middle = samples.len() / 2;
        let at = |index: usize| samples.get(index).copied().unwrap_or_default();
        let median = if samples.len().is_multiple_of(2) {
            f64::midpoint(at(middle.saturating_sub(1)), at(middle))
        } else {
            at(middle)
        };
        let last = samples.len().saturating_sub(1);
        Self {
            median,
            p99: at((samples.len() * 99)
                .div_ceil(100)
                .saturating_sub(1)
                .min(last)),
            min: at(0),
            max: at(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Spread, by_turns};

    #[test]
    fn ratios_are_taken_round_by_round() {
        let mut order = String::new();
        let order = std::cell::RefCell::new(&mut order);
        let mut ours = [9, 9, 9, 2, 40, 6].into_iter().map(Duration::from_secs);
        let mut peer = [1, 1, 1, 1, 10, 6].into_iter().map(Duration::from_secs);
        let pair = by_turns(
            3,
            &mut || {
                order.borrow_mut().push('a');
                Ok(ours.next().unwrap())
            },
            &mut || {
                order.borrow_mut().push('b');
                Ok(peer.next().unwrap())
            },
        )
        .unwrap();
        assert_eq!(order.into_inner().as_str(), "abababababab");
        assert_eq!(pair.rounds(), 3);
        assert_eq!(
            pair.ratio(),
            Spread {
                median: 2.0,
                p99: 4.0,
                min: 1.0,
                max: 4.0
            }
        );
        assert_eq!(
            pair.ours(),
            Spread {
                median: 6.0,
                p99: 40.0,
                min: 2.0,
                max: 40.0
            }
        );
    }

    #[test]
    fn an_even_number_has_its_middle_between_two() {
        let spread = Spread::of(vec![4.0, 1.0, 2.0, 3.0]);
        assert_eq!(
            spread,
            Spread {
                median: 2.5,
                p99: 4.0,
                min: 1.0,
                max: 4.0
            }
        );
    }

    #[test]
    fn one_of_a_hundred_may_be_slower_than_the_99th_percentile() {
        let samples = |n: u32| (1..=n).map(f64::from).collect();
        assert_eq!(Spread::of(samples(100)).p99.to_string(), "99");
        assert_eq!(Spread::of(samples(200)).p99.to_string(), "198");
        assert_eq!(Spread::of(samples(20)).p99.to_string(), "20");
    }
}
