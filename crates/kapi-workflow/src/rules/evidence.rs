//! Evidence: what a workflow's completion rests on, apart from what somebody says.
//!
//! Only what Kapi itself saw is validation; everything an agent or a person tells is narrative.

use serde::{Deserialize, Serialize};

use crate::rules::worker::WorkerId;

/// The kind of evidence that a task changed paths which the plan does not name for it.
pub const STRAYED: &str = "strayed";
/// The kind of evidence of what a check said on the base, before anything was done.
pub const BASELINE: &str = "baseline";
/// The kind of evidence of what a change does to the checks that passed.
pub const NAMED: &str = "named";

/// How much a piece of evidence weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Somebody's words.
    Narrative,
    /// Seen by Kapi: an exit code, a tree, a verdict bound to a commit.
    Validation,
}

impl WorkflowEvidence {
    /// What a reference begins with.
    pub const REFERENCES: [&'static str; 6] =
        ["git:", "file:", "goal:", "event:", "worker:", "url:"];

    /// Returns evidence with nothing but what every piece has.
    #[must_use]
    pub fn new(weight: Weight, kind: &str, summary: String, reference: String, at_ms: i64) -> Self {
        Self {
            weight,
            kind: kind.to_owned(),
            summary,
            reference,
            command: None,
            exit_code: None,
            role: None,
            verdict: None,
            phase: None,
            artifacts: Vec::new(),
            worker: None,
            verifier: None,
            at_ms,
        }
    }

    /// Tells whether the reference is of a kind that can be followed, and names something.
    #[must_use]
    pub fn has_sound_reference(&self) -> bool {
        let named = Self::REFERENCES
            .iter()
            .find_map(|kind| self.reference.strip_prefix(kind));
        named.is_some_and(|named| !named.trim().is_empty())
    }
}

/// One piece of evidence. Its number is its place in the workflow's list, from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowEvidence {
    /// How much it weighs.
    pub weight: Weight,
    /// What it is: `verify`, `review`, `land`, `answer`, `consensus`, `strayed`,
    /// `named`, `baseline`.
    pub kind: String,
    /// What it says, in a line.
    pub summary: String,
    /// Where it is: `git:<commit>`, `file:<path>`, `goal:<id>`, `event:<seq>`, `worker:<id>`,
    /// `url:<address>`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The command that was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// In which role it was given: `thesis`, `reviewer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What was decided by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// The phase it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Artifacts it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    /// The worker it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    /// Who verified: an agent with its run, or the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verifier: Option<String>,
    /// When, in milliseconds since the epoch.
    pub at_ms: i64,
}
