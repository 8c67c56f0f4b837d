//! Whether this host can keep a program to processors and count what it does: asked before anybody relies
//! on it.
//!
//! Knows nothing of sandboxes: they are given what is found here.

use std::io;

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::counter::KernelCounter;
use crate::syscall::counter;

/// Returns the processors that this process may run on, by number.
///
/// # Errors
/// When the kernel does not say.
pub fn processors() -> io::Result<Vec<u32>> {
    let set = sched_getaffinity(None)?;
    let numbers = 0..u32::try_from(CpuSet::MAX_CPU).unwrap_or(u32::MAX);
    Ok(numbers
        .filter(|number| usize::try_from(*number).is_ok_and(|number| set.is_set(number)))
        .collect())
}

/// Tells whether the kernel counts something of the programs of whoever runs this.
///
/// # Errors
/// Why it does not: the machine has no such counter, or its administrator forbids it.
pub fn check_counter(counted: KernelCounter) -> io::Result<()> {
    counter::open(counted)?;
    Ok(())
}

/// Keeps this process, and all that it starts, to these processors; to no fewer than before where there
/// are none.
pub(crate) fn run_on(processors: &[u32]) -> Result<(), Errno> {
    if processors.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for number in processors {
        let number = usize::try_from(*number).map_err(|_| Errno::INVAL)?;
        if number >= CpuSet::MAX_CPU {
            return Err(Errno::INVAL);
        }
        set.set(number);
    }
    sched_setaffinity(None, &set)
}
