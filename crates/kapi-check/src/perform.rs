//! Running checks in sandboxes, on clean checkouts, and asking judges.
//!
//! Tour: [`prover`] is the one way to run a person's commands on work, [`judge`] the one judge,
//! [`dependencies`] what the project's own tools have installed and the checks may use.

pub mod checks;
pub mod dependencies;
pub mod ecosystems;
pub mod hidden;
pub mod judge;
pub mod prove;
pub mod prover;
