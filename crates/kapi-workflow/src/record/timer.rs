//! For how long somebody was at work since that was last reported, and when it is due again.
//!
//! Pure: time comes in as milliseconds of a clock that never goes back, so no wait for a person and no
//! dead process is counted. A crash forgets what was not reported yet.

use kapi_machine::pace::Pace;

/// Time at work since the last report.
#[derive(Debug, Default)]
pub(super) struct Timer {
    /// Milliseconds that are not reported yet.
    unreported_ms: u64,
    /// Since when somebody is at work.
    since_ms: Option<u64>,
}

impl Timer {
    /// Takes notice of how things stand now.
    pub(super) fn look(&mut self, now_ms: u64, is_at_work: bool) {
        if let Some(since_ms) = self.since_ms {
            let ms = now_ms.saturating_sub(since_ms);
            self.unreported_ms = self.unreported_ms.saturating_add(ms);
        }
        self.since_ms = is_at_work.then_some(now_ms);
    }

    /// Tells whether a report is due: now and then, and as soon as it uses up what is left.
    pub(super) const fn is_due(&self, left_ms: u64, pace: &Pace) -> bool {
        self.unreported_ms >= pace.heartbeat_ms || (left_ms > 0 && self.unreported_ms >= left_ms)
    }

    /// Returns the milliseconds since the last report, and begins anew.
    pub(super) const fn take(&mut self) -> u64 {
        std::mem::replace(&mut self.unreported_ms, 0)
    }
}

#[cfg(test)]
mod tests {
    use kapi_machine::pace::Pace;

    use super::Timer;

    #[test]
    fn only_work_is_counted_and_told_in_time() {
        let pace = Pace::STANDARD;
        let mut timer = Timer::default();
        timer.look(1_000, false);
        timer.look(9_000, true);
        timer.look(9_500, true);
        assert!(!timer.is_due(600, &pace));
        assert!(timer.is_due(500, &pace));
        assert!(!timer.is_due(0, &pace), "nothing is left to be used up");
        timer.look(10_000, false);
        timer.look(90_000, true);
        assert_eq!(timer.take(), 1_000);
        timer.look(90_000 + pace.heartbeat_ms, true);
        assert!(timer.is_due(u64::MAX, &pace));
        assert_eq!(timer.take(), pace.heartbeat_ms);
        assert_eq!(timer.take(), 0);
    }
}
