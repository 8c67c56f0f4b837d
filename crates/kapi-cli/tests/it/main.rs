//! The main job as a person meets it: the built binary, a real git, real sandboxes, real signals.
//!
//! Agents are shell commands and scripts here; the four real ones have a module of their own.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the whole binary is a test; clippy sees only the functions marked as one"
)]

mod approvals;
mod authority;
mod autoresearch;
mod autoresearch_seen;
mod browser;
mod budgets;
mod caps;
mod chain;
mod check;
mod check_profiles;
mod check_running;
mod cleanup;
mod configuration;
mod consent;
mod containers;
mod crash;
mod delivery;
mod delivery_others;
mod demo;
mod dependencies;
mod dialogs;
mod doctor;
mod environment;
mod evidence;
mod exit_codes;
mod explain;
mod fleet;
mod foreign_state;
mod forged_names;
mod gate;
mod goal_approval;
mod goal_judges;
mod goal_setup;
mod goal_verbs;
mod goal_words;
mod hooks;
mod images;
mod impossible;
mod init;
mod integrate;
mod integrate_rules;
mod integrity;
mod interactive;
mod isolation;
mod json;
mod judge_models;
mod judge_outages;
mod judges;
mod kernel_leavings;
mod kernel_loop;
mod kernel_mcp;
mod kernel_mcp_within;
mod kernel_rules;
mod kernel_task;
mod kernel_workers;
mod launch;
mod launch_base;
mod launch_schedules;
mod live_view;
mod mcp;
mod models;
mod notification;
mod parking;
mod private_files;
mod profiles;
mod program;
mod project_path;
mod proof_state;
mod proof_trust;
mod prove;
mod prove_built;
mod prove_installs;
mod races;
mod repositories;
mod sandboxes;
mod service;
mod setup;
mod spec_consent;
mod spec_journey;
mod spend;
mod surface;
mod sweeping;
mod terminal;
mod together;
mod tools;
mod tricks;
mod untouched;
mod up;
mod up_kernel;
mod verdicts;
mod waits;
mod workflow_care;
mod workflow_commands;
mod workflow_cures;
mod workflow_journey;
mod workflow_limits;
mod workflow_support;
mod workflow_tasks;
