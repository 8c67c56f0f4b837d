//! The log of a launch under power failures: the real one on a simulated disk, cut off at every
//! operation and once more while it recovers.
//!
//! What must hold is looked up in the log and the files beside it; nothing the launch says of itself
//! counts.

mod scenario;

use std::collections::BTreeSet;

use kapi_sys::sim_disk::Mutation;

use crate::crash::{Boundary, Crash, notify, survivals};
use crate::launch_sim::scenario::LaunchScenario;
use crate::oracle::OracleViolation;

/// Every kind of event that there is.
pub const KINDS: [&str; 11] = [
    "launched",
    "run_recorded",
    "agent_ended",
    "limits_raised",
    "committed",
    "ended",
    "settled",
    "entered",
    "left",
    "merged",
    "runs_removed",
];

/// What was simulated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchTally {
    /// Times that the story was told, each with its crashes.
    pub cases: u64,
    /// Crashes that came to pass.
    pub crashes: u64,
    /// Disk operations of the story without a crash.
    pub ops: u64,
    /// The kinds of events in the story without a crash.
    pub kinds: BTreeSet<&'static str>,
}

/// A story that an oracle complained about.
#[derive(Debug, thiserror::Error)]
#[error("crashes {crashes:?}: {violation}")]
pub struct LaunchFound {
    /// Where the power failed.
    pub crashes: Vec<Crash>,
    /// The complaint.
    pub violation: OracleViolation,
}

/// Lets the power fail at one operation in `one_in`, in each of four ways, and once more a few
/// operations later.
///
/// # Errors
/// The first story that an oracle complains about.
pub fn crash_everywhere(
    one_in: u64,
    mistake: Option<&Mutation>,
) -> Result<LaunchTally, Box<LaunchFound>> {
    let found = |crashes: &[Crash], violation| {
        Box::new(LaunchFound {
            crashes: crashes.to_vec(),
            violation,
        })
    };
    // The reference is made without the mistake: it is what should have been.
    let whole = |violation| found(&[], violation);
    let mut reference = LaunchScenario::new(None).map_err(whole)?;
    let rest = notify(&mut reference, &[], None).map_err(whole)?.rest;
    let mut tally = LaunchTally {
        ops: reference.n_ops(),
        kinds: reference.kinds().map_err(whole)?,
        ..LaunchTally::default()
    };
    for op in (0..=tally.ops).step_by(usize::try_from(one_in.max(1)).unwrap_or(1)) {
        for (idx, survival) in survivals(op).into_iter().enumerate() {
            let shift = u64::try_from(idx).unwrap_or(0);
            // The second one mostly hits the recovery: the first operations of the next process.
            let second = op.wrapping_mul(7).wrapping_add(shift * 5) % 24;
            let others = survivals(op.wrapping_add(shift + 1));
            let crashes = [(op, survival), (second, others[(idx + 1) % others.len()])];
            let crashes = crashes.map(|(op, survival)| Crash {
                at: Boundary::Op(op),
                survival,
            });
            let told = LaunchScenario::new(mistake)
                .and_then(|mut scenario| notify(&mut scenario, &crashes, Some(&rest)))
                .map_err(|violation| found(&crashes, violation))?;
            tally.cases += 1;
            tally.crashes += told.crashes;
        }
    }
    Ok(tally)
}
