//! The kernel's queue under power failures: the real one on a simulated disk, cut off at every
//! operation and once more while it recovers.
//!
//! What must hold is looked up in the log and the history; nothing the queue says of itself counts.

mod scenario;
pub mod storm;

use kapi_sys::sim_disk::Mutation;

use crate::crash::{CrashFound, crash_pairs, notify};
use crate::kernel_sim::scenario::{KernelScenario, n_ops};

/// What was simulated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelTally {
    /// Stories told, each with its crashes.
    pub cases: u64,
    /// Disk operations of the story without a crash.
    pub ops: u64,
}

/// Lets the power fail at one operation in `one_in`, in each of four ways, and once more a few
/// operations later.
///
/// # Errors
/// The first story that an oracle complains about.
pub fn crash_everywhere(
    one_in: u64,
    mistake: Option<&Mutation>,
) -> Result<KernelTally, Box<CrashFound>> {
    let ops = n_ops().map_err(CrashFound::after(&[]))?;
    let mut tally = KernelTally { cases: 0, ops };
    for crashes in crash_pairs(ops, one_in) {
        let told = notify(&mut KernelScenario::new(mistake), &crashes, None);
        told.map_err(CrashFound::after(&crashes))?;
        tally.cases += 1;
    }
    Ok(tally)
}
