//! Opening one of the kernel's counters, for what this process will execute and all that it starts.
//!
//! Knows nothing of what is counted for whom.

use std::os::fd::{FromRawFd as _, OwnedFd};

use rustix::io::Errno;

use super::check;
use crate::counter::KernelCounter;

/// The first words of `struct perf_event_attr`, as long as its first version.
#[repr(C)]
struct CounterAttributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    address: u64,
}

/// `PERF_TYPE_HARDWARE` and `PERF_TYPE_SOFTWARE`.
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
/// `PERF_COUNT_HW_INSTRUCTIONS`.
const INSTRUCTIONS: u64 = 1;
/// `PERF_COUNT_SW_TASK_CLOCK`.
const TASK_CLOCK: u64 = 1;
/// `PERF_COUNT_SW_PAGE_FAULTS`.
const PAGE_FAULTS: u64 = 2;
/// `disabled`, `inherit`, `exclude_kernel`, `exclude_hv` and `enable_on_exec`: counted are programs from
/// their first instruction on, with all that they start.
const FLAGS: u64 = 1 | 1 << 1 | 1 << 5 | 1 << 6 | 1 << 12;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// Opens a counter that begins with the next program which a child of this process becomes.
#[expect(unsafe_code, reason = "perf_event_open has no safe binding")]
pub(crate) fn open(counted: KernelCounter) -> Result<OwnedFd, Errno> {
    let (kind, config) = event(counted);
    let attributes = CounterAttributes {
        kind,
        size: u32::try_from(size_of::<CounterAttributes>()).map_err(|_| Errno::TOOBIG)?,
        config,
        period: 0,
        sample: 0,
        format: 0,
        flags: FLAGS,
        wakeup: 0,
        breakpoint: 0,
        address: 0,
    };
    // SAFETY: the structure lives through the call with its true size, and nothing else is memory.
    let result = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            0,
            -1,
            -1,
            CLOSE_ON_EXEC,
        )
    };
    let number = i32::try_from(check(result)?).map_err(|_| Errno::BADF)?;
    // SAFETY: the kernel has just opened it for this call, and nobody else knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Returns the kernel's own numbers of what is counted.
const fn event(counted: KernelCounter) -> (u32, u64) {
    match counted {
        KernelCounter::Instructions => (HARDWARE, INSTRUCTIONS),
        KernelCounter::CpuTime => (SOFTWARE, TASK_CLOCK),
        KernelCounter::PageFaults => (SOFTWARE, PAGE_FAULTS),
    }
}
