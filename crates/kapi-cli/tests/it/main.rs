//! The main job as a person meets it: the built binary, a real git, real sandboxes, real signals.
//!
//! Agents are shell commands and scripts here; the four real ones have a module of their own.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the whole binary is a test; clippy sees only the functions marked as one"
)]

mod authority;
mod budgets;
mod cleanup;
mod configuration;
mod crash;
mod demo;
mod environment;
mod exit_codes;
mod explain;
mod images;
mod integrity;
mod isolation;
mod json;
mod judges;
mod launch;
mod profiles;
mod program;
mod repositories;
mod sandboxes;
mod together;
mod tricks;
mod untouched;
mod verdicts;
