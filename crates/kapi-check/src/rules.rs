//! What a check is, what a report of checks means, and when it is believed. Pure.

pub mod checks;
pub mod measure;
pub mod proof;
