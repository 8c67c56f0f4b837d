//! Workflows under power failures: an interview and the build that comes of it, on a simulated disk
//! that is cut off at every operation and once more while it recovers.
//!
//! What must hold is looked up in the logs and files; nothing the engine says of itself counts.

mod answers;
mod check;
mod story;
mod world;

use std::collections::BTreeSet;

use kapi_sys::sim_disk::{Mutation, Survival};

use crate::oracle::Violation;
use crate::workflow_sim::story::Story;

/// What was simulated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkflowTally {
    /// Stories told, each with its crashes.
    pub cases: u64,
    /// Crashes that came to pass.
    pub crashes: u64,
    /// Disk operations of the story without a crash.
    pub ops: u64,
    /// The kinds of events in the logs of the story without a crash.
    pub kinds: BTreeSet<String>,
}

/// A story that an oracle complained about.
#[derive(Debug, thiserror::Error)]
#[error("crashes {crashes:?}: {violation}")]
pub struct WorkflowFound {
    /// Before which operation the power failed, counted from the start of its process, and what
    /// survived.
    pub crashes: Vec<(u64, Survival)>,
    /// The complaint.
    pub violation: Violation,
}

/// Lets the power fail at one operation in `one_in`, in `ways` of four ways, and once more a few
/// operations later.
///
/// # Errors
/// The first story that an oracle complains about.
pub fn crash_everywhere(
    one_in: u64,
    ways: usize,
    mistake: Option<&Mutation>,
) -> Result<WorkflowTally, Box<WorkflowFound>> {
    let found = |crashes: &[(u64, Survival)], violation| {
        Box::new(WorkflowFound {
            crashes: crashes.to_vec(),
            violation,
        })
    };
    // The reference is made without the mistake: it is what should have been.
    let mut reference = Story::new(None);
    let rest = reference
        .tell(&[], None)
        .map_err(|violation| found(&[], violation))?;
    let mut tally = WorkflowTally {
        ops: reference.ops(),
        kinds: reference.kinds().map_err(|error| found(&[], error))?,
        ..WorkflowTally::default()
    };
    for op in (0..=tally.ops).step_by(usize::try_from(one_in.max(1)).unwrap_or(1)) {
        let turn = usize::try_from(op).unwrap_or(0);
        for way in 0..ways.min(4) {
            let survival = survivals(op)[(turn + way) % 4];
            // The second one mostly hits the recovery: the first operations of the next process.
            let second = op.wrapping_mul(7).wrapping_add(way as u64 * 5) % 24;
            let crashes = [
                (op, survival),
                (second, survivals(op + 1)[(turn + way + 1) % 4]),
            ];
            let mut story = Story::new(mistake);
            story
                .tell(&crashes, Some(&rest))
                .map_err(|violation| found(&crashes, violation))?;
            tally.cases += 1;
            tally.crashes += story.crashes();
        }
    }
    Ok(tally)
}

const fn survivals(seed: u64) -> [Survival; 4] {
    [
        Survival::Nothing,
        Survival::TornPrefix(seed.wrapping_mul(31)),
        Survival::Everything,
        Survival::PageCache,
    ]
}
