//! Samples taken by turns, and what they amount to.
//!
//! A machine's speed drifts; two things measured one right after the other drift together. So
//! the ratio is the median of the rounds' ratios, not the ratio of two medians.

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
    pub(super) min: f64,
    pub(super) max: f64,
}

/// Measures two things by turns.
pub(super) fn by_turns(rounds: usize, ours: Work<'_>, peer: Work<'_>) -> anyhow::Result<Pair> {
    let mut pair = Pair::default();
    for round in 0..WARM_UP + rounds {
        let (first, second) = (ours()?, peer()?);
        if round >= WARM_UP {
            pair.ours.push(first.as_secs_f64());
            pair.peer.push(second.as_secs_f64());
        }
    }
    Ok(pair)
}

impl Pair {
    /// Returns how many rounds count.
    pub(super) fn rounds(&self) -> usize {
        self.ours.len()
    }

    /// Returns the seconds of our side.
    pub(super) fn ours(&self) -> Spread {
        Spread::of(self.ours.clone())
    }

    /// Returns the seconds of the other side.
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
        Self {
            median,
            min: at(0),
            max: at(samples.len().saturating_sub(1)),
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
                min: 1.0,
                max: 4.0
            }
        );
        assert_eq!(
            pair.ours(),
            Spread {
                median: 6.0,
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
                min: 1.0,
                max: 4.0
            }
        );
    }
}
