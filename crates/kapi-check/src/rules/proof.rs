//! What a proof is: how checks are kept, what they showed, and how much that is worth.
//!
//! One set of rules for every way in: goals, tasks, loops, workflows and `kapi prove`. Knows no disk
//! and no process; what was run and seen arrives as data.

pub mod assess;
pub mod attribution;
pub mod baseline;
pub mod change;
pub mod conclusion;
pub mod downloads;
pub mod ecosystem;
pub mod expectation;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixture;
pub mod form;
pub mod inline_test;
pub mod inspection;
pub mod judge_prompt;
mod language;
pub mod missing;
pub mod notice;
pub mod obstacle;
pub mod policy;
pub mod precedence;
pub mod role;
mod scan;
pub mod scripts;
pub mod tally;
pub mod verify_report;
pub mod verify_run;
