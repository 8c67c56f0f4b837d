//! Wall-clock time as data.
//!
//! The system clock is read here and nowhere else; tests use a clock that stands still.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A source of wall-clock time.
pub trait Clock: Send + Sync {
    /// Returns milliseconds since the Unix epoch, UTC.
    fn now_ms(&self) -> i64;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the clock"
    )]
    fn now_ms(&self) -> i64 {
        #[cfg(debug_assertions)]
        if let Some(now_ms) = script::now_ms() {
            return now_ms;
        }
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

/// A clock that moves one millisecond at each reading, for tests that must be repeatable.
#[derive(Debug)]
pub struct StepClock(AtomicI64);

impl StepClock {
    /// Returns a clock whose first reading is `start_ms`.
    #[must_use]
    pub fn new(start_ms: i64) -> Self {
        Self(AtomicI64::new(start_ms))
    }
}

impl Clock for StepClock {
    fn now_ms(&self) -> i64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// Returns milliseconds since the first call in this process.
#[must_use]
pub fn monotonic_ms() -> u64 {
    #[cfg(debug_assertions)]
    if let Some(now_ms) = script::now_ms() {
        return u64::try_from(now_ms).unwrap_or_default();
    }
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

/// Time as a test wants it to be for a whole program; there is no such thing in a release.
#[cfg(debug_assertions)]
mod script {
    use std::path::PathBuf;
    use std::sync::OnceLock;
    use std::{env, fs};

    /// Names a file with milliseconds since the Unix epoch, which is read each time.
    const VARIABLE: &str = "KAPI_TEST_CLOCK";

    /// Returns the time of the file, where there is one.
    pub(super) fn now_ms() -> Option<i64> {
        static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
        let file = FILE.get_or_init(|| env::var_os(VARIABLE).map(PathBuf::from));
        fs::read_to_string(file.as_ref()?).ok()?.trim().parse().ok()
    }
}
