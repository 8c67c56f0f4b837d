//! An error as `--json` has it: the last line on standard output of a command that failed.
//!
//! The same words are on standard error, for people and logs.

use schemars::JsonSchema;
use serde::Serialize;

/// An error that ended a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ErrorView {
    /// Always `error`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// What kind of error it is: `internal`, `usage`, `denied`, `failed`, `not_done`, `not_found`,
    /// `busy`, `interrupted` or `agent`.
    pub code: &'static str,
    /// What the process exits with.
    pub exit_code: u8,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Where it is, when it is in a file that a person wrote.
    pub place: Option<PlaceView>,
    /// Everything that is wrong with such files, each at its place; empty for other errors.
    pub faults: Vec<FaultView>,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlaceView {
    /// The file, relative to the project, or absolute when it lies elsewhere.
    pub file: String,
    /// The line, from 1; nothing when the file as a whole is meant.
    pub line: Option<usize>,
    /// The key, with those above it.
    pub key: Option<String>,
}

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FaultView {
    /// Where it is.
    pub place: PlaceView,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub remedy: String,
}
