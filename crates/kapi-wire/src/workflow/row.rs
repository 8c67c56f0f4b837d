//! One workflow in a listing, as the inventory knows it.
//!
//! Only what can be told without reading a log.

use schemars::JsonSchema;
use serde::Serialize;

/// The workflows of a mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WorkflowStatusView {
    /// The mode.
    pub mode: &'static str,
    /// Its workflows, by index.
    pub workflows: Vec<WorkflowRow>,
}

/// One workflow in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WorkflowRow {
    /// Its id, `NNN-slug`.
    pub id: String,
    /// Its mode.
    pub mode: &'static str,
    /// What it is for; empty where its log cannot be read.
    pub purpose: String,
    /// `active`, `blocked`, `completed`, `failed`, `abandoned`, `linked`, `integrated`, or
    /// `damaged` where its log cannot be trusted.
    pub status: String,
    /// Where it stands.
    pub phase: Option<String>,
    /// Where it stands within that.
    pub subphase: Option<String>,
    /// The decision that waits for a person.
    pub pending: Option<String>,
    /// Whether this session is attached to it.
    pub attached: bool,
    /// Who drives it right now.
    pub driver: Option<String>,
    /// Its branch.
    pub branch: Option<String>,
    /// Its worktree.
    pub worktree: Option<String>,
    /// The workflows it is connected with.
    pub links: Vec<String>,
    /// When it last changed, in milliseconds since the epoch.
    pub updated_ms: Option<i64>,
    /// Why its log cannot be trusted.
    pub fault: Option<String>,
    /// What a person can type next, where something waits for them.
    pub next: Option<String>,
}
