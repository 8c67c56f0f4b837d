//! The kernel's queue under power failures: the real one on a simulated disk, cut off at every
//! operation and once more while it recovers.
//!
//! What must hold is looked up in the log and the history; nothing the queue says of itself counts.

mod scenario;
pub mod storm;

use kapi_sys::sim_disk::Mutation;

use crate::crash::{Boundary, Crash, notify, survivals};
use crate::kernel_sim::scenario::{KernelScenario, n_ops};
use crate::oracle::OracleViolation;

/// What was simulated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelTally {
    /// Stories told, each with its crashes.
    pub cases: u64,
    /// Disk operations of the story without a crash.
    pub ops: u64,
}

/// A story that an oracle complained about.
#[derive(Debug, thiserror::Error)]
#[error("crashes {crashes:?}: {violation}")]
pub struct KernelFound {
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
) -> Result<KernelTally, Box<KernelFound>> {
    let found = |crashes: &[Crash], violation| {
        Box::new(KernelFound {
            crashes: crashes.to_vec(),
            violation,
        })
    };
    let ops = n_ops().map_err(|violation| found(&[], violation))?;
    let mut tally = KernelTally { cases: 0, ops };
    for op in (0..=ops).step_by(usize::try_from(one_in.max(1)).unwrap_or(1)) {
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
            notify(&mut KernelScenario::new(mistake), &crashes, None)
                .map_err(|violation| found(&crashes, violation))?;
            tally.cases += 1;
        }
    }
    Ok(tally)
}
