//! What every stream of events is made of, whatever its events mean.
//!
//! Knows the store and who acts; knows no goal, workflow, task, sum of money or preference, nor any
//! project.

pub(crate) mod error;
pub mod logged;
