//! Adapters for coding agents: how each is launched, and what its output means.
//!
//! An adapter is data plus a parser. It starts nothing, writes nothing and knows nothing of
//! sandboxes, goals or git: it turns settings and a turn into a [`launch::Launch`], and lines of
//! output into [`stream::StreamEvent`]s and one [`kapi_core::goal::outcome::AgentRun`].
//!
//! Tour: [`agent::Kind`] says which agent, [`launch::launch`] how to start it,
//! [`stream::StreamParser`] what it did, [`verdict`] what a judge answered, [`script`] is the
//! deterministic agent for demos and tests, [`manifest`] what `kapi doctor` looks for.
//!
//! A caller writes [`launch::Launch::files`] into the agent's home, runs the program with the
//! environment and standard input given, hands every line to the parser, and at the end asks it
//! for the account. Usage reported on the way and in the account add up to what was used.
//!
//! What one turn used is exact when the agent came to an end of its own. An agent that was killed
//! has reported what it had reported: Claude its input and pi everything, Codex and Gemini nothing.
#![forbid(unsafe_code)]

pub mod agent;
mod failure;
mod json_line;
pub mod launch;
pub mod manifest;
pub mod script;
pub mod settings;
pub mod stream;
mod text;
pub mod verdict;
