//! One agent or one command in a sandbox, with its network, its tools and its bill.
//!
//! What goals, checks, tasks and launches have in common when something runs. Knows none of them:
//! who answers for a run implements [`run_service::RunService`].

pub mod agent_start;
pub mod asker;
pub mod asking;
pub mod call_rules;
pub mod confine;
pub mod failure;
pub mod gate;
pub mod goal_paths;
pub mod grant;
pub mod home;
pub mod host_grants;
pub mod ignored;
pub mod judge_provider;
pub mod judge_settings;
pub mod network;
pub mod private_dir;
pub mod private_scratch;
pub mod repository_session;
pub mod repository_settings;
pub mod run_dir;
pub mod run_service;
pub mod run_socket;
pub mod shell;
mod shown_program;
pub mod spending;
pub mod state_cover;
pub mod tool_client;
pub mod tool_endpoint;
pub mod tree;
