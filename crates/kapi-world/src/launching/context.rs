//! What every step of a launch is given: the time, the way to stop it, and who is told.

use kapi_core::status::mapping::Mapping;
use kapi_engine::world::Activity;
use kapi_sys::cancel::Cancel;
use kapi_sys::clock::Clock;

/// Who is told what happens, and who may stop it.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    /// The time.
    pub clock: &'a dyn Clock,
    /// Raised when the launch is no longer wanted.
    pub cancel: &'a Cancel,
    /// Takes what happens, from any thread.
    pub notice: &'a (dyn Fn(Activity) + Sync),
    /// Which tool calls mean which phase.
    pub mapping: &'a Mapping,
}
