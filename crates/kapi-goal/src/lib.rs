//! Goals: one contract, driven turn by turn until it is proved or honestly given up.
//!
//! `rules` decide, fold and plan, as pure data and functions; `record` keeps what was decided and
//! drives a goal; `perform` touches git, sandboxes, agents and the prover; `tools` are what an
//! agent may ask of its goal.
#![forbid(unsafe_code)]

pub mod rules;
pub mod tools;

pub mod perform;
pub mod record;
