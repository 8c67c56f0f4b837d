//! How long an effect that failed is left alone before it is tried again.
//!
//! Pure: durations only.

/// How long to wait after failures in a row, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delays {
    /// After the first one.
    pub first_ms: u64,
    /// How many times as long after each further one.
    pub factor: u64,
    /// The longest.
    pub max_ms: u64,
}

impl Delays {
    /// The delays of every real run.
    pub const STANDARD: Self = Self {
        first_ms: 5_000,
        factor: 3,
        max_ms: 300_000,
    };
    /// No delay at all.
    pub const NONE: Self = Self {
        first_ms: 0,
        factor: 1,
        max_ms: 0,
    };

    /// Returns how long to wait after this many failures in a row.
    #[must_use]
    pub const fn after(&self, n_failures: u32) -> u64 {
        if n_failures == 0 {
            return 0;
        }
        let times = self.factor.saturating_pow(n_failures - 1);
        let ms = self.first_ms.saturating_mul(times);
        if ms < self.max_ms { ms } else { self.max_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::Delays;

    #[test]
    fn each_failure_waits_longer_up_to_a_limit() {
        let after = |n_failures| Delays::STANDARD.after(n_failures);
        let waits: Vec<u64> = (0..6).map(after).collect();
        assert_eq!(waits, [0, 5_000, 15_000, 45_000, 135_000, 300_000]);
        assert_eq!(after(u32::MAX), 300_000);
        assert_eq!(Delays::NONE.after(7), 0);
    }
}
