//! A workflow as others see it: where it stands, what waits, its rounds, its tasks, its evidence.
//!
//! Built from state alone. The mode's own part stands in a file of its own.

pub mod asked;
pub mod inbox;
pub mod modes;
pub mod row;

use kapi_core::link::Link;
use kapi_workflow::rules::conflict::WorkflowConflict;
use kapi_workflow::rules::evidence::WorkflowEvidence;
use kapi_workflow::rules::pending::{DecisionApproval, WaitingDecision};
use kapi_workflow::rules::spent;
use kapi_workflow::rules::state::{Revision, Workflow, WorkflowBlock};
use kapi_workflow::rules::terms::WorkflowTerms;
use kapi_workflow::rules::worker::WorkflowWorker;
use schemars::JsonSchema;
use serde::Serialize;

use crate::result::UsageView;
use crate::workflow::modes::ModeParts;

/// A workflow.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WorkflowView {
    /// `workflow` where it is looked at, `workflow_result` where a command ended with it.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Its id, `NNN-slug`.
    pub id: String,
    /// Its name, as in `kapi <mode>`.
    pub mode: &'static str,
    /// What it is for, in the person's words.
    pub purpose: String,
    /// `active`, `blocked`, `completed`, `failed`, `abandoned`, `linked`, `integrated`.
    pub status: &'static str,
    /// Where it stands.
    pub phase: &'static str,
    /// Where it stands within that.
    pub subphase: Option<&'static str>,
    /// Who started it.
    pub started_by: String,
    /// When, in milliseconds since the epoch.
    pub started_at_ms: i64,
    /// What it may use.
    #[schemars(skip)]
    pub terms: WorkflowTerms,
    /// What waits for a person.
    pub pending: Option<PendingView>,
    /// What holds it up.
    pub blocked: Option<WorkflowBlock>,
    /// What was decided, oldest first.
    #[schemars(skip)]
    pub approvals: Vec<DecisionApproval>,
    /// What a person wanted changed, oldest first.
    #[schemars(skip)]
    pub revisions: Vec<Revision>,
    /// What it is connected with.
    #[schemars(skip)]
    pub links: Vec<Link>,
    /// What is at work for it.
    #[schemars(skip)]
    pub workers: Vec<WorkflowWorker>,
    /// What its completion rests on; the number of each is its place, from 1.
    #[schemars(skip)]
    pub evidence: Vec<WorkflowEvidence>,
    /// What did not fit on its branch, and what became of it, oldest first.
    #[schemars(skip)]
    pub conflicts: Vec<WorkflowConflict>,
    /// What the questions to agents used.
    pub usage: UsageView,
    /// What all of it used: the questions, and the goals of its tasks.
    pub total_usage: UsageView,
    /// Who drives it right now; `null` where nobody does.
    pub driver: Option<String>,
    /// The parts of the modes.
    #[serde(flatten)]
    #[schemars(skip)]
    pub parts: ModeParts,
    /// What a person can type next.
    pub next: Vec<String>,
}

/// A decision that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PendingView {
    /// Its name, `approve_…`.
    pub decision: &'static str,
    /// The artifact it is about.
    pub artifact: &'static str,
    /// SHA-256 of the artifact's bytes.
    pub sha256: String,
    /// What must be accepted with it.
    pub risks: Vec<String>,
    /// Since when it waits, in milliseconds since the epoch.
    pub since_ms: i64,
}

impl PendingView {
    /// Shows a decision that waits.
    #[must_use]
    pub fn of(pending: &WaitingDecision) -> Self {
        Self {
            decision: pending.decision.as_str(),
            artifact: pending.decision.artifact(),
            sha256: pending.sha256.clone(),
            risks: pending.risks.clone(),
            since_ms: pending.since_ms,
        }
    }
}

/// What a view is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Viewer {
    /// Somebody looks at it.
    At,
    /// A command ends with it.
    Last,
}

impl WorkflowView {
    /// Shows a workflow, with what a person can type next.
    #[must_use]
    pub fn of(workflow: &Workflow, looked: Viewer, next: Vec<String>) -> Self {
        let (phase, subphase) = workflow.phase();
        Self {
            kind: match looked {
                Viewer::At => "workflow",
                Viewer::Last => "workflow_result",
            },
            id: workflow.id.to_string(),
            mode: workflow.mode().as_str(),
            purpose: workflow.purpose.clone(),
            status: workflow.status.as_str(),
            phase,
            subphase,
            started_by: workflow.started_by.clone(),
            started_at_ms: workflow.started_at_ms,
            terms: workflow.terms.clone(),
            pending: workflow.pending.as_ref().map(PendingView::of),
            blocked: workflow.blocked.clone(),
            approvals: workflow.approvals.clone(),
            revisions: workflow.revisions.clone(),
            links: workflow.links.clone(),
            workers: workflow.workers.clone(),
            evidence: workflow.evidence.clone(),
            conflicts: workflow.conflicts.clone(),
            usage: UsageView::from(workflow.used),
            total_usage: UsageView::from(spent::used(workflow)),
            driver: None,
            parts: ModeParts::of(&workflow.body),
            next,
        }
    }

    /// Shows it as driven by somebody, if anybody drives it.
    #[must_use]
    pub fn driven_by(self, driver: Option<&str>) -> Self {
        Self {
            driver: driver.map(str::to_owned),
            ..self
        }
    }
}
