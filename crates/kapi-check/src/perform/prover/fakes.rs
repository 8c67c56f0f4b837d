//! Whether a pass is faked: by checks that cannot fail, or by code that does other than it does without
//! them.
//!
//! What only keeps a run from failing is harmless where the run was seen to fail; what asks for an
//! automation is, where the checks pass without one as well. Of all else the hunks are taken back.

use kapi_core::failure::Failure;

use super::change::{self, ChangePart};
use super::checkout::PutBack;
use super::expectations::Expectations;
use super::{ProofClaim, Prover, WorkToProve};
use crate::rules::proof::notice::{KEEP_FROM_FAILING, NoticeKind};
use crate::rules::proof::verify_report::VerifyReport;
use crate::rules::proof::verify_run::Checks;

/// What makes a line seem to be run by a person, and not in an automation.
const BY_HAND: &str = "unset CI";

impl Prover<'_> {
    /// Runs the commands on tests that expect something else, and without the code that looks like
    /// faking a pass; `false` when it was called off. `held` is what the checks were seen to pass with.
    pub(super) fn look_for_fakes(
        &self,
        work: &WorkToProve<'_>,
        claim: &ProofClaim<'_>,
        held: &[ChangePart],
        report: &mut VerifyReport,
    ) -> Result<bool, Failure> {
        let mut put_back = work.change.put_back(&self.repo.repository, claim, held)?;
        let mut excused = Vec::new();
        match self.expectations(work, claim, &put_back, report)? {
            None => return Ok(false),
            Some(Expectations::DoNotMatter(lines)) => {
                report.inspection.cannot_fail = lines;
                return Ok(true);
            }
            Some(Expectations::Matter) => excused.extend(KEEP_FROM_FAILING),
            Some(Expectations::Unknown) => {}
        }
        let asked = work.change.flagged_lines(&excused);
        excused.push(NoticeKind::DetectsEnvironment);
        let mut flagged = work.change.flagged_lines(&excused);
        if asked != flagged {
            match self.passes_by_hand(work, claim, &put_back)? {
                None => return Ok(false),
                Some(true) => {}
                Some(false) => flagged = asked,
            }
        }
        if flagged.is_empty() {
            return Ok(true);
        }
        put_back.texts.extend(work.change.without(&flagged));
        let Some(ran) = self.runs_on(work, claim, Checks::Visible, &put_back)? else {
            return Ok(false);
        };
        report.inspection.without_flagged_code = ran.into_iter().map(|ended| ended.run).collect();
        report.inspection.flagged_code = change::named(&flagged);
        Ok(true)
    }

    /// Tells whether the commands pass where they seem to be run by a person; nothing when it was called
    /// off.
    fn passes_by_hand(
        &self,
        work: &WorkToProve<'_>,
        claim: &ProofClaim<'_>,
        put_back: &PutBack,
    ) -> Result<Option<bool>, Failure> {
        let lines = claim.commands.iter();
        let commands: Vec<String> = lines.map(|line| format!("{BY_HAND}\n{line}")).collect();
        let claim = ProofClaim {
            commands: &commands,
            ..*claim
        };
        let ran = self.runs_on(work, &claim, Checks::Visible, put_back)?;
        Ok(ran.map(|all| all.iter().all(|ended| ended.run.passed())))
    }
}
