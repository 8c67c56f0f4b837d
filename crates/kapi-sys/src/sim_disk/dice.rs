//! The chance of a simulated crash, which follows from a seed.
//!
//! Knows nothing of disks.

/// Decisions that look random and follow from a seed (splitmix64).
pub(super) struct SeededDice(u64);

impl SeededDice {
    /// Returns the dice of a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to `most`, both included.
    pub(super) fn up_to(&mut self, most: usize) -> usize {
        let n_choices = (most as u64).saturating_add(1);
        usize::try_from(self.roll() % n_choices).unwrap_or(most)
    }

    /// Returns the first few bytes; how many follows from the seed.
    pub(super) fn prefix<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let len = self.up_to(bytes.len());
        bytes.get(..len).unwrap_or(bytes)
    }
}
