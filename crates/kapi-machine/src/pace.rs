//! How often a drive looks and reports while an effect runs.
//!
//! Numbers alone: the drive keeps to them, the meter is told what is due.

/// How often a drive looks and reports while an effect runs, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Between two looks at the log and the interrupt.
    pub look_ms: u64,
    /// Between two reports of use.
    pub progress_ms: u64,
    /// Between two reports of time alone, which is what a kill can make forget.
    pub heartbeat_ms: u64,
}

impl Pace {
    /// The pace of every real run.
    pub const STANDARD: Self = Self {
        look_ms: 200,
        progress_ms: 1_000,
        heartbeat_ms: 30_000,
    };
}
