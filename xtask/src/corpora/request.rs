//! What is asked of the program under test, whatever the way.
//!
//! Data alone: how it is asked is said where the ways are.

use std::path::Path;

/// What is asked for, whatever the way.
#[derive(Debug, Clone)]
pub(super) struct CorpusRequest<'a> {
    /// The program under test.
    pub(super) kapi: &'a Path,
    /// What the agent is asked to do.
    pub(super) task: &'a str,
    /// The project's command.
    pub(super) verify: &'a str,
    /// The shell script that the agent performs.
    pub(super) script: &'a str,
    /// Further options, where there is a command line.
    pub(super) options: &'a [String],
}
