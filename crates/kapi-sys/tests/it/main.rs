//! The tests of the door to the operating system: real processes, real files, real signals.
//!
//! Each module tests one noun; `support` builds programs and waits for conditions.

#[cfg(test)]
mod ancestry;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod disk_parity;
#[cfg(test)]
mod lock;
#[cfg(test)]
mod process;
#[cfg(test)]
mod process_end;
#[cfg(test)]
mod process_output;
#[cfg(test)]
mod room;
#[cfg(test)]
mod signal;
#[cfg(test)]
mod sim_disk;
#[cfg(test)]
mod support;
