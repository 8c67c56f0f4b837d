//! What a running effect has used and not yet reported, and when that is due.
//!
//! Pure: time comes in as milliseconds of a clock that never goes back.

use kapi_core::usage::Usage;

use crate::pace::Pace;
use crate::watch::Activity;

/// Use since the last report.
#[derive(Debug)]
pub struct Meter {
    is_timed: bool,
    since_ms: u64,
    usage: Usage,
}

/// What was used since the last report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeterReading {
    /// Tokens and money.
    pub usage: Usage,
    /// Milliseconds.
    pub elapsed_ms: u64,
}

impl Meter {
    /// Begins to measure tokens, money and time.
    pub fn start(now_ms: u64) -> Self {
        Self {
            is_timed: true,
            since_ms: now_ms,
            usage: Usage::default(),
        }
    }

    /// Begins to measure tokens and money only, for an effect that only waits.
    pub fn start_untimed(now_ms: u64) -> Self {
        Self {
            is_timed: false,
            since_ms: now_ms,
            usage: Usage::default(),
        }
    }

    /// Counts what a model used.
    pub const fn notice(&mut self, activity: &Activity) {
        match activity {
            Activity::Used(usage) => self.usage.add(usage),
            Activity::Tool { .. }
            | Activity::Text { .. }
            | Activity::Verifying { .. }
            | Activity::Note { .. } => {}
        }
    }

    /// Returns the tokens and the money that were used since the last report.
    pub const fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns what was used since the last report.
    pub const fn reading(&self, now_ms: u64) -> MeterReading {
        let elapsed_ms = if self.is_timed {
            now_ms.saturating_sub(self.since_ms)
        } else {
            0
        };
        MeterReading {
            usage: self.usage,
            elapsed_ms,
        }
    }

    /// Tells whether a report is due: use once in a while, time now and then.
    pub fn is_due(&self, now_ms: u64, pace: &Pace) -> bool {
        let reading = self.reading(now_ms);
        let has_used = !reading.usage.is_zero();
        (has_used && now_ms.saturating_sub(self.since_ms) >= pace.progress_ms)
            || reading.elapsed_ms >= pace.heartbeat_ms
    }

    /// Returns what was used since the last report, and begins anew.
    pub fn take(&mut self, now_ms: u64) -> MeterReading {
        let reading = self.reading(now_ms);
        self.since_ms = now_ms;
        self.usage = Usage::default();
        reading
    }
}
