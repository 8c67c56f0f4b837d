//! Runs of lines on one state of the work: the one place that starts them anew where one is killed.
//!
//! What kills a line by SIGKILL is seldom the work: most often it is the kernel, for want of memory. So
//! everything is run once more, on a clean checkout. What a second kill means is decided in core.

use kapi_core::failure::Failure;
use kapi_machine::watch::Activity;

use super::checkout::{Checkout, LineResult, PutBack};
use super::{ProofClaim, Prover, WorkToProve};
use crate::rules::proof::verify_report::run_end;
use crate::rules::proof::verify_run::Checks;

impl Prover<'_> {
    /// Runs one line on a checkout of its own.
    pub fn run_once(
        &self,
        work: &WorkToProve<'_>,
        line: &str,
        timeout_ms: u64,
    ) -> Result<Option<LineResult>, Failure> {
        let ended = self.unless_killed(|| {
            let mut checkout = Checkout::make(self, work, PutBack::default())?;
            let ended = checkout.run(line, Checks::Visible, timeout_ms);
            checkout.discard()?;
            Ok(ended?.map(|ended| vec![ended]))
        })?;
        Ok(ended.and_then(|mut all| all.pop()))
    }

    /// Runs all commands on a fresh checkout in which some is put back, up to one that is killed from
    /// outside; nothing when it was called off.
    pub(super) fn runs_on(
        &self,
        work: &WorkToProve<'_>,
        claim: &ProofClaim<'_>,
        checks: Checks,
        put_back: &PutBack,
    ) -> Result<Option<Vec<LineResult>>, Failure> {
        self.unless_killed(|| {
            let mut checkout = Checkout::make(self, work, put_back.clone())?;
            let ran = run_up_to_kill(&mut checkout, claim, checks)?;
            if let Some(all) = &ran
                && work.is_base()
                && checks == Checks::Visible
            {
                self.keep_failures(work, claim, all)?;
                self.keep_built(checkout.root())?;
            }
            checkout.discard()?;
            Ok(ran)
        })
    }

    /// Runs something, and once more where the first time ends with a line that was killed and had
    /// changed nothing that is sealed.
    fn unless_killed(
        &self,
        run: impl Fn() -> Result<Option<Vec<LineResult>>, Failure>,
    ) -> Result<Option<Vec<LineResult>>, Failure> {
        let ran = run()?;
        let Some(all) = &ran else { return Ok(None) };
        let killed = all.last().filter(|last| last.run.was_killed());
        let Some(killed) = killed.filter(|_| all.iter().all(|it| it.tampered.is_empty())) else {
            return Ok(ran);
        };
        let (command, end) = (&killed.run.command, run_end(&killed.run));
        (self.listener.watch.notice)(Activity::Note {
            text: format!("`{command}` {end}; it is run once more"),
        });
        run()
    }
}

/// Runs the commands one after the other, up to one that is killed; nothing when it was called off.
fn run_up_to_kill(
    checkout: &mut Checkout<'_>,
    claim: &ProofClaim<'_>,
    checks: Checks,
) -> Result<Option<Vec<LineResult>>, Failure> {
    let mut all = Vec::new();
    for command in claim.commands {
        let Some(ended) = checkout.run(command, checks, claim.line_ms())? else {
            return Ok(None);
        };
        let was_killed = ended.run.was_killed();
        all.push(ended);
        if was_killed {
            break;
        }
    }
    Ok(Some(all))
}
