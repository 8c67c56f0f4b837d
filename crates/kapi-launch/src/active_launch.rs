//! A launch under way, as each of its steps is given it.
//!
//! Plain data; decides nothing.

use kapi_run::host_grants::HostGrants;
use kapi_status::perform::writer::StatusWriter;

use super::bounds::Bounds;
use super::context::LaunchHandlers;
use super::limits::LimitedUse;
use super::plan::LaunchPlan;

/// Whether a launch goes on where another one was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaunchAttempt {
    /// It begins.
    First,
    /// What the one before had changed is in the workspace.
    Resumed,
}

/// A launch under way: what was asked for, what holds it, and who is told.
#[derive(Clone, Copy)]
pub(crate) struct ActiveLaunch<'a> {
    /// What may be used of the host.
    pub(crate) grants: &'a HostGrants,
    /// What was asked for.
    pub(crate) plan: &'a LaunchPlan,
    /// What the agent is held within.
    pub(crate) bounds: &'a Bounds<'a>,
    /// The time, the way to stop it, and who is told.
    pub(crate) stage: &'a LaunchHandlers<'a>,
    /// Its status file.
    pub(crate) writer: &'a StatusWriter<'a>,
    /// What it uses.
    pub(crate) used: &'a LimitedUse<'a>,
    /// Whether an earlier attempt was cut off.
    pub(crate) attempt: LaunchAttempt,
}
