//! The real world: one match from effect to git, sandbox and agent.
//!
//! The only crate that knows all three tool families. Holds no state of its own: what must
//! survive a crash is in git, in the run directory, or derived from the effect again.

pub mod asking;
pub mod book;
pub mod failure;
pub mod grant;
pub mod hidden;
pub mod launching;
pub mod place;
pub mod real;
pub mod status;
pub mod survey;

mod agent_run;
mod confine;
mod doors;
mod home;
mod ignored;
mod judge;
mod run_dir;
mod verify;
mod workshop;
