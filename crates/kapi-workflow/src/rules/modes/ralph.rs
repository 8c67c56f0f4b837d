//! Ralph: a governed build, from a plan that was argued about to a closeout that is evidenced.
//!
//! Knows plans, objections, tasks and reviews; goals and branches are the world's affair.

mod allowance;
pub mod answer;
pub mod command;
pub mod decide;
pub mod documents;
pub mod effects;
pub mod event;
pub mod evolve;
#[cfg(test)]
mod fixture;
pub mod graph;
#[cfg(test)]
mod model;
pub mod plan;
pub mod prompt;
#[cfg(test)]
mod props;
pub mod review;
pub mod role;
mod rules;
pub mod spec;
pub mod state;
pub mod touch;
mod want;
