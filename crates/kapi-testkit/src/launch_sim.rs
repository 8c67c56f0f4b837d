//! The log of a launch under power failures: the real one on a simulated disk, cut off at every
//! operation and once more while it recovers.
//!
//! What must hold is looked up in the log and the files beside it; nothing the launch says of itself
//! counts.

mod scenario;

use std::collections::BTreeSet;

use kapi_sys::sim_disk::Mutation;

use crate::crash::{CrashFound, crash_pairs, notify};
use crate::launch_sim::scenario::LaunchScenario;

/// Every kind of event that there is.
pub const KINDS: [&str; 13] = [
    "launched",
    "person_said",
    "told",
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

/// Lets the power fail at one operation in `one_in`, in each of four ways, and once more a few
/// operations later.
///
/// # Errors
/// The first story that an oracle complains about.
pub fn crash_everywhere(
    one_in: u64,
    mistake: Option<&Mutation>,
) -> Result<LaunchTally, Box<CrashFound>> {
    // The reference is made without the mistake: it is what should have been.
    let whole = || CrashFound::after(&[]);
    let mut reference = LaunchScenario::new(None).map_err(whole())?;
    let rest = notify(&mut reference, &[], None).map_err(whole())?.rest;
    let mut tally = LaunchTally {
        ops: reference.n_ops(),
        kinds: reference.kinds().map_err(whole())?,
        ..LaunchTally::default()
    };
    for crashes in crash_pairs(tally.ops, one_in) {
        let told = LaunchScenario::new(mistake)
            .and_then(|mut scenario| notify(&mut scenario, &crashes, Some(&rest)))
            .map_err(CrashFound::after(&crashes))?;
        tally.cases += 1;
        tally.crashes += told.crashes;
    }
    Ok(tally)
}
