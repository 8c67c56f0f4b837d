//! The kernel's facts and rules: tasks that agents run in the background, and the loops that
//! submit them.
//!
//! One project has one kernel. [`decide::decide`] is where a rule says no, [`evolve::evolve`] the
//! fold; the fold holds only what has not ended. Knows no file, process or clock.

pub mod admission;
pub mod command;
pub mod condition;
pub mod decide;
pub mod definition;
pub mod denied;
pub mod event;
pub mod evolve;
pub mod goal_drive;
pub mod guardrail;
pub mod handoff;
pub mod loop_run;
pub mod policy;
pub mod request;
pub mod state;
pub mod task;
pub mod task_state;
pub mod task_terms;
