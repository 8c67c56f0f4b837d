//! Workflows: durable modes that people approve, and that agents carry out.
//!
//! `rules` decide, fold and plan, as pure data and functions; `record` keeps what was decided in the
//! streams of a project; `perform` touches git, sandboxes and agents.
#![forbid(unsafe_code)]

pub mod perform;
pub mod record;
pub mod rules;
