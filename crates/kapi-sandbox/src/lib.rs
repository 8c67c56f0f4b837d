//! The native sandbox: runs one program with its own view of files, processes and network.
//!
//! [`launch::run`] wraps a program for the host side; [`init::init_main`] is the other end, entered by
//! the same binary again. Knows nothing of goals, git or agents: a caller says what to mount and run.

pub mod benchmark;
pub mod callbacks;
pub mod counter;
pub mod error;
pub mod expose;
pub mod init;
pub mod launch;
pub mod outcome;
pub mod podman;
pub mod probe;
pub mod search_path;
pub mod spec;
pub mod toolchain;

mod cgroup;
mod guard;
mod hint;
mod listen;
mod order;
mod status;
mod syscall;
mod terminal;
mod watchdog;
