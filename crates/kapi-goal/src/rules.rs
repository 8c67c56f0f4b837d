//! A goal: one contract, driven turn by turn until it is proved done or honestly stopped.
//!
//! `decide` refuses or records, `evolve` folds, `next` plans. Knows nothing of how an effect is
//! performed, where events are kept, or what time it is.

pub mod breaker;
pub mod budget;
pub mod command;
pub mod consent;
pub mod contract;
pub mod decide;
pub mod delivery;
pub mod denied;
pub mod effect;
pub mod event;
pub mod evolve;
pub mod journey;
pub mod outcome;
pub mod prompt;
#[cfg(test)]
mod props;
#[cfg(test)]
mod scenario;
pub mod state;
pub mod tool;
pub mod wait;
pub mod words;

pub mod plan;
mod proof;
pub mod race;
pub mod slash;
