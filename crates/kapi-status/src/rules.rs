//! What a running agent is doing, in phases and per cent, for whoever polls.
//!
//! Pure rules: which tool call belongs to which phase, and how far along that makes a run.
//! Knows nothing of files, hooks or agents; what it is told about tools is foreign text and
//! decides nothing but a word and a number on somebody's screen.

pub mod mapping;
pub mod pattern;
pub mod phase;
pub mod progress;

mod built_in;
mod shell;
