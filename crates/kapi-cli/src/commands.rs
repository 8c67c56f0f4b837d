//! One file for each command: its options, its steps, its output.

pub(crate) mod agent;
pub(crate) mod audit;
pub(crate) mod budget;
pub(crate) mod cancel;
pub(crate) mod check;
pub(crate) mod cleanup;
pub(crate) mod completion;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod goal;
pub(crate) mod image;
pub(crate) mod launch;
pub(crate) mod log;
pub(crate) mod mcp;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod sandbox;
pub(crate) mod show;
pub(crate) mod spend;
pub(crate) mod status;
pub(crate) mod up;
