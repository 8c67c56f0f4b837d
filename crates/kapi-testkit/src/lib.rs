//! What Kapi's tests are made of: a scripted model server, and the real agent CLIs
//! to set against it.
//! Nothing that ships depends on this crate.

pub mod agent_tools;
pub mod books;
pub mod cluster;
pub mod converge;
pub mod crash;
pub mod keeping;
pub mod kernel_sim;
pub mod launch_schedule;
pub mod launch_sim;
pub mod mixed_bag;
pub mod model_server;
pub mod npm_project;
pub mod oracle;
pub mod sim;
mod sim_case;
pub mod sim_mistake;
pub mod sim_scenario;
pub mod sim_tree;
pub mod sim_world;
pub mod soak;
pub mod workflow_sim;
