//! Mistakes that can be planted, to see whether the oracles notice.
//!
//! Names alone: each is made where the thing is done that it gets wrong.

/// A mistake that an oracle must notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// Files are never synced.
    NoFileSync,
    /// Directories are never synced.
    NoDirSync,
    /// Torn tails are never cut.
    NoTailRepair,
    /// Effects are performed before their intent is on disk.
    EffectBeforeIntent,
    /// Different effects share one id.
    ReusedEffectId,
    /// An agent that is started again finds what its cut-off attempt left.
    NoRestore,
    /// The proved commit goes to a branch of the person's.
    WrongBranch,
}

/// Every mistake there is.
pub const MISTAKES: [Mistake; 7] = [
    Mistake::NoFileSync,
    Mistake::NoDirSync,
    Mistake::NoTailRepair,
    Mistake::EffectBeforeIntent,
    Mistake::ReusedEffectId,
    Mistake::NoRestore,
    Mistake::WrongBranch,
];
