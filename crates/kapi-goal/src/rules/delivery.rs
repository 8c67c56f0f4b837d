//! What becomes of a proved branch beyond this repository: part of the contract, so that whoever
//! ends the goal delivers it.
//!
//! Data alone; how it is pushed is the performer's business.

use serde::{Deserialize, Serialize};

/// Where a proved branch goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// The remote that it is pushed to, by its name in the repository.
    pub remote: String,
    /// Whether a pull request is opened for it.
    pub pull_request: bool,
    /// The branch that the pull request is for; the forge's own default where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl Delivery {
    /// Returns it in words.
    #[must_use]
    pub fn words(&self) -> String {
        let pushed = format!("pushed to {}", self.remote);
        match (self.pull_request, &self.target) {
            (false, _) => pushed,
            (true, None) => format!("{pushed}, with a pull request"),
            (true, Some(target)) => format!("{pushed}, with a pull request for {target}"),
        }
    }
}
