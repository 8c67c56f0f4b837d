//! The kernel of a project on disk: its queue, its workers, and the files that tell it what to do.
//!
//! The rules stand in [`crate::rules`]; here they meet files, locks and time. Starts no
//! agent: whoever works on a task says how. Tour: [`admission`] lets tasks in, [`queue`] is the stream, [`history`] what has
//! ended, [`worker`] claims and finishes tasks, [`schedule`] says when a loop is due.

pub mod admission;
pub mod audit;
pub mod awareness;
pub mod bundles;
pub mod condition_file;
pub mod creampi_file;
pub mod cron;
pub mod definition_file;
pub mod error;
pub mod events;
pub mod freshness;
pub mod guardrails;
pub mod history;
pub mod leader;
pub mod log;
pub mod policy_file;
pub mod profile_file;
pub mod queue;
pub mod schedule;
pub mod shipped;
pub mod store;
pub mod template;
pub mod terms;
pub mod worker;
pub mod zone;
