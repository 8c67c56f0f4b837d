//! Integrate: finished work of several workflows and goals, brought together on the integration branch
//! with proof that what was meant is in it and nothing else.
//!
//! Knows sources, plans, conflicts and verdicts; git, checks and agents are the world's affair.

pub mod answer;
pub mod begin;
mod bisect;
pub mod command;
pub mod conflict;
pub mod decide;
pub mod documents;
pub mod effects;
pub mod event;
pub mod evolve;
#[cfg(test)]
mod fixture;
pub mod leave;
#[cfg(test)]
mod model;
pub mod offer;
pub mod plan;
mod planning;
pub mod prompt;
#[cfg(test)]
mod props;
pub mod role;
mod rules;
pub mod source;
pub mod spec;
pub mod state;
mod want;
