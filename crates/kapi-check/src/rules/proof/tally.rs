//! How many tests a run says that it ran: read from the closing lines of test runners.
//!
//! A line counts only in the exact form of a known runner, and several are summed. What remains
//! forgeable: code under test that prints such a line itself, where the runner does not capture what
//! it prints. So a tally only ever speaks against a change: that tests passed is never read from it.

mod closing;
mod form;
mod junit;
mod plain;

use std::fmt;

use serde::{Deserialize, Serialize};

use self::closing::ClosingReading;

/// The most lines of a run that are read, from its end.
const LINES_MAX: usize = 200_000;

/// How many tests ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TestTally {
    /// They passed.
    pub passed: u64,
    /// They failed, or could not be run.
    pub failed: u64,
    /// They were not run, or their failure was expected.
    pub skipped: u64,
    /// Whether the runner says this only where a test failed, and nothing where all passed.
    pub only_red: bool,
    /// Whether the runner says that it ran nothing because files of tests could not be loaded.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub broken_off: bool,
}

impl TestTally {
    /// Returns how many tests were run.
    #[must_use]
    pub const fn run(&self) -> u64 {
        self.passed.saturating_add(self.failed)
    }

    /// Tells whether it ended before most of the tests of another run were known, skipped ones included.
    const fn knows_less_than(&self, other: &Self) -> bool {
        self.broken_off && self.run().saturating_add(self.skipped) < other.passed
    }

    const fn add(&mut self, other: Self) {
        self.passed = self.passed.saturating_add(other.passed);
        self.failed = self.failed.saturating_add(other.failed);
        self.skipped = self.skipped.saturating_add(other.skipped);
        self.only_red |= other.only_red;
        self.broken_off |= other.broken_off;
    }
}

impl fmt::Display for TestTally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

/// Tests that the base ran and a change no longer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TestsLost {
    /// The runner's closing line is not there.
    NoClosingLine {
        /// What the base said.
        before: TestTally,
    },
    /// Fewer tests were run.
    Fewer {
        /// On the base.
        before: TestTally,
        /// With the change.
        now: TestTally,
    },
    /// As many tests failed, although the run ended well.
    StillFail {
        /// On the base, which ended badly.
        before: TestTally,
        /// With the change.
        now: TestTally,
    },
    /// More tests were skipped.
    MoreSkipped {
        /// On the base.
        before: TestTally,
        /// With the change.
        now: TestTally,
    },
}

impl fmt::Display for TestsLost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoClosingLine { before } => write!(
                out,
                "the run on the base ended with {before}; with the change, the runner's summary \
                 line is missing"
            ),
            Self::Fewer { before, now } => write!(
                out,
                "{} tests ran on the base, {} with the change",
                before.run(),
                now.run()
            ),
            Self::StillFail { before, now } => write!(
                out,
                "{} tests failed on the base and {} with the change, although the command exited \
                 with 0",
                before.failed, now.failed
            ),
            Self::MoreSkipped { before, now } => write!(
                out,
                "{} tests were skipped on the base, {} with the change",
                before.skipped, now.skipped
            ),
        }
    }
}

/// Reads how many tests a run says that it ran; `None` without a closing line. Colours and other
/// escapes are taken out first.
#[must_use]
pub fn tally(output: &str) -> Option<TestTally> {
    let plain = plain::plain(output);
    let lines: Vec<&str> = plain.lines().collect();
    let last = lines.get(lines.len().saturating_sub(LINES_MAX)..);
    let mut reading = ClosingReading::default();
    for line in last.unwrap_or_default() {
        reading.read(line);
    }
    reading.close()
}

/// Reads how many tests a file in the form of `JUnit` XML names; `None` where it is no such file.
#[must_use]
pub fn junit(text: &str) -> Option<TestTally> {
    junit::read(text)
}

/// Returns an output as text alone, without colours and other escapes.
#[must_use]
pub fn without_escapes(output: &str) -> String {
    plain::plain(output)
}

/// Compares a run with one on the base. New tests never hurt; a base that did not get as far as its
/// closing line compares with nothing, and one whose tests could not be loaded says nothing of those that
/// are skipped.
#[must_use]
pub fn lost(base: Option<&TestTally>, now: Option<&TestTally>) -> Option<TestsLost> {
    let before = *base?;
    let Some(now) = now.copied() else {
        return (!before.only_red).then_some(TestsLost::NoClosingLine { before });
    };
    if now.run() < before.run() {
        return Some(TestsLost::Fewer { before, now });
    }
    let is_more = now.skipped > before.skipped && !before.knows_less_than(&now);
    is_more.then_some(TestsLost::MoreSkipped { before, now })
}

#[cfg(test)]
mod tests;
