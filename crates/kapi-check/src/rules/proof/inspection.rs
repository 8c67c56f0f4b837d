//! What was seen of a change beside the exit codes of its checks.
//!
//! Facts only, as the prover found them; [`crate::rules::proof::assess`] says what they mean.

use kapi_core::quote::visible_line;
use serde::{Deserialize, Serialize};

use super::verify_run::VerifyRun;
use crate::rules::proof::downloads::Lacking;
use crate::rules::proof::notice::Notice;
use crate::rules::proof::obstacle::obstacle_of;

/// What a change does to the checks that are to prove it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Inspection {
    /// Test files with code that the change adds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests_added: Vec<String>,
    /// Tests of the base that the change modifies or removes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests_changed: Vec<String>,
    /// Tests of the base that keep every statement they had: they have more of them, another form, other
    /// imports or another name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests_extended: Vec<String>,
    /// Files that steer the checks and that the change adds, modifies or removes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steering_changed: Vec<String>,
    /// The commands run again with the tests and steering files of the base and without added tests,
    /// where any of these differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with_base_checks: Vec<VerifyRun>,
    /// The same with the base's tests alone, where they fail with all of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with_base_tests: Vec<VerifyRun>,
    /// The same with the base's steering files alone, where they fail with all of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with_base_steering: Vec<VerifyRun>,
    /// The commands run on the base's code with the change's tests, where the change brings tests and
    /// every check passed on the base.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_base_code: Vec<VerifyRun>,
    /// Lines of the code under test that look like faking a pass, as `path:line`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flagged_code: Vec<String>,
    /// The commands run again without the hunks that hold such lines; with the base's checks, too, where
    /// these pass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_flagged_code: Vec<VerifyRun>,
    /// Lines of the base's tests that pass whatever they expect, or although they fail, as `path:line`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cannot_fail: Vec<String>,
    /// Signs of a cheat in the lines that the change adds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// Which hunks of the change the checks notice, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strength: Option<Strength>,
    /// Dependencies that the change asks for and that could not be installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lacking: Option<Lacking>,
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
    /// Returns the same without what commands printed.
    #[must_use]
    pub fn without_output(mut self) -> Self {
        let reruns = [
            &mut self.with_base_checks,
            &mut self.with_base_tests,
            &mut self.with_base_steering,
            &mut self.on_base_code,
            &mut self.without_flagged_code,
        ];
        for run in reruns.into_iter().flatten() {
            run.output_tail.clear();
        }
        self
    }

    /// Tells whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Tells whether the change's own tests fail on the base's code, and not for want of a program.
    #[must_use]
    pub fn own_tests_need_it(&self) -> bool {
        let fails = |run: &VerifyRun| run.exit_code.is_some_and(|code| code != 0);
        self.on_base_code.iter().any(fails)
            && self
                .on_base_code
                .iter()
                .all(|run| obstacle_of(run).is_none())
    }

    /// Tells whether the checks pass with the base's steering files, or none were changed.
    #[must_use]
    pub fn holds_without_steering(&self) -> bool {
        self.steering_changed.is_empty()
            || all_pass(&self.with_base_checks)
            || all_pass(&self.with_base_steering)
    }

    /// Returns what was seen, a line each, for people and judges.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.tests_added.is_empty() {
            let failing = if self.rests_on_added_tests() {
                "; without them the checks FAIL"
            } else {
                ""
            };
            lines.push(format!(
                "- tests added: {}{failing}",
                names(&self.tests_added)
            ));
        }
        let tests = [
            ("changed or removed", &self.tests_changed),
            ("extended, moved or reformatted", &self.tests_extended),
        ];
        for (how, paths) in tests.into_iter().filter(|(_, paths)| !paths.is_empty()) {
            let outcome = self.outcome("the base's tests", &self.with_base_tests);
            let paths = names(paths);
            lines.push(format!("- existing tests {how}: {paths}; {outcome}"));
        }
        if !self.steering_changed.is_empty() {
            let outcome = self.outcome("the base's version of these", &self.with_base_steering);
            lines.push(format!(
                "- files that control the checks were changed: {}; {outcome}",
                names(&self.steering_changed)
            ));
        }
        if !self.on_base_code.is_empty() {
            let outcome = if self.own_tests_need_it() {
                "fail without it"
            } else {
                "do not fail without it"
            };
            lines.push(format!("- the change's own tests {outcome}"));
        }
        lines.extend(self.notices.iter().map(|notice| format!("- {notice}")));
        if self.rests_on_flagged_code() {
            lines.push("- without the flagged code the checks FAIL".to_owned());
        } else if !self.without_flagged_code.is_empty() {
            lines.push("- without the flagged code the checks also pass".to_owned());
        }
        if !self.cannot_fail.is_empty() {
            lines.push(format!(
                "- tests that pass whatever they expect: {}",
                names(&self.cannot_fail)
            ));
        }
        lines.extend(self.strength.iter().map(|it| format!("- {}", it.words())));
        lines
    }

    /// Tells whether the checks fail without the code that shows signs of a cheat.
    #[must_use]
    pub fn rests_on_flagged_code(&self) -> bool {
        !self.without_flagged_code.is_empty() && !all_pass(&self.without_flagged_code)
    }
    /// Says how the commands ended with a part of the base, alone or with all else that checks.
    fn outcome(&self, with: &str, alone: &[VerifyRun]) -> String {
        if all_pass(&self.with_base_checks) || all_pass(alone) {
            format!("with {with} the checks also pass")
        } else if alone.is_empty() {
            format!("the checks were not run with {with}")
        } else {
            format!("with {with} the checks FAIL")
        }
    }

    /// Tells whether the checks fail without the tests that the change adds, and for no other reason.
    #[must_use]
    pub fn rests_on_added_tests(&self) -> bool {
        let touches = !self.tests_changed.is_empty() || !self.tests_extended.is_empty();
        !self.tests_added.is_empty()
            && !self.with_base_checks.is_empty()
            && !all_pass(&self.with_base_checks)
            && self.holds_without_steering()
            && (!touches || all_pass(&self.with_base_tests))
    }
}

/// Tells whether commands were run, and all of them passed.
fn all_pass(runs: &[VerifyRun]) -> bool {
    !runs.is_empty() && runs.iter().all(VerifyRun::passed)
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

pub(super) fn names(paths: &[String]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| visible_line(path)).collect();
    paths.join(", ")
}
