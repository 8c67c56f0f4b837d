//! Why a verify command could not work at all.
//!
//! Reads one run alone; whether that is the base's fault is asked elsewhere.

use kapi_core::failure::Failure;

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

impl Obstacle {
    /// Returns it as what the world refused; `on` is where the command was run.
    #[must_use]
    pub fn failure(&self, on: &str) -> Failure {
        Failure {
            message: format!(
                "run `{}` on {on}: it cannot run in the sandbox: {}",
                self.command, self.reason
            ),
            hint: Some(self.remedy.clone()),
        }
    }

    /// Returns it as one sentence without a final period.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!(
            "`{}` cannot run in the sandbox: {}",
            self.command, self.reason
        )
    }
}

/// Returns why a run could not work, where it could not.
#[must_use]
pub fn obstacle_of(run: &VerifyRun) -> Option<Obstacle> {
    if let Some(killed) = of_kill(run) {
        return Some(killed);
    }
    let found = missing(&run.command, &run.output_tail, run.exit_code?)?;
    (found.certainty == Certainty::Certain).then(|| Obstacle {
        command: run.command.clone(),
        reason: found.to_string(),
        remedy: found.remedy,
    })
}

/// Returns why a run that was killed from outside could not work: it is one that was run once more.
#[must_use]
pub fn of_kill(run: &VerifyRun) -> Option<Obstacle> {
    run.was_killed().then(|| Obstacle {
        command: run.command.clone(),
        reason: "it was killed by SIGKILL twice, and not by Kapi".to_owned(),
        remedy: "most likely the machine ran out of memory, which `dmesg` shows; stop other \
                 programs, or run fewer tests at once."
            .to_owned(),
    })
}
