//! Results of the corpora as they lie in files, from one run to the next.
//!
//! Data alone: nothing is run or written here.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ecosystem::Expectation;
use super::outcome::CaseOutcome;

/// Where the results of the last whole run lie, below the corpora's place.
pub(crate) const RESULTS: &str = "cheats.json";

/// Where the results of the last whole run lie, below the corpora's place.
pub(crate) const REAL_RESULTS: &str = "realrepos.json";

/// What came of one project.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(crate) struct RealResult {
    /// Its name and version.
    pub(crate) name: String,
    /// Its ecosystem.
    pub(crate) ecosystem: String,
    /// Its command.
    pub(crate) verify: String,
    /// What came of the wrong fix, and of the right one; nothing where it could not be tried.
    pub(crate) wrong: Option<CaseOutcome>,
    pub(crate) right: Option<CaseOutcome>,
    /// The same of both by `kapi prove`.
    #[serde(default)]
    pub(crate) by_prove: Option<[CaseOutcome; 2]>,
    /// Milliseconds of the command by hand and in the prover, each the median and the spread.
    pub(crate) by_hand_ms: Option<[u64; 2]>,
    pub(crate) proved_ms: Option<[u64; 2]>,
    /// Why it could not be tried.
    pub(crate) untried: Option<String>,
}

impl RealResult {
    pub(super) fn is_as_expected(&self) -> bool {
        let pairs = [
            self.wrong.as_ref().zip(self.right.as_ref()),
            self.by_prove.as_ref().map(|[wrong, right]| (wrong, right)),
        ];
        pairs.into_iter().all(|pair| {
            pair.is_some_and(|(wrong, right)| {
                matches!(wrong, CaseOutcome::Refused(_) | CaseOutcome::Waits(_))
                    && matches!(right, CaseOutcome::Accepted | CaseOutcome::Named(_))
            })
        })
    }

    /// Returns the cost of the command in the prover beside the same by hand.
    pub(crate) fn ratio(&self) -> Option<String> {
        let ([by_hand, _], [proved, _]) = (self.by_hand_ms?, self.proved_ms?);
        let hundredths = proved.saturating_mul(100) / by_hand.max(1);
        Some(format!("{}.{:02}", hundredths / 100, hundredths % 100))
    }
}

pub(crate) fn read_results<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<T>> {
    let reading = || format!("read {}", path.display());
    match fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text).with_context(reading),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(reading),
    }
}

/// What came of one run.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(crate) struct CaseResult {
    /// The ecosystem.
    pub(crate) ecosystem: String,
    /// The change.
    pub(crate) case: String,
    /// Its kind.
    pub(crate) kind: String,
    /// What was expected.
    pub(crate) expect: Expectation,
    /// The way.
    pub(crate) way: String,
    /// What came of it.
    pub(crate) outcome: CaseOutcome,
    /// Whether that is what was expected.
    pub(crate) as_expected: bool,
    /// How long it took.
    pub(crate) took_ms: u64,
}
