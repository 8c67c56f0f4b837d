//! What a goal's last verification is worth.
//!
//! Asked by the rules and by the fold alike, so that both go by the same answer.

use crate::goal::outcome::{JudgeAnswer, Verdict, VerifyReport};
use crate::goal::state::Goal;
use crate::proof::assess::{self, Grade, Objection};

impl Goal {
    /// Returns what stands against a report of this goal whose commands pass.
    #[must_use]
    pub fn objection_to(&self, report: &VerifyReport) -> Option<Objection> {
        assess::objection(
            &self.contract.checks,
            self.baseline.as_ref(),
            report,
            &self.consent.allowed,
            self.contract.judge_agent().is_some(),
        )
    }

    /// Tells whether the checks of a report pass and nothing stands against them.
    #[must_use]
    pub fn accepts(&self, report: &VerifyReport) -> bool {
        report.passed() && self.objection_to(report).is_none()
    }

    /// Returns how much the last verification shows, where its commands pass.
    #[must_use]
    pub fn grade(&self) -> Option<Grade> {
        let report = self.verify.as_ref().filter(|report| report.passed())?;
        self.contract
            .is_verified()
            .then(|| assess::grade(self.baseline.as_ref(), report))
    }

    /// Tells whether the result is proved: its checks pass, and they or something else speak for it.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        let is_accepted = self.judge.as_ref().is_some_and(|run| {
            matches!(
                run.answer,
                JudgeAnswer::Verdict {
                    verdict: Verdict::Done,
                    ..
                }
            )
        });
        self.grade().is_some_and(|grade| {
            let shows_only_that_nothing_broke = match grade {
                // Its author is who has to be proved: an agent can write a test that needs any change.
                Grade::KeptGreen | Grade::OwnTests => true,
                Grade::RedToGreen | Grade::BaseUnknown => false,
            };
            !shows_only_that_nothing_broke || is_accepted || self.contract.checks.already_green
        })
    }
}
