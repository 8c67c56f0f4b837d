//! What was reserved and spent on this machine, and the caps of a day.
//!
//! `rules` decide and fold, as pure data and functions; `record` keeps the ledger in the person's
//! home, where several processes write it.
#![forbid(unsafe_code)]

pub mod record;
pub mod rules;
