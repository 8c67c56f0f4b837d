//! Chance that comes out the same every time.

/// SplitMix64 (Steele, Lea, Flood 2014): small, and good enough to draw executors and repositories with.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Begins at a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns any number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Tells whether something that happens in so many of a hundred cases happens.
    pub const fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    /// Returns a number from `low` to `high`, both included.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        let span = u64::from(high.saturating_sub(low)) + 1;
        low + u32::try_from(self.next() % span).unwrap_or(0)
    }
}
