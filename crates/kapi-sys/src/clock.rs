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
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let now_ms = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        #[cfg(debug_assertions)]
        return match script::time() {
            Some(script::ScriptedTime::Stopped(at_ms)) => at_ms,
            Some(script::ScriptedTime::Shifted(by_ms)) => now_ms.saturating_add(by_ms),
            None => now_ms,
        };
        #[cfg(not(debug_assertions))]
        now_ms
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
    if let Some(script::ScriptedTime::Stopped(at_ms)) = script::time() {
        return u64::try_from(at_ms).unwrap_or_default();
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

    /// Names a file, which is read each time: with milliseconds since the Unix epoch, or with a sign
    /// before what is added to the time of day.
    const VARIABLE: &str = "KAPI_TEST_CLOCK";

    /// What the file says.
    pub(super) enum ScriptedTime {
        /// It is this time, and stays so.
        Stopped(i64),
        /// The time of day is off by so many milliseconds, and goes on.
        Shifted(i64),
    }

    /// Returns what the file says, where there is one.
    pub(super) fn time() -> Option<ScriptedTime> {
        static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
        let file = FILE.get_or_init(|| env::var_os(VARIABLE).map(PathBuf::from));
        let text = fs::read_to_string(file.as_ref()?).ok()?;
        let number = text.trim().parse().ok()?;
        Some(if text.starts_with(['+', '-']) {
            ScriptedTime::Shifted(number)
        } else {
            ScriptedTime::Stopped(number)
        })
    }
}
