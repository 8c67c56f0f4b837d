//! The only door to the operating system: files, processes, locks, time and signals.
//!
//! Knows nothing of goals, events or agents. No other crate calls `std::fs` for writing,
//! `std::process::Command`, or reads the clock.

pub mod alarm;
pub mod cancel;
pub mod clock;
pub mod disk;
pub mod hang_up;
pub mod lock;
mod private_mode;
pub mod process;
pub mod real_disk;
pub mod shortage;
pub mod signal;
pub mod sim_disk;
