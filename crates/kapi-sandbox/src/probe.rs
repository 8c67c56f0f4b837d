//! What this host grants, found out by trying.
//!
//! For `kapi doctor`. Does not decide what to do about a refusal.

use std::io;
use std::path::Path;
use std::time::Duration;

use kapi_sys::cancel::Cancel;
use kapi_sys::process::{End, Limits};

use crate::error::SandboxError;
use crate::hint::{Host, hint};
use crate::launch::{Carried, perform};
use crate::order::Work;
use crate::status::{Failure, Status};

/// How long all steps together may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// What came of trying every step.
#[derive(Debug)]
pub struct Probe {
    /// The steps, in order; the last is the whole sandbox.
    pub steps: Vec<Step>,
}

impl Probe {
    /// Tells whether a native sandbox can be made here.
    #[must_use]
    pub fn works(&self) -> bool {
        self.steps
            .last()
            .is_some_and(|step| matches!(step.outcome, Outcome::Works))
    }
}

/// One step.
#[derive(Debug)]
pub struct Step {
    /// What it is called, for people: `user namespace`.
    pub name: String,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a step.
#[derive(Debug)]
pub enum Outcome {
    /// The host grants it.
    Works,
    /// The host refused a call.
    Refused {
        /// The call.
        call: String,
        /// What it was called on.
        target: String,
        /// What the system said.
        source: io::Error,
        /// What a person can do about it.
        hint: Option<String>,
    },
}

/// Tries every step of a native sandbox in processes of their own and returns what came of each.
///
/// Fails only if the launcher itself could not be run.
pub fn probe(self_exe: &Path) -> Result<Probe, SandboxError> {
    let limits = Limits {
        deadline: DEADLINE,
        idle: None,
        tail_bytes_max: 64 * 1024,
        line_bytes_max: 1024,
    };
    let carried = Carried {
        stdin: Vec::new(),
        fds: Vec::new(),
        limits,
    };
    let (finished, statuses) =
        perform(self_exe, Work::Probe, carried, &Cancel::new(), &mut |_| {})?;
    let host = Host::observe();
    let steps: Vec<Step> = statuses
        .into_iter()
        .filter_map(|status| step(status, &host))
        .collect();
    if finished.end != End::Exited(0) || steps.is_empty() {
        return Err(SandboxError::Launcher {
            end: finished.end,
            output: finished.stderr.text(),
        });
    }
    Ok(Probe { steps })
}

fn step(status: Status, host: &Host) -> Option<Step> {
    match status {
        Status::Probed { step, failure } => {
            let outcome = failure.map_or(Outcome::Works, |failure| refused(failure, host));
            Some(Step {
                name: step,
                outcome,
            })
        }
        Status::Leader | Status::Failed(_) | Status::Survived(_) | Status::Ended(_) => None,
    }
}

fn refused(failure: Failure, host: &Host) -> Outcome {
    let hint = hint(&failure, host);
    Outcome::Refused {
        call: failure.call,
        target: failure.target,
        source: io::Error::from_raw_os_error(failure.errno),
        hint,
    }
}
