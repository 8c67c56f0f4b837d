//! How much of a change its checks notice: each hunk is taken back in turn, and the checks are run.
//!
//! A hunk whose loss nothing notices may be right or wrong: the checks cannot tell.

use std::time::{Duration, Instant};

use kapi_core::failure::Failure;

use super::checkout::{Checkout, PutBack};
use super::text::TakenBack;
use super::{ProofClaim, Prover, WorkToProve};
use crate::rules::proof::inspection::Strength;
use crate::rules::proof::verify_run::Checks;

/// The most hunks that are taken back.
const HUNKS_MAX: usize = 100;
/// The longest that all of it may take where a person asked for it, in milliseconds.
pub const ASKED_MS: u64 = 30 * 60 * 1_000;
/// The longest that all of it may take where nobody did, in milliseconds.
pub const UNASKED_MS: u64 = 2 * 60 * 1_000;
/// The most hunks that are named.
const NAMED_MAX: usize = 50;
/// Ends of the names of files that no check is expected to notice.
const PROSE: &[&str] = &["md", "rst", "txt", "adoc", "html", "css", "svg"];

/// How long it may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct MutationBudget {
    /// All of it, in milliseconds.
    pub(super) budget_ms: u64,
    /// How long the commands took that passed, in milliseconds: another such run has to fit in.
    pub(super) run_ms: u64,
}

impl MutationBudget {
    /// Tells whether there is time for one more run.
    fn has_capacity(self, began: Instant) -> bool {
        let spent = began
            .elapsed()
            .saturating_add(Duration::from_millis(self.run_ms));
        spent < Duration::from_millis(self.budget_ms)
    }
}

impl Prover<'_> {
    /// Takes each hunk back in turn and says which the checks notice; nothing where it was called off.
    pub(super) fn strength(
        &self,
        work: &WorkToProve<'_>,
        claim: &ProofClaim<'_>,
        budget: MutationBudget,
    ) -> Result<Option<Strength>, Failure> {
        let began = Instant::now();
        let is_prose = |path: &std::path::Path| {
            let end = path.extension().and_then(|end| end.to_str());
            end.is_some_and(|end| PROSE.contains(&end))
        };
        let code = work.change.texts.iter();
        let code = code.filter(|text| !text.is_test && !is_prose(&text.path));
        let hunks: Vec<TakenBack> = code.flat_map(super::text::TextChange::taken_back).collect();
        let mut strength = Strength::default();
        for (n, hunk) in hunks.iter().enumerate() {
            if n >= HUNKS_MAX || !budget.has_capacity(began) {
                let left = hunks.len().saturating_sub(n);
                strength.untried = u32::try_from(left).unwrap_or(u32::MAX);
                break;
            }
            strength.hunks = strength.hunks.saturating_add(1);
            match self.notices(work, claim, hunk)? {
                None => return Ok(None),
                Some(true) => strength.noticed = strength.noticed.saturating_add(1),
                Some(false) if strength.unnoticed.len() < NAMED_MAX => {
                    strength.unnoticed.push(hunk.at.clone());
                }
                Some(false) => {}
            }
        }
        Ok(Some(strength))
    }

    /// Tells whether a command fails without a hunk; nothing where it was called off.
    fn notices(
        &self,
        work: &WorkToProve<'_>,
        claim: &ProofClaim<'_>,
        hunk: &TakenBack,
    ) -> Result<Option<bool>, Failure> {
        let bytes = hunk.content.as_ref().map(|text| text.clone().into_bytes());
        let put_back = PutBack {
            texts: vec![(hunk.path.clone(), bytes)],
            ..PutBack::default()
        };
        let mut checkout = Checkout::make(self, work, put_back)?;
        let mut is_noticed = false;
        for command in claim.commands {
            let Some(ended) = checkout.run(command, Checks::Visible, claim.line_ms())? else {
                checkout.discard()?;
                return Ok(None);
            };
            if !ended.run.passed() {
                is_noticed = true;
                break;
            }
        }
        checkout.discard()?;
        Ok(Some(is_noticed))
    }
}
