//! Deep Interview: what a person wants, asked one question at a time until it is clear.
//!
//! Knows rounds, scores and the spec; who asks the questions is the world's affair.

pub mod begin;
pub mod command;
pub mod decide;
pub mod documents;
pub mod draft;
pub mod event;
pub mod evolve;
#[cfg(test)]
pub(crate) mod model;
pub mod prompt;
#[cfg(test)]
mod props;
pub mod round;
mod rules;
#[cfg(test)]
pub(crate) mod scenario;
pub mod score;
pub mod spec;
pub mod state;
pub mod step;
