//! Where the launches of a project stand, for listings: which run, which wait for a person, which are
//! over.
//!
//! Those of tasks are their tasks' own and are left out.

use kapi_launch::look;
use kapi_launch::paths::SandboxPaths;
use kapi_launch::record::{LaunchState, SandboxRecord, WorkState};
use kapi_sys::clock::Clock as _;

use crate::context::Context;
use crate::error::Error;
use crate::subject::launches::{here, is_of_task};

/// A launch of the project at hand.
pub(crate) struct LaunchStanding {
    /// Its sandbox.
    pub(crate) location: SandboxPaths,
    /// What is known of it.
    pub(crate) record: SandboxRecord,
    /// Who has it now.
    pub(crate) holder: Option<String>,
    /// What it waits for.
    pub(crate) need: LaunchNeed,
}

/// What a launch waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaunchNeed {
    /// Nothing: it runs.
    Running,
    /// Its process was killed.
    Stopped,
    /// It failed.
    Failed,
    /// What it changed is only in its sandbox.
    Unmerged,
    /// Nothing: it is over.
    Over,
}

impl LaunchNeed {
    /// Tells whether a person has to do something about it.
    pub(crate) const fn waits(self) -> bool {
        match self {
            Self::Stopped | Self::Failed | Self::Unmerged => true,
            Self::Running | Self::Over => false,
        }
    }
}

/// Returns the launches of the project at hand, those that changed longest ago first. Of one whose
/// process was killed, the status file says so from then on.
pub(crate) fn standings(context: &Context) -> Result<Vec<LaunchStanding>, Error> {
    let mut found = Vec::new();
    for location in here(context)? {
        if is_of_task(location.id().as_str()) {
            continue;
        }
        // One that cannot be read is told by `kapi sandbox list` and by audits.
        let Ok(Some(record)) = SandboxRecord::load(&location) else {
            continue;
        };
        let holder = location.holder().map_err(|error| Error::launch(&error))?;
        if holder.is_none() {
            end_abandoned(context, &location)?;
        }
        found.push(LaunchStanding {
            need: need(&record, holder.is_some()),
            location,
            record,
            holder,
        });
    }
    found.sort_by_key(|standing| standing.record.updated_at_ms);
    Ok(found)
}

/// Sees to it that the status file of a launch whose process was killed says so.
pub(crate) fn end_abandoned(context: &Context, location: &SandboxPaths) -> Result<(), Error> {
    let ended = look::end_abandoned(location, context.clock.now_ms());
    ended.map_err(|error| Error::launch(&error))
}

fn need(record: &SandboxRecord, is_held: bool) -> LaunchNeed {
    match (record.state, record.exit_code, record.work) {
        _ if is_held => LaunchNeed::Running,
        (LaunchState::Running, _, _) => LaunchNeed::Stopped,
        (LaunchState::Finished, Some(0), WorkState::Committed) => LaunchNeed::Over,
        (LaunchState::Finished, Some(0), WorkState::Pending) if record.n_changed == 0 => {
            LaunchNeed::Over
        }
        (LaunchState::Finished, Some(0), WorkState::Pending) => LaunchNeed::Unmerged,
        (LaunchState::Finished, Some(_) | None, _) => LaunchNeed::Failed,
    }
}
