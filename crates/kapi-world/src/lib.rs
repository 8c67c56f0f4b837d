//! The real world: one match from effect to git, sandbox and agent.
//!
//! The only crate that knows all three tool families. Holds no state of its own: what must
//! survive a crash is in git, in the run directory, or derived from the effect again.

pub mod asking;
pub mod book;
pub mod failure;
pub mod gate;
pub mod goal_paths;
pub mod grant;
pub mod spending;

pub mod asker;
pub mod confine;
pub mod home;
pub mod ignored;
pub mod judge_provider;
pub mod judge_settings;
pub mod network;
pub mod private_dir;
pub mod private_scratch;
pub mod repository_settings;
pub mod run_dir;
pub mod run_service;
pub mod run_socket;
pub mod shell;
pub mod state_cover;
pub mod tool_client;
pub mod tool_endpoint;
pub mod tree;
pub mod workshop;
