//! Workflows: the durable modes, from a request to the disk and the loop that keeps one going.
//!
//! Tour: [`requests`] is the door (methods of a project), [`opened`] is lock, load, decide, append,
//! fold, [`drive`] performs effects, several at once, [`index`] keeps the inventory true,
//! [`approvals`] holds what this person approved.

pub mod approvals;
pub mod attachment;
pub mod audit;
pub mod delay;
pub mod drive;
pub mod edited;
mod edits;
pub mod error;
mod files;
pub mod find;
mod goals;
pub mod index;
pub mod machine;
mod note;
pub mod opened;
pub mod requests;
pub mod run_name;
mod running_effect;
pub mod snapshot;
pub mod start;
pub mod supervise;
mod timer;
pub mod workflows;
