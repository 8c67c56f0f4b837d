//! Tasks and runs of loops as a worker performs them: real sandboxes, a real git, real agents of
//! shell and script.
//!
//! Nothing here asks a model.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the whole binary is a test; clippy sees only the functions marked as one"
)]

mod asks;
mod budgets;
mod conditions;
mod evals;
mod loops;
mod machine;
mod policies;
mod spending;
mod tasks;
mod workers;
mod workflows;
