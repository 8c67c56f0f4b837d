//! Gives up, for good, what building a sandbox needed and running in one does not.
//!
//! Knows nothing of mounts or of the payload.

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities, set_no_new_privs,
};

use crate::status::StepFailure;
use crate::syscall::{drop_bounding_capabilities, leave_session_keyring};

/// Drops every capability, the means to regain any, and the host session's keys; makes this process
/// opaque to the payload.
pub(super) fn give_up_all() -> Result<(), StepFailure> {
    let failed =
        |call: &'static str| move |errno: Errno| StepFailure::new(call, "the leader", errno);
    leave_session_keyring().map_err(failed("keyctl(KEYCTL_JOIN_SESSION_KEYRING)"))?;
    forbid_gains()?;
    clear_ambient_capability_set().map_err(failed("prctl(PR_CAP_AMBIENT)"))?;
    drop_bounding_capabilities().map_err(failed("prctl(PR_CAPBSET_DROP)"))?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    set_capabilities(None, sets).map_err(failed("capset"))?;
    hide_from_others()
}

/// Forbids every way to gain privileges by executing a program.
pub(super) fn forbid_gains() -> Result<(), StepFailure> {
    set_no_new_privs(true)
        .map_err(|errno| StepFailure::new("prctl(PR_SET_NO_NEW_PRIVS)", "the leader", errno))
}

/// Closes `/proc/<this>/environ`, `root`, `fd`, `maps` and `mem` to every process without privileges.
pub(super) fn hide_from_others() -> Result<(), StepFailure> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|errno| StepFailure::new("prctl(PR_SET_DUMPABLE)", "the leader", errno))
}

/// Forbids core files, which would hold the memory of programs with secrets.
pub(super) fn forbid_core_files() -> Result<(), StepFailure> {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, none)
        .map_err(|errno| StepFailure::new("setrlimit(RLIMIT_CORE)", "the payload", errno))
}
