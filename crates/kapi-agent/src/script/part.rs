//! Which part of a script is played: everybody's turns, a role's answers, or a task's own turns.
//!
//! Stands behind the file in the agent's reference, `script:FILE.yaml#role:reviewer`, so that a
//! contract that names it says all of it. Knows no workflow.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::script::ScriptTurn;

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

/// What a script answers in each role of a workflow: the n-th question plays the n-th entry, and one
/// for which there is no entry is an error.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptRoles {
    /// The one who interviews.
    pub interviewer: Vec<ScriptTurn>,
    /// The one who proposes a plan.
    pub thesis: Vec<ScriptTurn>,
    /// The one who objects.
    pub antithesis: Vec<ScriptTurn>,
    /// The one who says what comes of both.
    pub synthesis: Vec<ScriptTurn>,
    /// The one who reviews.
    pub reviewer: Vec<ScriptTurn>,
    /// The one who accounts for the whole.
    pub accountant: Vec<ScriptTurn>,
}

impl ScriptRoles {
    /// Returns the answers in a role; none in one that there is not.
    pub(crate) fn of(&self, role: &str) -> &[ScriptTurn] {
        match role {
            "interviewer" => &self.interviewer,
            "thesis" => &self.thesis,
            "antithesis" => &self.antithesis,
            "synthesis" => &self.synthesis,
            "reviewer" => &self.reviewer,
            "accountant" => &self.accountant,
            _ => &[],
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
