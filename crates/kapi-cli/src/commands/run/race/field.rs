//! What a race is run with, and why lanes of it could not be driven.
//!
//! Shared by what drives the lanes and what shows them; starts nothing.

use std::collections::BTreeMap;

use kapi_core::id::GoalId;
use kapi_goal::record::error::EngineError;
use kapi_goal::record::project::Project;
use kapi_goal::record::race;
use kapi_goal::record::race::Lane;
use kapi_sys::signal::Interrupts;

use crate::config::Config;
use crate::context::Context;
use crate::driving::WhenParked;
use crate::error::Error;

/// What a race is run with.
#[derive(Clone, Copy)]
pub(super) struct RaceField<'a> {
    pub(super) context: &'a Context,
    pub(super) project: &'a Project<'a>,
    pub(super) config: &'a Config,
    /// The index of the first goal.
    pub(super) of: u32,
    /// Lanes that are driven at once.
    pub(super) jobs: u32,
    pub(super) interrupts: &'a Interrupts,
    /// What becomes of a lane that is parked.
    pub(super) when_parked: WhenParked,
}

/// Why lanes could not be driven, by goal.
pub(super) type Troubles = BTreeMap<GoalId, Error>;

impl<'a> RaceField<'a> {
    /// Returns the lanes, as they stand.
    pub(super) fn lanes(&self) -> Result<Vec<Lane>, Error> {
        race::lanes(self.project, self.of).map_err(|error| self.failed(&error))
    }

    /// Returns what a failure of the engine means for the race.
    pub(super) fn failed(&self, error: &EngineError) -> Error {
        Error::engine(error, &format!("{:03}", self.of))
    }
}
