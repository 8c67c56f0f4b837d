//! Why a verify command could not work at all.
//!
//! Reads one run alone; whether that is the base's fault is asked elsewhere.

use super::missing::{Certainty, missing};
use super::verify_run::VerifyRun;

/// Why a command cannot work where it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// The command.
    pub command: String,
    /// Why, as a fragment.
    pub reason: String,
    /// What mends it.
    pub remedy: String,
}

/// Returns why a run could not work, where it could not.
#[must_use]
pub fn obstacle_of(run: &VerifyRun) -> Option<Obstacle> {
    let found = missing(&run.command, &run.output_tail, run.exit_code?)?;
    (found.certainty == Certainty::Certain).then(|| Obstacle {
        command: run.command.clone(),
        reason: found.to_string(),
        remedy: found.remedy,
    })
}
