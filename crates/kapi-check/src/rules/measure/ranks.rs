//! A signed-rank test of pairs that looks several times: how large the differences are counts, not only
//! their signs.
//!
//! Of a change without effect each difference is as likely as its opposite, because which of a pair is
//! measured first changes in turn; nothing else is assumed of the noise. The probability is counted out
//! exactly for the ranks at hand, ties included.

use crate::rules::measure::statistics::Sequential;

/// After how many pairs it looks, and at most how many in a million of the changes without any effect
/// are taken for better there: 5 % together. After six pairs only six wins will do.
const LOOKS: [(usize, u64); 5] = [
    (6, 15_625),
    (12, 8_590),
    (18, 8_590),
    (24, 8_590),
    (30, 8_590),
];
/// What levels are of.
const MILLION: u64 = 1_000_000;

/// What a test has found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankTest {
    /// Whether it is better.
    pub verdict: Sequential,
    /// After how many pairs that was found, or the last look was.
    pub pairs: usize,
    /// How probable ranks as good as these are without any effect.
    pub probability: f64,
}

/// Tests by how much the second of each pair is better than the first, in their order.
#[must_use]
pub fn ranked_test(gains: &[f64]) -> RankTest {
    let mut found = RankTest {
        verdict: Sequential::Undecided,
        pairs: 0,
        probability: 1.0,
    };
    for (n_look, (pairs, level)) in (1..).zip(LOOKS) {
        let Some(seen) = gains.get(..pairs) else {
            return found;
        };
        let ranks = doubled_ranks(seen);
        let won: usize = ranks
            .iter()
            .filter(|rank| rank.is_win)
            .map(|rank| rank.doubled)
            .sum();
        let all: usize = ranks.iter().map(|rank| rank.doubled).sum();
        let (as_good, ways) = ways_as_good(&ranks, won);
        #[expect(clippy::cast_precision_loss, reason = "at most two to the thirtieth")]
        let probability = as_good as f64 / ways as f64;
        let verdict = if as_good.saturating_mul(MILLION) <= level.saturating_mul(ways) {
            Sequential::Better
        } else if won * 2 <= all || n_look == LOOKS.len() {
            Sequential::NotBetter
        } else {
            Sequential::Undecided
        };
        found = RankTest {
            verdict,
            pairs,
            probability,
        };
        if verdict != Sequential::Undecided {
            return found;
        }
    }
    found
}

/// The rank of one difference by its size, doubled so that ties share whole numbers.
struct DoubledRank {
    doubled: usize,
    is_win: bool,
}

/// A draw has the lowest rank and is no win, because only what is better is kept.
fn doubled_ranks(gains: &[f64]) -> Vec<DoubledRank> {
    let mut sorted: Vec<f64> = gains.to_vec();
    sorted.sort_by(|one, other| one.abs().total_cmp(&other.abs()));
    let place = |gain: f64| {
        let below = sorted.iter().filter(|it| it.abs() < gain.abs()).count();
        let equal = sorted.iter().filter(|it| it.abs() == gain.abs()).count();
        below * 2 + equal + 1
    };
    let ranks = sorted.iter().map(|gain| DoubledRank {
        doubled: place(*gain),
        is_win: *gain > 0.0,
    });
    ranks.collect()
}

/// Counts in how many of all ways to choose the signs the winners have as much, and all the ways.
fn ways_as_good(ranks: &[DoubledRank], won: usize) -> (u64, u64) {
    let most: usize = ranks.iter().map(|rank| rank.doubled).sum();
    let mut ways = vec![0_u64; most + 1];
    if let Some(none) = ways.first_mut() {
        *none = 1;
    }
    for rank in ranks {
        for sum in (rank.doubled..=most).rev() {
            let without = ways.get(sum - rank.doubled).copied().unwrap_or(0);
            if let Some(with) = ways.get_mut(sum) {
                *with += without;
            }
        }
    }
    let as_good = ways.get(won..).unwrap_or_default().iter().sum();
    (as_good, ways.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::{LOOKS, MILLION, RankTest, ranked_test};
    use crate::rules::measure::statistics::Sequential;

    fn verdict(gains: &[f64]) -> Sequential {
        ranked_test(gains).verdict
    }

    #[test]
    fn six_wins_are_enough_and_what_looks_no_better_is_given_up() {
        let six: Vec<f64> = (1..=6).map(f64::from).collect();
        assert_eq!(verdict(&six[..5]), Sequential::Undecided);
        assert_eq!(
            ranked_test(&six),
            RankTest {
                verdict: Sequential::Better,
                pairs: 6,
                probability: 1.0 / 64.0
            }
        );
        assert_eq!(verdict(&[-1.0; 6]), Sequential::NotBetter);
        assert_eq!(
            verdict(&[0.0; 6]),
            Sequential::NotBetter,
            "a draw is no win"
        );
        // One small loss among large gains needs another look; a large loss weighs more.
        let small = [-0.1, 1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(verdict(&small), Sequential::Undecided);
        assert_eq!(verdict(&[small, small].concat()), Sequential::Better);
        let large = [-20.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(verdict(&[large; 5].concat()), Sequential::NotBetter);
    }

    #[test]
    fn the_levels_are_five_percent_together() {
        let levels: u64 = LOOKS.iter().map(|(_, level)| level).sum();
        assert!(levels <= MILLION / 20);
        assert!(LOOKS.windows(2).all(|two| two[0].0 < two[1].0));
    }

    /// A number between -1 and 1, twelve of which together are nearly normal.
    struct Noise(u64);

    impl Noise {
        fn next(&mut self) -> f64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let high = u32::try_from(self.0 >> 33).unwrap();
            f64::from(high) / f64::from(1_u32 << 30) - 1.0
        }

        /// A normal difference that scatters by one.
        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.next()).sum::<f64>() / 2.0
        }

        /// One with rare runs that are far out.
        fn wild(&mut self) -> f64 {
            let rare = self.next();
            if rare.abs() > 0.8 {
                30.0 * self.next()
            } else {
                self.next()
            }
        }
    }

    fn better(n: u32, mut gain: impl FnMut() -> f64) -> u32 {
        let experiments = (0..n).map(|_| {
            let gains: Vec<f64> = (0..30).map(|_| gain()).collect();
            u32::from(verdict(&gains) == Sequential::Better)
        });
        experiments.sum()
    }

    #[test]
    fn the_errors_are_at_most_what_is_said() {
        let mut noise = Noise(1);
        let kept = better(3_000, || noise.normal());
        assert!(kept <= 150, "{kept} of 3000 without effect");
        let kept = better(3_000, || noise.wild());
        assert!(kept <= 150, "{kept} of 3000 without effect, wild");
        let kept = better(500, || noise.normal() + 1.0);
        assert!(kept >= 450, "{kept} of 500 with a gain");
    }
}
