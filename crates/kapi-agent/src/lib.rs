//! Adapters for coding agents: how each is launched, and what its output means.
//!
//! An adapter is data plus a parser: it turns settings and a turn into a [`launch::AgentLaunch`], and
//! lines of output into [`stream::StreamEvent`]s and one account. It starts nothing, writes nothing
//! and knows nothing of sandboxes, goals or git. `AGENTS.md` says how a caller uses it.
#![forbid(unsafe_code)]

pub mod acp;
pub mod agent;
pub mod failure;
pub mod hook;
mod json_line;
pub mod launch;
pub mod manifest;
pub mod models;
pub mod script;
pub mod settings;
pub mod stream;
mod text;
pub mod verdict;
