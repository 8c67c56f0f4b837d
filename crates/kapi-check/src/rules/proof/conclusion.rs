//! What a proof of a change comes to, in one word and one sentence.
//!
//! For a change that no goal stands behind: a goal has its own life and comes to the same.

use std::collections::BTreeSet;

use kapi_core::verdict::{JudgeAnswer, JudgeRun, JudgeVerdict};
use serde::{Deserialize, Serialize};

use super::verify_report::VerifyReport;
use crate::rules::proof::assess::Grade;
use crate::rules::proof::downloads::Lacking;
use crate::rules::proof::obstacle::Obstacle;
use crate::rules::proof::policy::CheckPolicy;
use crate::rules::proof::verify_report::first_failure;
use crate::rules::proof::{assess, baseline, obstacle};

/// What a proof comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofStatus {
    /// The checks show it, and nothing stands against them.
    Proved,
    /// The checks pass and passed before: nothing speaks for the change itself.
    Unverified,
    /// The checks fail, or what they rest on was changed.
    Refused,
    /// The checks cannot work where they are run.
    CannotRun,
}

impl ProofStatus {
    /// Returns the standing as it stands in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proved => "proved",
            Self::Unverified => "unverified",
            Self::Refused => "refused",
            Self::CannotRun => "cannot_run",
        }
    }
}

/// A standing, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    /// The standing.
    pub state: ProofStatus,
    /// Why, as one sentence without a final period.
    pub reason: String,
    /// What a person can do about it.
    pub hint: Option<String>,
}

/// Everything that was found out of a change.
#[derive(Debug, Clone, Copy)]
pub struct ProofFindings<'a> {
    /// What the checks were held to.
    pub policy: &'a CheckPolicy,
    /// What they showed on the base.
    pub baseline: &'a VerifyReport,
    /// What they showed on the change; nothing where it was not got that far.
    pub report: Option<&'a VerifyReport>,
    /// What a judge said, if one was asked.
    pub judged: Option<&'a JudgeRun>,
}

impl ProofFindings<'_> {
    /// Returns what they come to.
    #[must_use]
    pub fn conclusion(&self) -> Conclusion {
        let Some(report) = self.report else {
            return match baseline::obstacle(self.baseline) {
                Some(obstacle) => cannot_run(obstacle),
                None => refused("the change was not checked".to_owned()),
            };
        };
        if let Some(obstacle) = report.killed().and_then(obstacle::of_kill) {
            return cannot_run(obstacle);
        }
        if !report.passed() {
            if let Some(lacking) = &report.inspection.lacking {
                return without_dependencies(lacking);
            }
            let why = first_failure(report);
            return refused(why.unwrap_or_else(|| "a check failed".to_owned()));
        }
        let nothing = BTreeSet::new();
        let is_judged = self.judged.is_some();
        let against = assess::objection(
            self.policy,
            Some(self.baseline),
            report,
            &nothing,
            is_judged,
        );
        if let Some(objection) = against {
            return Conclusion {
                hint: objection.option().map(str::to_owned),
                ..refused(format!("the checks pass, but {}", objection.words()))
            };
        }
        if let Some(run) = self.judged
            && let Some(why) = not_accepted(run)
        {
            return refused(why);
        }
        let grade = assess::grade(Some(self.baseline), report);
        // Who wrote the change is not who is to be proved here, so its tests may speak for it.
        let is_enough = grade != Grade::KeptGreen || self.policy.already_green;
        if is_enough || self.judged.is_some() {
            return Conclusion {
                state: ProofStatus::Proved,
                reason: grade.words().to_owned(),
                hint: None,
            };
        }
        Conclusion {
            state: ProofStatus::Unverified,
            reason: "the checks already passed on the base, so they show only that nothing broke"
                .to_owned(),
            hint: Some(
                "add a test that fails without the change, name a judge with `--judge`, or use \
                 `--already-green` for a refactoring."
                    .to_owned(),
            ),
        }
    }
}

fn cannot_run(obstacle: Obstacle) -> Conclusion {
    Conclusion {
        state: ProofStatus::CannotRun,
        reason: obstacle.sentence(),
        hint: Some(obstacle.remedy),
    }
}

fn without_dependencies(lacking: &Lacking) -> Conclusion {
    let options = lacking.refused.iter().map(|it| format!("--registry {it}"));
    let options = options.collect::<Vec<_>>().join(" ");
    Conclusion {
        state: ProofStatus::CannotRun,
        reason: lacking.why.clone(),
        hint: (!options.is_empty()).then(|| {
            format!(
                "if you trust it, add `{options}` to install from there once, or add it to \
                 `allow` under [network] in your configuration."
            )
        }),
    }
}

fn refused(reason: String) -> Conclusion {
    Conclusion {
        state: ProofStatus::Refused,
        reason,
        hint: None,
    }
}

fn not_accepted(run: &JudgeRun) -> Option<String> {
    match &run.answer {
        JudgeAnswer::Verdict {
            verdict: JudgeVerdict::Done,
            ..
        } => None,
        JudgeAnswer::Verdict { verdict, reason } => Some(format!(
            "the judge {} answers {}: {reason}",
            run.by,
            verdict.as_str()
        )),
        JudgeAnswer::Malformed { .. } => Some(format!("the judge {} gave no verdict", run.by)),
        JudgeAnswer::Unavailable(failure) => Some(format!(
            "the judge {} could not be reached: {}",
            run.by, failure.message
        )),
    }
}
