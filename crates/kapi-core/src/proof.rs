//! What a proof is: how checks are kept, what they showed, and how much that is worth.
//!
//! One set of rules for every way in: goals, tasks, loops, workflows and `kapi prove`. Knows no disk
//! and no process; what was run and seen arrives as data.

pub mod ecosystem;
pub mod missing;
pub mod policy;
