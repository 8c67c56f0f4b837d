//! A toy: a mode for tests alone, which has one of everything that a mode can have.
//!
//! What all modes share is tested with it, so that none of it is written for the modes that there are;
//! `cargo xtask toy` makes a mode of the whole program of it, and counts the files that takes.

pub mod answer;
pub mod begin;
pub mod command;
pub mod decide;
mod effects;
pub mod event;
mod rules;
pub mod spec;
pub mod state;
#[cfg(test)]
mod tests;
mod verb;
