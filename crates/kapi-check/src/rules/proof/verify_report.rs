//! What verify commands showed on one commit.
//!
//! Data alone: outcomes carry it, the proof reads it.

use serde::{Deserialize, Serialize};

use super::inspection::{Inspection, names};
use super::verify_run::VerifyRun;

/// What the verify commands showed on one commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyReport {
    /// The commit that was checked out.
    pub commit: String,
    /// Its tree.
    pub tree: String,
    /// Protected files that the candidate changes.
    pub tampered: Vec<String>,
    /// Each command that ran, in order.
    pub runs: Vec<VerifyRun>,
    /// What the change does to the checks themselves.
    #[serde(default, skip_serializing_if = "Inspection::is_empty")]
    pub inspection: Box<Inspection>,
}

impl VerifyReport {
    /// Returns a run that was killed from outside; nothing where protected files were changed, which is
    /// the work's own doing.
    #[must_use]
    pub fn killed(&self) -> Option<&VerifyRun> {
        let mut killed = self.all_runs().filter(|run| run.was_killed());
        killed.next().filter(|_| self.tampered.is_empty())
    }

    /// Returns every run that was made for it, those with a part of the base put back included.
    pub fn all_runs(&self) -> impl Iterator<Item = &VerifyRun> {
        let seen = &self.inspection;
        let reruns = [
            &seen.with_base_checks,
            &seen.with_base_tests,
            &seen.with_base_steering,
            &seen.on_base_code,
            &seen.without_flagged_code,
        ];
        self.runs.iter().chain(reruns.into_iter().flatten())
    }

    /// Tells whether every command passed and nothing protected was touched.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.tampered.is_empty() && self.runs.iter().all(VerifyRun::passed)
    }
}

/// Returns what a report says of its proof beside the runs, a line each, for people and judges.
#[must_use]
pub fn proof_lines(report: &VerifyReport) -> Vec<String> {
    let mut lines = Vec::new();
    if !report.tampered.is_empty() {
        lines.push(format!(
            "- protected files changed: {}",
            names(&report.tampered)
        ));
    }
    lines.extend(report.inspection.lines());
    // Where a command fails, its output says so.
    let lacking = report.inspection.lacking.iter().filter(|_| report.passed());
    lines.extend(lacking.map(|it| format!("- {}", it.why)));
    lines
}

/// Returns what made a verification fail, in a few words.
#[must_use]
pub fn first_failure(report: &VerifyReport) -> Option<String> {
    if let Some(path) = report.tampered.first() {
        return Some(format!("protected file {path} was changed"));
    }
    let run = report.runs.iter().find(|run| !run.passed())?;
    Some(format!("`{}` {}", run.command, run_end(run)))
}

/// Returns how a verify command ended, as it reads after the command.
#[must_use]
pub fn run_end(run: &VerifyRun) -> String {
    match (run.timed_out, run.exit_code) {
        (true, _) => "was killed at its time limit".to_owned(),
        (false, Some(code)) => format!("exited with {code}"),
        (false, None) => "was killed by SIGKILL".to_owned(),
    }
}
