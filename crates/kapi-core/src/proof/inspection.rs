//! What was seen of a change beside the exit codes of its checks.
//!
//! Facts only, as the prover found them; [`crate::proof::assess`] says what they mean.

use serde::{Deserialize, Serialize};

use crate::goal::outcome::{VerifyReport, VerifyRun};
use crate::goal::quote::visible_line;
use crate::proof::notice::Notice;

/// What a change does to the checks that are to prove it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Inspection {
    /// Tests of the base that the change modifies or removes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests_changed: Vec<String>,
    /// Tests of the base that keep every line they had, and have more of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests_extended: Vec<String>,
    /// Files that steer the checks and that the change adds, modifies or removes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steering_changed: Vec<String>,
    /// The commands run again with the base's tests, where tests were changed or extended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with_base_tests: Vec<VerifyRun>,
    /// The commands run again with the base's steering files, where those were changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with_base_steering: Vec<VerifyRun>,
    /// Signs of a cheat in the lines that the change adds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// Which hunks of the change the checks notice, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strength: Option<Strength>,
}

/// Which hunks of a change the checks notice when each is taken back in turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strength {
    /// How many hunks were taken back.
    pub hunks: u32,
    /// How many of them made a check fail.
    pub noticed: u32,
    /// The others, as `path:line`.
    pub unnoticed: Vec<String>,
    /// How many hunks were not tried, because time or the limit ran out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untried: u32,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands the field over by reference"
)]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Inspection {
    /// Tells whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Tells whether the checks pass with the base's steering files, or none were changed.
    #[must_use]
    pub fn holds_without_steering(&self) -> bool {
        self.steering_changed.is_empty()
            || (!self.with_base_steering.is_empty()
                && self.with_base_steering.iter().all(VerifyRun::passed))
    }
}

impl Strength {
    /// Returns the strength as one sentence.
    #[must_use]
    pub fn words(&self) -> String {
        let noun = if self.hunks == 1 {
            "hunk is"
        } else {
            "hunks are"
        };
        let mut text = format!(
            "{} of {} {noun} noticed by the checks",
            self.noticed, self.hunks
        );
        if !self.unnoticed.is_empty() {
            text.push_str("; not noticed: ");
            text.push_str(&self.unnoticed.join(", "));
        }
        if self.untried > 0 {
            text = format!("{text}; {} were not tried", self.untried);
        }
        text
    }
}

/// Returns what a report says of its proof beside the runs, a line each, for people and judges.
#[must_use]
pub fn proof_lines(report: &VerifyReport) -> Vec<String> {
    let seen = &report.inspection;
    let mut lines = Vec::new();
    if !report.tampered.is_empty() {
        lines.push(format!(
            "- protected files changed: {}",
            names(&report.tampered)
        ));
    }
    let tests = [
        ("changed or removed", &seen.tests_changed),
        ("extended", &seen.tests_extended),
    ];
    for (how, paths) in tests.into_iter().filter(|(_, paths)| !paths.is_empty()) {
        let outcome = outcome("the base's tests", &seen.with_base_tests);
        let paths = names(paths);
        lines.push(format!("- existing tests {how}: {paths}; {outcome}"));
    }
    if !seen.steering_changed.is_empty() {
        let outcome = outcome("the base's version of these", &seen.with_base_steering);
        lines.push(format!(
            "- scripts and settings that steer the checks were changed: {}; {outcome}",
            names(&seen.steering_changed)
        ));
    }
    lines.extend(seen.notices.iter().map(|notice| format!("- {notice}")));
    lines.extend(seen.strength.iter().map(|it| format!("- {}", it.words())));
    lines
}

fn outcome(with: &str, runs: &[VerifyRun]) -> String {
    match runs {
        [] => format!("the checks were not run with {with}"),
        runs if runs.iter().all(VerifyRun::passed) => format!("with {with} the checks pass too"),
        _ => format!("with {with} the checks FAIL"),
    }
}

fn names(paths: &[String]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| visible_line(path)).collect();
    paths.join(", ")
}
