//! Which part of a script is played: everybody's turns, a role's answers, or a task's own turns.
//!
//! Stands behind the file in the agent's reference, `script:FILE.yaml#role:reviewer`, so that a
//! contract that names it says all of it. Knows no workflow.

use std::path::{Path, PathBuf};

/// What stands before a role.
const ROLE: &str = "#role:";
/// What stands before a task and the try at it.
const TASK: &str = "#task:";
/// What a scripted agent's reference begins with.
const SCHEME: &str = "script:";

/// A part of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScriptPart {
    /// The turns of any goal.
    Turns,
    /// The answers in a role.
    Role(String),
    /// The turns of a task's goal, as `T-001.2` for the second try.
    Task(String),
}

impl ScriptPart {
    /// Takes a file's path and the part behind it apart.
    pub(crate) fn split(path: &Path) -> (PathBuf, Self) {
        let Some(text) = path.to_str() else {
            return (path.to_path_buf(), Self::Turns);
        };
        if let Some((file, role)) = text.rsplit_once(ROLE) {
            return (PathBuf::from(file), Self::Role(role.to_owned()));
        }
        match text.split_once(TASK) {
            Some((file, task)) => (PathBuf::from(file), Self::Task(task.to_owned())),
            None => (path.to_path_buf(), Self::Turns),
        }
    }
}

/// Returns the reference by which an agent answers in a role; only a scripted one needs to be told.
#[must_use]
pub fn of_role(reference: &str, role: &str) -> String {
    if reference.starts_with(SCHEME) {
        format!("{reference}{ROLE}{role}")
    } else {
        reference.to_owned()
    }
}

/// Returns the reference by which an agent works on a task of a plan, at the try with this number.
#[must_use]
pub fn of_task(reference: &str, task: &str, attempt: u32) -> String {
    if reference.starts_with(SCHEME) {
        format!("{reference}{TASK}{task}.{attempt}")
    } else {
        reference.to_owned()
    }
}
