//! Checks and proof: which checks a project has, and whether a change passes them honestly.
//!
//! `rules` select checks, read what runners say and assess a report, as pure data and functions;
//! `perform` runs a person's commands on a clean checkout, and asks the judge.
#![forbid(unsafe_code)]

pub mod perform;
pub mod rules;
