//! Reports for tests: one run of one command, and what it is made of.

use super::verify_report::VerifyReport;
use super::verify_run::{Checks, VerifyRun};

/// Returns a run of `test` that ended so; without an exit code it ran out of time.
#[must_use]
pub fn run(exit_code: Option<i32>, output: &str) -> VerifyRun {
    VerifyRun {
        command: "test".to_owned(),
        checks: Checks::Visible,
        exit_code,
        timed_out: exit_code.is_none(),
        duration_ms: 1,
        output_tail: output.to_owned(),
        output_bytes: output.len() as u64,
        tally: None,
    }
}

/// Returns a report of runs in which nothing else was seen.
#[must_use]
pub fn report(runs: Vec<VerifyRun>) -> VerifyReport {
    VerifyReport {
        commit: "commit".to_owned(),
        tree: "tree".to_owned(),
        tampered: Vec::new(),
        runs,
        inspection: Box::default(),
    }
}
