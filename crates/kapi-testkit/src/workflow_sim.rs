//! Workflows under power failures: an interview, the build that comes of it and a rough one, on a
//! simulated disk that is cut off at every operation and once more while it recovers.
//!
//! What must hold is looked up in the logs and files; nothing the engine says of itself counts.

mod check;
#[macro_use]
pub mod kinds;
mod modes;
mod outcomes;
mod scenario;
mod script;
mod world;

use std::collections::BTreeSet;

use kapi_sys::sim_disk::{Mutation, Survival};

use crate::crash::{Crash, crash_pair, notify, survivals};
use crate::oracle::OracleViolation;
use crate::workflow_sim::scenario::WorkflowScenario;
use crate::workflow_sim::script::WorkflowScript;

/// What was simulated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkflowTally {
    /// Times that a story was told, each with its crashes.
    pub cases: u64,
    /// Crashes that came to pass.
    pub crashes: u64,
    /// Disk operations of the stories without a crash.
    pub ops: u64,
    /// The kinds of events that were acknowledged in the stories without a crash.
    pub kinds: BTreeSet<&'static str>,
}

/// What may be left after a power failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureModes {
    /// Everything that can be, each at every operation.
    All,
    /// Everything that can be, one after the other from operation to operation.
    InTurn,
    /// A part of what was not synced, cut at any byte.
    Torn,
}

/// A story that an oracle complained about.
#[derive(Debug, thiserror::Error)]
#[error("story {script}, crashes {crashes:?}: {violation}")]
pub struct WorkflowFound {
    /// Its name.
    pub script: &'static str,
    /// Where the power failed.
    pub crashes: Vec<Crash>,
    /// The complaint.
    pub violation: OracleViolation,
}

/// Lets the power fail in every story at one operation in `one_in`, and once more a few operations
/// later.
///
/// # Errors
/// The first story that an oracle complains about.
pub fn crash_everywhere(
    one_in: u64,
    ways: FailureModes,
    mistake: Option<&Mutation>,
) -> Result<WorkflowTally, Box<WorkflowFound>> {
    let mut tally = WorkflowTally::default();
    for script in modes::TALES.iter().copied().flatten() {
        crash_script(script, one_in, ways, mistake, &mut tally).map_err(
            |(crashes, violation)| {
                Box::new(WorkflowFound {
                    script: script.name,
                    crashes,
                    violation,
                })
            },
        )?;
    }
    Ok(tally)
}

/// Crashes, and what was found then.
type Complaint = (Vec<Crash>, OracleViolation);

fn crash_script(
    script: &'static WorkflowScript,
    one_in: u64,
    ways: FailureModes,
    mistake: Option<&Mutation>,
    tally: &mut WorkflowTally,
) -> Result<(), Complaint> {
    // The reference is made without the mistake: it is what should have been.
    let mut reference = WorkflowScenario::new(script, None);
    let reported =
        notify(&mut reference, &[], None).map_err(|violation| (Vec::new(), violation))?;
    let ops = reference.disk.ops();
    tally.ops += ops;
    tally.kinds.extend(reference.kinds());
    for op in (0..=ops).step_by(usize::try_from(one_in.max(1)).unwrap_or(1)) {
        for (survival, way) in ways.at(op).into_iter().zip(0..) {
            let after = survivals(op + 1)[(turn(op) + usize::from(way) + 1) % 4];
            let crashes = crash_pair(op, way, [survival, after]);
            let mut scenario = WorkflowScenario::new(script, mistake);
            let reported = notify(&mut scenario, &crashes, Some(&reported.rest))
                .map_err(|violation| (crashes.to_vec(), violation))?;
            tally.cases += 1;
            tally.crashes += reported.crashes;
        }
    }
    Ok(())
}

impl FailureModes {
    /// Returns what is left after the failures at an operation.
    fn at(self, op: u64) -> Vec<Survival> {
        let mut all = survivals(op);
        all.rotate_left(turn(op));
        match self {
            Self::All => all.to_vec(),
            Self::InTurn => vec![all[0]],
            Self::Torn => vec![survivals(op)[1]],
        }
    }
}

/// Returns what begins at an operation, of four.
fn turn(op: u64) -> usize {
    usize::try_from(op % 4).unwrap_or(0)
}
