//! The no-progress breaker: the same tree with the same verdict, again and again.
//!
//! It compares what the harness saw, never what the agent says of itself.

use serde::{Deserialize, Serialize};

use crate::goal::event::TurnVerdict;

/// The most distinct results remembered; the oldest is forgotten first.
pub const REMEMBERED_MAX: usize = 64;

/// What turns came to, and how often.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Breaker {
    seen: Vec<Seen>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    tree: String,
    verdict: TurnVerdict,
    times: u32,
}

impl Breaker {
    /// Counts one more turn that ended in this tree with this verdict.
    pub fn count(&mut self, tree: &str, verdict: TurnVerdict) {
        let same = |seen: &&mut Seen| seen.tree == tree && seen.verdict == verdict;
        if let Some(seen) = self.seen.iter_mut().find(same) {
            seen.times = seen.times.saturating_add(1);
            return;
        }
        if self.seen.len() >= REMEMBERED_MAX {
            self.seen.remove(0);
        }
        self.seen.push(Seen {
            tree: tree.to_owned(),
            verdict,
            times: 1,
        });
    }

    /// Returns how many turns ended in this tree with this verdict.
    #[must_use]
    pub fn times(&self, tree: &str, verdict: TurnVerdict) -> u32 {
        let same = |seen: &&Seen| seen.tree == tree && seen.verdict == verdict;
        self.seen.iter().find(same).map_or(0, |seen| seen.times)
    }

    /// Forgets everything, when a person lets the goal go on.
    pub fn reset(&mut self) {
        self.seen.clear();
    }
}
