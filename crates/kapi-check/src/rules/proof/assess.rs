//! What checks that passed are worth: what still stands against a proof, and its grade.
//!
//! The one place that says so, for goals, tasks, loops, workflows and `kapi prove`. Pure: it is given
//! what the base showed, what the change showed, and what a person allowed.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::verify_report::VerifyReport;
use super::verify_run::VerifyRun;
use crate::rules::proof::policy::{CheckPolicy, TestPolicy};
use crate::rules::proof::tally::{TestsLost, lost};

/// The most paths that a question to a person names.
const PATHS_MAX: usize = 20;
/// Digits of a tree that name it in a question.
const TREE_DIGITS: usize = 10;

/// Why commands that exit 0 are no proof yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "objection", rename_all = "snake_case", deny_unknown_fields)]
pub enum ProofObjection {
    /// A command ran fewer tests than on the base, skipped more, or no longer says how many.
    TestsVanished {
        /// The command.
        command: String,
        /// What was lost.
        lost: TestsLost,
    },
    /// Tests of the base were changed or removed.
    TestsChanged {
        /// Which.
        paths: Vec<String>,
    },
    /// The checks pass only with tests that the change adds, though the base had tests before.
    RestsOnAddedTests {
        /// Which.
        paths: Vec<String>,
    },
    /// The checks pass only with what the change made of the files that steer them.
    RestsOnSteering {
        /// Which.
        paths: Vec<String>,
    },
    /// Tests of the base pass whatever they expect.
    CannotFail {
        /// Which lines of them, as `path:line`.
        lines: Vec<String>,
    },
    /// The checks pass only with code that looks like faking a pass.
    RestsOnFlaggedCode {
        /// Which lines, as `path:line`.
        lines: Vec<String>,
    },
}

/// How much a proof shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// Checks that failed on the base pass now.
    RedToGreen,
    /// Every check passed on the base already: they show only that nothing broke.
    KeptGreen,
    /// The same, but tests that the change itself brings fail without it.
    OwnTests,
    /// Nobody ran the checks on the base.
    BaseUnknown,
}

impl Grade {
    /// Returns the grade in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::RedToGreen => "red on the base, green now",
            Self::KeptGreen => "green on the base, and still green",
            Self::OwnTests => {
                "green on the base; the new tests fail without the change and pass with it"
            }
            Self::BaseUnknown => "green now; the base was not checked",
        }
    }
}

/// Returns what stands against a report whose commands pass, the gravest first; nothing when it is a
/// proof as far as checks can tell.
///
/// `allowed` holds what a person allowed, as [`ProofObjection::question`] asks for it. `is_judged` tells
/// whether a judge who is told of changed steering files and flagged code decides next.
#[must_use]
pub fn objection(
    policy: &CheckPolicy,
    baseline: Option<&VerifyReport>,
    report: &VerifyReport,
    allowed: &BTreeSet<String>,
    is_judged: bool,
) -> Option<ProofObjection> {
    let seen = &report.inspection;
    let is_open = |objection: &ProofObjection| !allowed.contains(&objection.question(&report.tree));
    let lost = baseline.and_then(|base| vanished(base, report));
    let mut paths = seen.tests_changed.clone();
    if !holds_with_base_tests(baseline, report) {
        paths.extend(seen.tests_extended.iter().cloned());
    }
    let is_held = policy.tests != TestPolicy::Free && !paths.is_empty();
    let tests = is_held.then_some(ProofObjection::TestsChanged { paths });
    let rests = !policy.changed_steering && !is_judged && !seen.holds_without_steering();
    let steering = rests.then(|| ProofObjection::RestsOnSteering {
        paths: seen.steering_changed.clone(),
    });
    let is_added = policy.tests != TestPolicy::Free && !is_judged && seen.rests_on_added_tests();
    let added = is_added.then(|| ProofObjection::RestsOnAddedTests {
        paths: seen.tests_added.clone(),
    });
    let is_flagged = !policy.flagged_code && !is_judged && seen.rests_on_flagged_code();
    let flagged = is_flagged.then(|| ProofObjection::RestsOnFlaggedCode {
        lines: seen.flagged_code.clone(),
    });
    let is_indifferent = !policy.flagged_code && !is_judged && !seen.cannot_fail.is_empty();
    let indifferent = is_indifferent.then(|| ProofObjection::CannotFail {
        lines: seen.cannot_fail.clone(),
    });
    let of_checks = lost.into_iter().chain(tests).chain(added).chain(steering);
    of_checks.chain(flagged).chain(indifferent).find(is_open)
}

/// Tells whether the base's tests, as they were, pass on the work, as many of them as on the base.
fn holds_with_base_tests(baseline: Option<&VerifyReport>, report: &VerifyReport) -> bool {
    let has_all = |run: &VerifyRun| {
        let before = baseline.and_then(|base| same_run(base, run)?.tally);
        lost(before.as_ref(), run.tally.as_ref()).is_none()
    };
    let seen = &report.inspection;
    [&seen.with_base_checks, &seen.with_base_tests]
        .into_iter()
        .any(|runs| !runs.is_empty() && runs.iter().all(|run| run.passed() && has_all(run)))
}

/// Returns the first command that lost tests. Tests that a person let be changed may be fewer.
fn vanished(base: &VerifyReport, now: &VerifyReport) -> Option<ProofObjection> {
    if !now.inspection.tests_changed.is_empty() {
        return None;
    }
    now.runs.iter().find_map(|run| {
        let on_base = same_run(base, run)?;
        let before = on_base.tally;
        let lost =
            lost(before.as_ref(), run.tally.as_ref()).or_else(|| still_fail(on_base, run))?;
        let command = run.command.clone();
        Some(ProofObjection::TestsVanished { command, lost })
    })
}

/// Tells whether a run that ended well says of no fewer tests that they failed than one that did not.
fn still_fail(before: &VerifyRun, now: &VerifyRun) -> Option<TestsLost> {
    let (was, is) = (before.tally?, now.tally?);
    let turned = !before.passed() && now.passed();
    (turned && was.failed > 0 && is.failed >= was.failed).then_some(TestsLost::StillFail {
        before: was,
        now: is,
    })
}

fn same_run<'a>(base: &'a VerifyReport, run: &VerifyRun) -> Option<&'a VerifyRun> {
    base.runs
        .iter()
        .find(|before| before.command == run.command && before.checks == run.checks)
}

/// Returns how much checks that all pass show.
#[must_use]
pub fn grade(baseline: Option<&VerifyReport>, report: &VerifyReport) -> Grade {
    let Some(base) = baseline else {
        return Grade::BaseUnknown;
    };
    let turned = |run: &VerifyRun| {
        run.passed() && same_run(base, run).is_some_and(|before| !before.passed())
    };
    if report.runs.iter().any(turned) {
        Grade::RedToGreen
    } else if report.inspection.own_tests_need_it() {
        Grade::OwnTests
    } else {
        Grade::KeptGreen
    }
}

impl ProofObjection {
    /// Returns what a person is asked to allow, bound to the tree it was seen in.
    #[must_use]
    pub fn question(&self, tree: &str) -> String {
        let (what, paths) = match self {
            Self::TestsVanished { command, .. } => ("fewer tests", command.clone()),
            Self::TestsChanged { paths } => ("changed tests", named(paths)),
            Self::RestsOnAddedTests { paths } => {
                ("a proof that relies on added tests", named(paths))
            }
            Self::RestsOnSteering { paths } => {
                ("a proof that relies on changed test setup", named(paths))
            }
            Self::RestsOnFlaggedCode { lines } => {
                ("a proof that relies on flagged code", named(lines))
            }
            Self::CannotFail { lines } => ("tests that cannot fail", named(lines)),
        };
        let tree = tree.get(..TREE_DIGITS).unwrap_or(tree);
        format!("{what}: {paths} (tree {tree})")
    }

    /// Returns what a person who proves a change can say to let it pass.
    #[must_use]
    pub const fn option(&self) -> Option<&'static str> {
        match self {
            Self::TestsVanished { .. } => None,
            Self::TestsChanged { .. } => Some("review them; `--tests free` allows the changes."),
            Self::RestsOnAddedTests { .. } => Some(
                "review them; `--tests free` allows the proof to rely on them, and a judge \
                 named with `--judge` sees them.",
            ),
            Self::RestsOnSteering { .. } => Some(
                "review them; `--allow-changed-setup` allows the proof to rely on them, and a \
                 judge named with `--judge` sees them.",
            ),
            Self::CannotFail { .. } => Some(
                "review what the change does to these tests; `--allow-flagged-code` allows the \
                 proof to rely on them, and a judge named with `--judge` sees them.",
            ),
            Self::RestsOnFlaggedCode { .. } => Some(
                "review the lines; `--allow-flagged-code` allows the proof to rely on them, and a \
                 judge named with `--judge` sees them.",
            ),
        }
    }

    /// Returns the objection as one sentence without a final period.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::TestsVanished { command, lost } => format!("`{command}`: {lost}"),
            Self::TestsChanged { paths } => {
                format!("existing tests were changed or removed: {}", named(paths))
            }
            Self::RestsOnAddedTests { paths } => {
                format!("without the added tests, the checks fail: {}", named(paths))
            }
            Self::RestsOnSteering { paths } => format!(
                "the checks pass only with the change's own version of the test setup: {}",
                named(paths)
            ),
            Self::CannotFail { lines } => format!(
                "with the change, tests pass whatever they expect: {}",
                named(lines)
            ),
            Self::RestsOnFlaggedCode { lines } => format!(
                "the checks fail without code that looks like faking a pass: {}",
                named(lines)
            ),
        }
    }
}

fn named(paths: &[String]) -> String {
    let shown: Vec<&str> = paths.iter().take(PATHS_MAX).map(String::as_str).collect();
    match paths.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests;
