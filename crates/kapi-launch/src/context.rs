//! What every step of a launch is given: the time, the way to stop it, and who is told.

use kapi_core::room::Room;
use kapi_machine::watch::{Activity, EffectWatch, RoomQuery};
use kapi_run::spending::SpendingStop;
use kapi_status::perform::writer::StatusWriter;
use kapi_status::rules::mapping::Mapping;
use kapi_status::rules::phase::StatusPhase;
use kapi_sys::cancel::Cancel;
use kapi_sys::clock::Clock;

use super::error::LaunchError;

/// What a launch reports to, reads the time from and is stopped by.
#[derive(Clone, Copy)]
pub struct LaunchHandlers<'a> {
    /// The time.
    pub clock: &'a dyn Clock,
    /// Raised when the launch is no longer wanted.
    pub cancel: &'a Cancel,
    /// Takes what happens, from any thread.
    pub notice: &'a (dyn Fn(Activity) + Sync),
    /// Is asked what is left for model calls, from any thread.
    pub room: &'a (dyn Fn(&RoomQuery<'_>) -> Room + Sync),
    /// Tells why whoever books the launch has ended it, if they did.
    pub stopped: &'a (dyn Fn() -> Option<SpendingStop> + Sync),
    /// Which tool calls mean which phase.
    pub mapping: &'a Mapping,
}

/// Is what nobody books told: nothing ends it.
#[must_use]
pub const fn never_stopped() -> Option<SpendingStop> {
    None
}

impl<'a> LaunchHandlers<'a> {
    /// Returns what watches a program of the launch and tells of it by `notice`.
    pub(crate) const fn watch(&self, notice: &'a (dyn Fn(Activity) + Sync)) -> EffectWatch<'a> {
        EffectWatch {
            cancel: self.cancel,
            notice,
            room: self.room,
        }
    }
}

/// Writes a step into the status file.
pub(crate) fn reported(
    writer: &StatusWriter<'_>,
    phase: StatusPhase,
    percent: u8,
    message: &str,
) -> Result<(), LaunchError> {
    writer
        .phase(phase, percent, message)
        .map(drop)
        .map_err(|error| LaunchError::failed(&error))
}

/// Says something to whoever follows the launch.
pub(crate) fn say(stage: &LaunchHandlers<'_>, text: &str) {
    let text = text.to_owned();
    (stage.notice)(Activity::Note { text });
}
