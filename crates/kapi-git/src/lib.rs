//! Git, driven through its command line, on trees that an untrusted agent wrote.
//!
//! Makes workspaces, candidate commits, clean checkouts and the final move of a branch.
//! Knows nothing of goals, events, sandboxes or agents; every path, identity and time is an
//! argument, and one function builds every git command.

#![forbid(unsafe_code)]

pub mod advance;
pub mod apply;
pub mod author;
pub mod bundle;
pub mod candidate;
pub mod change;
pub mod changed_file;
pub mod checkout;
pub mod combine;
pub mod command;
pub mod coverage;
pub mod diff;
pub mod hidden;
pub mod hunks;
pub mod id;
pub mod ignored;
pub mod in_place;
pub mod land;
pub mod layer;
pub mod markers;
pub mod name_pattern;
pub mod own_commits;
pub mod owned_dir;
pub mod patches;
pub mod private_view;
pub mod publish;
pub mod push;
pub mod reachable;
pub mod refused_path;
pub mod repository;
pub mod rescue;
pub mod resolutions;
pub mod restore;
pub mod split;
pub mod workspace;

mod check_ignore;
mod commit_object;
mod protected;
pub mod ref_name;
mod reference;
mod scratch;
mod sweep;
mod tree_edit;
mod worktree;
