//! The words that every subject uses: ids, actors, texts, usage, isolation, failures, verdicts.
//!
//! Pure data and functions; no file, clock, process, randomness or thread is known here. What goals,
//! tasks and workflows decide stands in the `rules` of their crates.
#![forbid(unsafe_code)]
#![warn(clippy::wildcard_enum_match_arm)]

pub mod actor;
pub mod agent_end;
pub mod agent_models;
pub mod consent_rule;
pub mod deceptive;
pub mod deletions;
pub mod evidence;
pub mod failure;
pub mod glob;
pub mod hidden_checks;
pub mod id;
pub mod integration_branch;
pub mod isolation;
pub mod judge;
pub mod link;
pub mod mode;
pub mod pattern;
pub mod quote;
pub mod room;
pub mod state_directory;
pub mod task_id;
pub mod text;
pub mod usage;
pub mod value;
pub mod verdict;
pub mod workflow_key;
pub mod workflow_status;
