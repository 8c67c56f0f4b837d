//! Governed workflows: one lifecycle for every durable mode, and the modes that stand on it.
//!
//! The same machine as a goal's: a command is decided into events or denied, events are folded,
//! [`effect::next`] says what should be under way. Here several effects may be under way at once.
//!
//! Tour: [`state`] is a workflow, [`decide`] says no, [`evolve`] folds, [`modes`] lists the modes, and
//! [`mode_rules`] is what each of them knows alone.

// First: its list is a macro that others read.
#[macro_use]
pub mod modes;

pub mod batch;
pub mod branch;
pub mod candidate;
pub mod changed;
pub mod command;
pub mod conflict;
pub mod context_begin;
pub mod decide;
pub mod decision_context;
mod decision_draft;
pub mod decision_spec;
pub mod denied;
mod dispatch;
pub mod documents;
pub mod effect;
pub mod event;
pub mod evidence;
pub mod evolve;
pub mod flow;
pub mod guidance;
pub mod handover;
pub mod identity;
pub mod limits;
pub mod mode_rules;
pub mod mode_spec;
#[cfg(test)]
mod model;
pub mod next_command;
pub mod outcome;
pub mod pending;
pub mod report;
pub mod role;
#[cfg(test)]
mod scenario;
pub mod slug;
pub mod spent;
pub mod state;
pub mod target;
pub mod terms;
pub mod transliterate;
pub mod worker;
