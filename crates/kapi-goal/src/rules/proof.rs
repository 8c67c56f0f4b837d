//! What a goal's last verification is worth.
//!
//! Asked by the rules and by the fold alike, so that both go by the same answer.

use kapi_check::rules::proof::assess;
use kapi_check::rules::proof::assess::{Grade, ProofObjection};
use kapi_check::rules::proof::attribution::{Authority, CheckPart};
use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::verdict::{JudgeAnswer, JudgeVerdict};

use crate::rules::state::Goal;

impl Goal {
    /// Returns what stands against a report of this goal whose commands pass.
    #[must_use]
    pub fn objection_to(&self, report: &VerifyReport) -> Option<ProofObjection> {
        assess::objection(
            &self.contract.checks,
            self.baseline.as_ref(),
            report,
            &self.consent.allowed,
            self.may_leave_it_to_the_judge(),
        )
    }

    /// Tells whether the person chose who judges: one that a draft or a project brought is one more
    /// check, and decides nothing in the person's place.
    fn may_leave_it_to_the_judge(&self) -> bool {
        let contract = &self.contract;
        let added_by = contract
            .attribution
            .added_by(CheckPart::Judge, &contract.judge.to_string());
        let is_persons = self.changed_judge.is_some() || added_by.is_none_or(Authority::is_person);
        is_persons && self.judge_agent().is_some()
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
                    verdict: JudgeVerdict::Done,
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

#[cfg(test)]
mod tests {
    use kapi_check::rules::proof::attribution::{Addition, Authority, CheckPart};
    use kapi_check::rules::proof::fixture::{report, run};
    use kapi_core::judge::Judge;

    use crate::rules::scenario::{contract, goal_of};
    use crate::rules::state::Goal;

    /// Tells whether checks that rest on a changed recipe are left to the judge.
    fn is_left_to_the_judge(goal: &Goal) -> bool {
        let mut report = report(vec![run(Some(0), "")]);
        report.inspection.steering_changed = vec!["Makefile".to_owned()];
        report.inspection.with_base_checks = vec![run(Some(1), "")];
        goal.accepts(&report)
    }

    #[test]
    fn a_judge_whom_a_draft_brought_decides_nothing_in_the_person_s_place() {
        let mut goal = goal_of(contract());
        goal.contract.judge = Judge::None;
        assert!(!is_left_to_the_judge(&goal));
        goal.contract.judge = Judge::Same;
        assert!(is_left_to_the_judge(&goal));
        goal.contract.attribution.additions.push(Addition {
            part: CheckPart::Judge,
            value: Judge::Same.to_string(),
            by: Authority::Draft,
        });
        assert!(!is_left_to_the_judge(&goal));
        goal.changed_judge = Some("codex".to_owned());
        assert!(is_left_to_the_judge(&goal));
    }
}
