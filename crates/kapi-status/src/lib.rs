//! What an agent at work is doing: its phase, how far it is, and the status file that says so.
//!
//! `rules` map a tool use to a phase, as pure data and functions; `file` is the shape that others
//! read; `perform` listens to a run and writes the file.
#![forbid(unsafe_code)]

pub mod file;
pub mod perform;
pub mod rules;
