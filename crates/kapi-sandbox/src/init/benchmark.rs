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

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, recv, socketpair};
    use rustix::pipe::pipe;

    use super::PayloadCounters;
    use crate::counter::KernelCounter;
    use crate::status::LauncherMessage;

    /// Returns a counter that stands at a number, as the kernel lets one be read.
    fn standing_at(bytes: &[u8]) -> OwnedFd {
        let (counter, to) = pipe().unwrap();
        rustix::io::write(&to, bytes).unwrap();
        counter
    }

    /// The counters are pipes, because many machines have none of instructions.
    #[test]
    fn every_counter_is_read_and_told_under_its_name() {
        let (ours, status) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        let counters = PayloadCounters(vec![
            (
                KernelCounter::Instructions,
                standing_at(&123_456_789_u64.to_ne_bytes()),
            ),
            (KernelCounter::CpuTime, standing_at(&5_u64.to_ne_bytes())),
        ]);
        counters.report(&status).unwrap();
        let mut bytes = vec![0; 1_024];
        let (n_bytes, _) =
            recv(&ours, bytes.as_mut_slice(), rustix::net::RecvFlags::empty()).unwrap();
        let message: LauncherMessage = serde_json::from_slice(&bytes[..n_bytes]).unwrap();
        let LauncherMessage::Counted(counted) = message else {
            panic!("it is told what was counted: {message:?}");
        };
        let expected = [
            (KernelCounter::Instructions, 123_456_789),
            (KernelCounter::CpuTime, 5),
        ];
        assert_eq!(counted, expected);
        let torn = PayloadCounters(vec![(KernelCounter::Instructions, standing_at(&[1, 2]))]);
        assert_eq!(torn.report(&status).unwrap_err().target, "a counter");
    }
}
