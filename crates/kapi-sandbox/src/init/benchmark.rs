//! What holds while a payload is measured: the processors that it runs on, and what the kernel counts of
//! it and of everything that it starts.
//!
//! Set in the leader before it gives up its rights, and inherited by all. Does not know what the numbers
//! mean.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::io::Errno;

use super::notify;
use crate::benchmark;
use crate::counter::KernelCounter;
use crate::order::PayloadProgram;
use crate::status::{LauncherMessage, StepFailure};
use crate::syscall::counter;

/// Counters that are open.
#[derive(Debug)]
pub(super) struct PayloadCounters(Vec<(KernelCounter, OwnedFd)>);

/// Keeps this process to the payload's processors, and counts from the payload's first instruction on.
pub(super) fn begin(payload: &PayloadProgram) -> Result<PayloadCounters, StepFailure> {
    let failed = |call: &'static str| move |errno| StepFailure::new(call, "the payload", errno);
    benchmark::run_on(&payload.processors).map_err(failed("sched_setaffinity"))?;
    let open = payload.counters.iter().map(|counted| {
        let opened = counter::open(*counted).map_err(failed("perf_event_open"))?;
        Ok((*counted, opened))
    });
    Ok(PayloadCounters(open.collect::<Result<_, StepFailure>>()?))
}

impl PayloadCounters {
    /// Tells what was counted until now.
    pub(super) fn report(&self, status: &OwnedFd) -> Result<(), StepFailure> {
        if self.0.is_empty() {
            return Ok(());
        }
        let read = self.0.iter().map(|(counted, opened)| {
            let mut bytes = [0; 8];
            let failed = |errno| StepFailure::new("read", "a counter", errno);
            let n_read = rustix::io::read(opened, &mut bytes).map_err(failed)?;
            if n_read != bytes.len() {
                return Err(failed(Errno::IO));
            }
            Ok((*counted, u64::from_ne_bytes(bytes)))
        });
        let counted = read.collect::<Result<Vec<_>, StepFailure>>()?;
        notify(status.as_fd(), &LauncherMessage::Counted(counted));
        Ok(())
    }
}
