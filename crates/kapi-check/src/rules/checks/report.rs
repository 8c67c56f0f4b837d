//! How checks came out, and the words for it.
//!
//! A check passes with exit code 0 and in no other way; a skipped one neither passes nor fails.

use super::Check;

/// Characters of a check's output that are kept.
pub const OUTPUT_CHARS_MAX: usize = 4_000;

/// How one check came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckOutcome {
    /// It exited with 0.
    Passed,
    /// It exited with another code, or a signal ended it (128 and the signal).
    Failed {
        /// The code.
        code: i32,
    },
    /// It was killed at its time limit, with everything it had started.
    TimedOut,
    /// It was killed at another limit.
    OutOfResources {
        /// Which limit, for people.
        limit: String,
    },
    /// It was not run, or had nothing to check.
    Skipped {
        /// Why, as a fragment.
        reason: String,
    },
    /// It was stopped, or not begun, because all were stopped.
    Cancelled,
}

/// One check and how it came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckResult {
    /// The check.
    pub check: Check,
    /// How it came out.
    pub outcome: CheckOutcome,
    /// How long it took.
    pub duration_ms: u64,
    /// The end of what it said: standard output, then standard error.
    pub output: String,
}

/// How a project came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChecksReport {
    /// In the order of the roots and the verbs.
    pub checks: Vec<CheckResult>,
    /// How long all of it took.
    pub duration_ms: u64,
}

/// How many checks came out how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckCounts {
    /// Passed.
    pub passed: usize,
    /// Failed, at a limit or otherwise.
    pub failed: usize,
    /// Skipped.
    pub skipped: usize,
    /// Stopped.
    pub cancelled: usize,
}

impl CheckOutcome {
    /// Returns the one word for it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed { .. } => "failed",
            Self::TimedOut => "timed_out",
            Self::OutOfResources { .. } => "out_of_resources",
            Self::Skipped { .. } => "skipped",
            Self::Cancelled => "cancelled",
        }
    }

    /// Tells whether the project is to blame.
    #[must_use]
    pub const fn is_failure(&self) -> bool {
        match self {
            Self::Failed { .. } | Self::TimedOut | Self::OutOfResources { .. } => true,
            Self::Passed | Self::Skipped { .. } | Self::Cancelled => false,
        }
    }
}

impl ChecksReport {
    /// Counts how the checks came out.
    #[must_use]
    pub fn counts(&self) -> CheckCounts {
        let mut counts = CheckCounts::default();
        for checked in &self.checks {
            match &checked.outcome {
                CheckOutcome::Passed => counts.passed += 1,
                CheckOutcome::Failed { .. }
                | CheckOutcome::TimedOut
                | CheckOutcome::OutOfResources { .. } => {
                    counts.failed += 1;
                }
                CheckOutcome::Skipped { .. } => counts.skipped += 1,
                CheckOutcome::Cancelled => counts.cancelled += 1,
            }
        }
        counts
    }

    /// Returns the checks that failed.
    pub fn failures(&self) -> impl Iterator<Item = &CheckResult> {
        self.checks
            .iter()
            .filter(|checked| checked.outcome.is_failure())
    }
}

/// Joins two outputs and keeps the end, after a line that says so. `bytes_total` is what was said in
/// all, which may be more than is still there.
#[must_use]
pub fn capped(stdout: &str, stderr: &str, bytes_total: u64) -> String {
    let is_parted = stdout.is_empty() || stdout.ends_with('\n') || stderr.is_empty();
    let between = if is_parted { "" } else { "\n" };
    let text = plain(&format!("{stdout}{between}{stderr}"));
    let n_chars = text.chars().count();
    let held = stdout.len().saturating_add(stderr.len());
    let is_whole = bytes_total <= u64::try_from(held).unwrap_or(u64::MAX);
    if n_chars <= OUTPUT_CHARS_MAX && is_whole {
        return text;
    }
    let end: String = text
        .chars()
        .skip(n_chars.saturating_sub(OUTPUT_CHARS_MAX))
        .collect();
    format!("[truncated: only the end of {bytes_total} bytes of output is kept]\n{end}")
}

/// Takes out what colours a terminal: who reads this may be a model.
fn plain(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_end = |c: char| ('@'..='~').contains(&c);
        let after = part.split_once(is_end).map_or("", |(_, after)| after);
        plain.push_str(after);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::{OUTPUT_CHARS_MAX, capped};

    #[test]
    fn colours_are_taken_out() {
        let text = "\u{1b}[1m\u{1b}[31merror\u{1b}[0m: x[0]\u{1b}[2K";
        assert_eq!(capped(text, "", 0), "error: x[0]");
    }

    #[test]
    fn short_output_is_whole_and_in_order() {
        assert_eq!(capped("out", "err", 6), "out\nerr");
        assert_eq!(capped("out\n", "err\n", 8), "out\nerr\n");
        assert_eq!(capped("", "err", 3), "err");
        let fits = "é".repeat(OUTPUT_CHARS_MAX);
        assert_eq!(capped(&fits, "", 8_000), fits);
    }

    #[test]
    fn long_output_is_cut_after_a_marker() {
        let long = "é".repeat(OUTPUT_CHARS_MAX + 1);
        let cut = capped(&long, "end", 8_005);
        let (marker, end) = cut.split_once('\n').unwrap();
        assert_eq!(
            marker,
            "[truncated: only the end of 8005 bytes of output is kept]"
        );
        assert_eq!(end.chars().count(), OUTPUT_CHARS_MAX);
        assert!(end.ends_with("é\nend"));
        // What the reader did not keep is missing, too.
        assert!(capped("a", "b", 3).starts_with("[truncated: only the end of 3 bytes"));
    }
}
