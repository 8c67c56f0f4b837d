//! The kernel as others see it: tasks, rules, lessons, and what a project's kernel is at.
//!
//! Built from what the kernel knows; nothing here decides anything.

pub mod dashboard;
pub mod memory;
pub mod policy;
pub mod task;
