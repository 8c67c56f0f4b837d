//! The no-progress breaker: turns that come back to where the goal already was.
//!
//! It compares what the harness saw (trees, verdicts, failing output), never what the agent says of
//! itself. Two things trip it: turns that end in trees and verdicts seen before, and turns that
//! change files while the checks fail in exactly the same way.

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_check::rules::proof::verify_run::VerifyRun;
use serde::{Deserialize, Serialize};

use crate::rules::event::TurnVerdict;

/// The most distinct results remembered; the oldest is forgotten first.
pub const REMEMBERED_MAX: usize = 64;
/// How many times longer a goal may change files under the same failure than stand still: an
/// honest agent may work for some turns before a coarse check moves.
pub const SAME_FAILURE_FACTOR: u32 = 2;

/// What turns came to, and how often.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Breaker {
    /// Trees with their verdicts.
    seen: Vec<TreeVerdict>,
    /// Turns in a row that ended where the goal already was, the first of them included.
    still: u32,
    /// How the checks failed in the last turn, and in how many turns in a row.
    failure: Option<String>,
    same_failures: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TreeVerdict {
    tree: String,
    verdict: TurnVerdict,
}

/// What tripped it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerTrip {
    /// This many turns ended in trees and verdicts seen before.
    Still(u32),
    /// This many turns changed files, and the checks fail in the same way.
    SameFailure(u32),
}

impl Breaker {
    /// Counts one more turn that ended in this tree with this verdict.
    ///
    /// `failure` is what [`fingerprint`] says of the checks, `has_moved` whether the agent's plan
    /// came forward, which counts as progress while the checks do not move yet.
    pub fn count(
        &mut self,
        tree: &str,
        verdict: TurnVerdict,
        failure: Option<String>,
        has_moved: bool,
    ) {
        // A turn that broke off says nothing of its tree that another verdict would not.
        let is_same_verdict = |seen: &TreeVerdict| {
            let broke_off = TurnVerdict::AgentFailed;
            seen.verdict == verdict || seen.verdict == broke_off || verdict == broke_off
        };
        let is_known = |seen: &TreeVerdict| seen.tree == tree && is_same_verdict(seen);
        if self.seen.iter().any(is_known) {
            self.still = self.still.saturating_add(1);
        } else {
            self.still = 1;
            if self.seen.len() >= REMEMBERED_MAX {
                self.seen.remove(0);
            }
            let tree = tree.to_owned();
            self.seen.push(TreeVerdict { tree, verdict });
        }
        let is_same = failure.is_some() && failure == self.failure && !has_moved;
        self.same_failures = match (&failure, is_same) {
            (None, _) => 0,
            (Some(_), true) => self.same_failures.saturating_add(1),
            (Some(_), false) => 1,
        };
        self.failure = failure;
    }

    /// Tells whether the goal makes no progress, when this many turns without any are too many.
    #[must_use]
    pub const fn tripped(&self, stall_after: u32) -> Option<BreakerTrip> {
        if self.still >= stall_after {
            return Some(BreakerTrip::Still(self.still));
        }
        if self.same_failures >= stall_after.saturating_mul(SAME_FAILURE_FACTOR) {
            return Some(BreakerTrip::SameFailure(self.same_failures));
        }
        None
    }

    /// Forgets everything, when a person lets the goal go on.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

/// Returns how the checks failed, without what differs from run to run: numbers and blank space.
#[must_use]
pub fn fingerprint(report: &VerifyReport) -> Option<String> {
    let failed = report.runs.iter().find(|run| !run.passed())?;
    Some(format!("{:016x}", hash(failed)))
}

/// FNV-1a over command, exit code and output.
fn hash(run: &VerifyRun) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let code = run.exit_code.map_or(-1, i64::from).to_le_bytes();
    let output = run.output_tail.bytes();
    let telling = output.filter(|byte| !byte.is_ascii_digit() && !byte.is_ascii_whitespace());
    let bytes = run.command.bytes().chain(code).chain(telling);
    bytes.fold(BASIS, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests {
    use kapi_check::rules::proof::fixture::{report, run};

    use super::{Breaker, BreakerTrip, fingerprint};
    use crate::rules::event::TurnVerdict;

    const FAILED: TurnVerdict = TurnVerdict::VerifyFailed;

    fn after(turns: &[(&str, &str)]) -> Breaker {
        let mut breaker = Breaker::default();
        for (tree, failure) in turns {
            breaker.count(tree, FAILED, Some((*failure).to_owned()), false);
        }
        breaker
    }

    #[test]
    fn standing_still_trips_it() {
        let two = after(&[("a", "x"), ("a", "x")]);
        assert_eq!(two.tripped(3), None);
        let three = after(&[("a", "x"), ("a", "x"), ("a", "x")]);
        assert_eq!(three.tripped(3), Some(BreakerTrip::Still(3)));
    }

    #[test]
    fn going_back_and_forth_trips_it() {
        let swings = after(&[("a", "x"), ("b", "y"), ("a", "x"), ("b", "y")]);
        assert_eq!(swings.tripped(3), Some(BreakerTrip::Still(3)));
        // A tree that was never there before is a new beginning.
        let moves = after(&[("a", "x"), ("a", "x"), ("b", "y"), ("b", "y"), ("c", "z")]);
        assert_eq!(moves.tripped(3), None);
    }

    #[test]
    fn changing_files_under_the_same_failure_trips_it_later() {
        let turns = ["a", "b", "c", "d", "e", "f"].map(|tree| (tree, "x"));
        assert_eq!(after(&turns[..5]).tripped(3), None);
        assert_eq!(after(&turns).tripped(3), Some(BreakerTrip::SameFailure(6)));
        let mut planned = after(&turns[..5]);
        planned.count("f", FAILED, Some("x".to_owned()), true);
        assert_eq!(planned.tripped(3), None);
    }

    #[test]
    fn numbers_do_not_make_a_failure_another_one() {
        let report = |output: &str| report(vec![run(Some(1), output)]);
        let first = fingerprint(&report("FAILED login in 0.31s\n"));
        assert!(first.is_some());
        assert_eq!(first, fingerprint(&report("FAILED login in 12.4 s")));
        assert_ne!(first, fingerprint(&report("FAILED logout in 0.31s")));
    }
}
