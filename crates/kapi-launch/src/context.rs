//! What every step of a launch is given: the time, the way to stop it, and who is told.

use kapi_core::room::Room;
use kapi_machine::watch::{Activity, EffectWatch, RoomQuery};
use kapi_status::rules::mapping::Mapping;
use kapi_sys::cancel::Cancel;
use kapi_sys::clock::Clock;

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
    /// Which tool calls mean which phase.
    pub mapping: &'a Mapping,
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
