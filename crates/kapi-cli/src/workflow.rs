//! Workflows at the command line: what every mode shares of reading, asking, driving and showing.
//!
//! No rule of a mode stands here; those are the core's.

pub(crate) mod approving;
pub(crate) mod candidates;
pub(crate) mod driving;
pub(crate) mod editor;
pub(crate) mod event_words;
pub(crate) mod find;
pub(crate) mod keyboard;
pub(crate) mod listing;
pub(crate) mod located;
pub(crate) mod page;
pub(crate) mod progress;
pub(crate) mod purpose;
mod queued;
mod redrafted;
pub(crate) mod report;
pub(crate) mod session;
pub(crate) mod terms;
pub(crate) mod watching;
pub(crate) mod words;
pub(crate) mod world;
