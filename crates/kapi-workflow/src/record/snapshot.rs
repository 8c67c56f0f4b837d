//! `snapshot.json`: the public view of a workflow, which status, hooks and tools read.
//!
//! A plain document built from the state. Fields are only ever added.

use std::fmt;

use kapi_core::id::{EffectId, GoalId};
use kapi_core::link::Link;
use kapi_core::mode::Mode;
use kapi_core::usage::Usage;
use kapi_core::workflow_status::WorkflowStatus;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::rules::effect::next;
use crate::rules::guidance;
use crate::rules::next_command::next_commands;
use crate::rules::pending::WorkflowDecision;
use crate::rules::state::{Workflow, WorkflowBlock};
use crate::rules::worker::WorkflowWorker;

/// The layout of `snapshot.json`.
pub const SNAPSHOT_VERSION: u32 = 1;

/// The public view of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowSnapshot {
    /// The layout of this document.
    pub v: u32,
    /// The number of the last event it includes.
    pub seq: u64,
    /// The workflow.
    pub id: GoalId,
    /// Its mode.
    pub mode: Mode,
    /// The phase.
    pub phase: String,
    /// The part of the phase.
    pub subphase: Option<String>,
    /// Where it stands.
    pub status: WorkflowStatus,
    /// Whether nothing comes after it.
    pub terminal: bool,
    /// What waits for a person.
    pub pending_decision: Option<WorkflowPendingDecision>,
    /// The question that waits for a person.
    pub open_question: Option<PendingQuestion>,
    /// What it is for, in the person's words.
    pub purpose: String,
    /// The documents that an agent is given now.
    pub guidance: Vec<String>,
    /// What it is connected with.
    pub links: Vec<Link>,
    /// How far it has come.
    pub progress: WorkflowProgress,
    /// What a person can type next, most useful first.
    pub next_commands: Vec<String>,
    /// What holds it up.
    pub blocked: Option<WorkflowBlock>,
    /// What is at work for it.
    pub workers: Vec<WorkflowWorker>,
    /// Whether it goes on when it is driven, and if not, why.
    pub readiness: Readiness,
    /// What is under way.
    pub in_flight: Vec<EffectId>,
    /// How many pieces of evidence there are.
    pub evidence: usize,
    /// What questions to agents used.
    pub used: Usage,
    /// The branch, once there is one.
    pub branch: Option<String>,
    /// Its worktree.
    pub worktree: Option<String>,
    /// The commit that the branch points at.
    pub commit: Option<String>,
}

/// What a person is asked to decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowPendingDecision {
    /// What is decided.
    pub decision: WorkflowDecision,
    /// The artifact that it is about.
    pub artifact: String,
    /// SHA-256 of the artifact's bytes, in hexadecimal.
    pub sha256: String,
    /// What speaks against it and must be accepted with it.
    pub risks: Vec<String>,
    /// Since when it waits, in milliseconds since the epoch.
    pub since_ms: i64,
}

/// A question that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingQuestion {
    /// Its round.
    pub round: u32,
    /// The question.
    pub text: String,
    /// An answer to accept or to correct.
    pub proposed: Option<String>,
}

/// How far a workflow has come: what its mode counts, in the mode's order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkflowProgress(pub Vec<(String, usize)>);

impl Serialize for WorkflowProgress {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(what, n)| (what, n)))
    }
}

struct CountsVisitor;

impl<'de> Visitor<'de> for CountsVisitor {
    type Value = WorkflowProgress;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("counts by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WorkflowProgress, A::Error> {
        let mut counts = Vec::new();
        while let Some(count) = map.next_entry()? {
            counts.push(count);
        }
        Ok(WorkflowProgress(counts))
    }
}

impl<'de> Deserialize<'de> for WorkflowProgress {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(CountsVisitor)
    }
}

/// Whether a workflow goes on when it is driven.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Readiness {
    /// Whether it does.
    pub ready: bool,
    /// Why it does not.
    pub reasons: Vec<String>,
}

impl WorkflowSnapshot {
    /// Builds the view of a workflow after the event of this number.
    #[must_use]
    pub fn of(workflow: &Workflow, seq: u64) -> Self {
        let (phase, subphase) = workflow.phase();
        let branch = workflow.body.rules().branch();
        Self {
            v: SNAPSHOT_VERSION,
            seq,
            id: workflow.id.clone(),
            mode: workflow.mode(),
            phase: phase.to_owned(),
            subphase: subphase.map(str::to_owned),
            status: workflow.status,
            terminal: workflow.status.is_terminal(),
            pending_decision: pending_decision(workflow),
            open_question: open_question(workflow),
            purpose: workflow.purpose.clone(),
            guidance: guidance::documents(workflow)
                .iter()
                .map(|&name| name.to_owned())
                .collect(),
            links: workflow.links.clone(),
            progress: progress(workflow),
            next_commands: next_commands(workflow),
            blocked: workflow.blocked.clone(),
            workers: workflow.workers.clone(),
            readiness: readiness(workflow),
            in_flight: workflow.in_flight.keys().cloned().collect(),
            evidence: workflow.evidence.len(),
            used: workflow.used,
            branch: branch.map(|branch| branch.name.clone()),
            worktree: branch.map(|branch| branch.worktree.clone()),
            commit: branch.map(|branch| branch.head.clone()),
        }
    }
}

fn pending_decision(workflow: &Workflow) -> Option<WorkflowPendingDecision> {
    let pending = workflow.pending.as_ref()?;
    Some(WorkflowPendingDecision {
        decision: pending.decision,
        artifact: pending.decision.artifact().to_owned(),
        sha256: pending.sha256.clone(),
        risks: pending.risks.clone(),
        since_ms: pending.since_ms,
    })
}

fn open_question(workflow: &Workflow) -> Option<PendingQuestion> {
    let question = workflow.body.rules().open_question()?;
    Some(PendingQuestion {
        round: question.round,
        text: question.text.to_owned(),
        proposed: question.proposed.map(str::to_owned),
    })
}

fn progress(workflow: &Workflow) -> WorkflowProgress {
    let counts = workflow.body.rules().counts().into_iter();
    WorkflowProgress(counts.map(|(what, n)| (what.to_owned(), n)).collect())
}

fn readiness(workflow: &Workflow) -> Readiness {
    let ready = !next(workflow).is_empty();
    let mut reasons = Vec::new();
    if let Some(pending) = &workflow.pending {
        reasons.push(format!(
            "{} is waiting for approval",
            pending.decision.words()
        ));
    }
    if let Some(question) = open_question(workflow) {
        reasons.push(format!(
            "question {} is waiting for an answer",
            question.round
        ));
    }
    if let Some(blocked) = &workflow.blocked {
        reasons.push(blocked.reason.clone());
    }
    if workflow.status.is_terminal() {
        reasons.push(format!("it is {}", workflow.status.as_str()));
    }
    if !ready && reasons.is_empty() {
        reasons.push("the user starts the next step".to_owned());
    }
    if ready {
        reasons.clear();
    }
    Readiness { ready, reasons }
}
