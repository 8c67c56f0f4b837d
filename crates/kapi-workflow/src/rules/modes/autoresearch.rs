//! Autoresearch: a governed search for a better number, in which the engine measures and decides.
//!
//! Knows contracts, runs and what a measurement means; sandboxes, git and agents are the world's
//! affair.

pub mod answer;
pub mod command;
pub mod contract;
pub mod decide;
pub mod documents;
pub mod effects;
pub mod event;
pub mod evolve;
#[cfg(test)]
mod fixture;
pub mod groups;
pub mod history;
#[cfg(test)]
mod model;
pub mod prompt;
#[cfg(test)]
mod props;
pub mod role;
pub mod round;
mod rules;
pub mod run;
pub mod spec;
pub mod state;
pub mod summary;
pub mod verdict;
mod want;
