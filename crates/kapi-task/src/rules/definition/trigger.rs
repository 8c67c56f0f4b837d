//! What sets a loop off: a person, the clock, or something that happens.
//!
//! Only data. When an instant is due and how an event is noticed is not known here.

use kapi_core::task_id::LoopName;
use serde::{Deserialize, Serialize};

use crate::rules::task_state::KernelTaskState;

/// The zone of a schedule that names none.
pub const ZONE_DEFAULT: &str = "UTC";
/// The longest delay that a schedule may be spread over, in milliseconds: an hour.
pub const JITTER_MS_MAX: u64 = 60 * 60 * 1_000;
/// The most missed instants that are made up for.
pub const MISFIRES_MAX: u32 = 100;
/// The most globs of one event.
pub const GLOBS_MAX: usize = 64;

/// What sets a loop off, besides a person, who always can.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum LoopTrigger {
    /// Nothing else.
    Manual,
    /// The clock.
    Cron {
        /// The instants, in five or six fields.
        schedule: String,
        /// The IANA name of the zone that they are meant in, or `local` for the machine's.
        zone: String,
        /// What becomes of instants that nobody was there for.
        misfire: Misfire,
        /// Over how many milliseconds the start is spread.
        #[serde(default)]
        jitter_ms: u64,
    },
    /// Something that happens.
    Event {
        /// What.
        source: EventSource,
    },
}

/// What becomes of instants that nobody was there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
pub enum Misfire {
    /// Nothing.
    Skip,
    /// The latest of them is made up for.
    Once,
    /// They are made up for, the oldest first.
    All {
        /// At most so many.
        max: u32,
    },
}

/// Something that happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EventSource {
    /// A file of the project changes.
    Files {
        /// Which, as globs relative to the project.
        globs: Vec<String>,
    },
    /// A ref of the repository points elsewhere.
    GitRef {
        /// Its whole name, or a glob: `refs/heads/main`, `refs/tags/*`.
        name: String,
    },
    /// A run of another loop ends.
    LoopResult {
        /// The other loop.
        #[serde(rename = "loop")]
        loop_name: LoopName,
        /// After which ends.
        on: Ending,
    },
    /// Somebody calls on loopback, with the secret.
    Webhook {
        /// The last part of the address.
        name: LoopName,
    },
}

/// Which ends of a run are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Good ones.
    Completed,
    /// Bad ones.
    Failed,
    /// Both; a run that somebody cancelled is neither.
    Any,
}

impl Ending {
    /// Tells whether a run that stands so has ended as meant.
    #[must_use]
    pub const fn is_met_by(self, state: KernelTaskState) -> bool {
        match (self, state) {
            (Self::Completed | Self::Any, KernelTaskState::Completed)
            | (Self::Failed | Self::Any, KernelTaskState::Failed) => true,
            (
                Self::Completed | Self::Failed | Self::Any,
                KernelTaskState::Pending
                | KernelTaskState::Leased
                | KernelTaskState::Running
                | KernelTaskState::Cancelled,
            )
            | (Self::Completed, KernelTaskState::Failed)
            | (Self::Failed, KernelTaskState::Completed) => false,
        }
    }
}
