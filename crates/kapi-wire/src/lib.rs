//! The shapes others see: what `--json` prints, and what agents' tools take and answer.
//!
//! Fields are only ever added. Nothing here decides anything; every view is built from state.

pub mod error;
pub mod kernel;
pub mod kernel_tools;
pub mod loops;
pub mod result;
pub mod rpc;
pub mod session;
pub mod workflow;

#[cfg(test)]
mod typescript;
