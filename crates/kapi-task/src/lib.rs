//! Tasks and loops: the queue of a project, what may be let in, and how an attempt is performed.
//!
//! `rules` decide, fold and plan, as pure data and functions: admission, policies, guardrails,
//! definitions of loops; `record` keeps the queue and runs workers over it; `perform` touches git,
//! sandboxes and agents.
#![forbid(unsafe_code)]

pub mod perform;
pub mod record;
pub mod rules;
