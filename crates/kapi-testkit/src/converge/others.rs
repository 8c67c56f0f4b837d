//! The rules of others, as their tools document them.
//!
//! Generous to them where the documents leave room: their judge always answers in time, and the
//! population is the same.

use super::executor::{Executor, ExecutorKind};
use super::{ConvergenceOutcome, TURNS_MAX};

/// How often in a hundred a judge who reads only quotes believes a plausible lie.
const BELIEVES_LIE: u64 = 50;
/// The same, when the quotes also tell it what to answer.
const BELIEVES_INJECTION: u64 = 90;
/// How often in a hundred a judge's answer cannot be parsed, which passes.
const UNPARSEABLE: u64 = 3;

/// Done when the executor claims and a judge who reads its quotes agrees.
pub(super) fn text_evidence(kind: ExecutorKind, seed: u64) -> ConvergenceOutcome {
    let mut executor = Executor::new(kind, seed);
    let mut last_useful = 1;
    for turn in 1..=TURNS_MAX {
        let work_before = executor.tree.work;
        let had = executor.turn();
        if executor.tree.work > work_before {
            last_useful = turn;
        }
        // The spin guard.
        if !had.has_acted {
            return ended(&executor, false, turn, last_useful);
        }
        if had.is_crash || !had.claims {
            continue;
        }
        let believes = if executor.is_good() {
            true
        } else if executor.tree.has_injection {
            executor.random().chance(BELIEVES_INJECTION)
        } else {
            executor.random().chance(BELIEVES_LIE)
        };
        if believes || executor.random().chance(UNPARSEABLE) {
            return ended(&executor, true, turn, turn);
        }
    }
    ended(&executor, false, TURNS_MAX, last_useful)
}

/// Done when the executor says so.
pub(super) fn sentinel(kind: ExecutorKind, seed: u64) -> ConvergenceOutcome {
    let mut executor = Executor::new(kind, seed);
    let mut last_useful = 1;
    for turn in 1..=TURNS_MAX {
        let work_before = executor.tree.work;
        let had = executor.turn();
        if executor.tree.work > work_before {
            last_useful = turn;
        }
        if had.claims && !had.is_crash {
            return ended(&executor, true, turn, turn);
        }
    }
    ended(&executor, false, TURNS_MAX, last_useful)
}

const fn ended(
    executor: &Executor,
    is_accepted: bool,
    turns: u32,
    last_useful: u32,
) -> ConvergenceOutcome {
    ConvergenceOutcome {
        is_accepted,
        is_good: executor.is_good(),
        turns,
        last_useful,
    }
}
