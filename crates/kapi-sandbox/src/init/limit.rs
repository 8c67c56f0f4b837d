//! The limits that the kernel keeps for each process or each user, whatever the host grants besides.
//!
//! Set in the leader and inherited by all. Does not know which of them a control group keeps too.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::order::OrderedLimits;
use crate::status::StepFailure;

/// Processes of ours that count like the payload's: launcher and leader.
const OWN_PROCESSES: u64 = 2;
/// Memory that may be kept from being swapped out: what kernels grant an ordinary user.
const LOCKED_BYTES_MAX: u64 = 8 << 20;

/// Lowers the limits of this process and all it will start. None can be raised again afterwards.
pub(super) fn lower(limits: &OrderedLimits) -> Result<(), StepFailure> {
    let processes = limits
        .processes
        .map(|count| count.saturating_add(OWN_PROCESSES));
    lower_one(Resource::Nproc, "RLIMIT_NPROC", processes)?;
    lower_one(Resource::Fsize, "RLIMIT_FSIZE", limits.file_bytes)?;
    lower_one(Resource::Data, "RLIMIT_DATA", limits.data_bytes)?;
    lower_one(Resource::Memlock, "RLIMIT_MEMLOCK", Some(LOCKED_BYTES_MAX))
}

/// Lowers the number of open files. Descriptors that are open stay, but none can be made at a number
/// from there on, so this comes when all are in place.
pub(super) fn lower_open_files(limit: Option<u64>) -> Result<(), StepFailure> {
    lower_one(Resource::Nofile, "RLIMIT_NOFILE", limit)
}

/// Sets both the limit in force and the highest one, unless the host's own is lower already.
pub(crate) fn lower_one(
    resource: Resource,
    name: &str,
    limit: Option<u64>,
) -> Result<(), StepFailure> {
    let Some(limit) = limit else { return Ok(()) };
    let highest = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = Some(limit.min(highest));
    let both = Rlimit {
        current: limit,
        maximum: limit,
    };
    setrlimit(resource, both).map_err(|errno: Errno| {
        StepFailure::new(&format!("setrlimit({name})"), "this process", errno)
    })
}
