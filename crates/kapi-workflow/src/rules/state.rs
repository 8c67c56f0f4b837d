//! A workflow as it stands: what every mode shares, and the mode's own part.

use std::collections::{BTreeMap, BTreeSet};

use kapi_core::id::{EffectId, GoalId};
use kapi_core::link::Link;
use kapi_core::mode::Mode;
use kapi_core::usage::Usage;
use kapi_core::workflow_key::WorkflowKey;
use kapi_core::workflow_status::WorkflowStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rules::conflict::WorkflowConflict;
use crate::rules::evidence::WorkflowEvidence;
use crate::rules::limits::{GoalAccount, LimitRaises, is_zero};
use crate::rules::modes::Body;
use crate::rules::pending::{DecisionApproval, WaitingDecision};
use crate::rules::terms::WorkflowTerms;
use crate::rules::worker::WorkflowWorker;

/// A workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workflow {
    /// Its id.
    pub id: GoalId,
    /// What it is for, in the person's words.
    pub purpose: String,
    /// Who started it.
    pub started_by: String,
    /// When, in milliseconds since the epoch.
    pub started_at_ms: i64,
    /// What it may use.
    pub terms: WorkflowTerms,
    /// Where it stands.
    pub status: WorkflowStatus,
    /// What holds it up.
    pub blocked: Option<WorkflowBlock>,
    /// What waits for a person.
    pub pending: Option<WaitingDecision>,
    /// What was decided by a person, oldest first.
    pub approvals: Vec<DecisionApproval>,
    /// What a person wanted changed, oldest first.
    pub revisions: Vec<Revision>,
    /// What it is connected with.
    pub links: Vec<Link>,
    /// What its completion rests on; the number of each is its place, from 1.
    pub evidence: Vec<WorkflowEvidence>,
    /// What did not fit on its branch, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<WorkflowConflict>,
    /// What is at work for it.
    pub workers: Vec<WorkflowWorker>,
    /// What was begun and has not ended, by effect, with when it began.
    pub in_flight: BTreeMap<EffectId, i64>,
    /// How often an effect under this name failed in a row.
    pub failures: BTreeMap<EffectId, u32>,
    /// What the questions to agents used; goals keep their own account.
    pub used: Usage,
    /// What its goals have used by their own accounts, as far as that was recorded.
    #[serde(default)]
    pub goals: BTreeMap<GoalId, GoalAccount>,
    /// What a person added to the limits of its terms.
    #[serde(default)]
    pub raised: LimitRaises,
    /// For how many milliseconds somebody was at work for it, as far as its time is limited.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wall_used_ms: u64,
    /// The mode's own part.
    pub body: Body,
}

/// What holds a workflow up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowBlock {
    /// Why.
    pub reason: String,
    /// What to do about it.
    pub unblock: String,
}

/// What a person wanted changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revision {
    /// In their words.
    pub text: String,
    /// The phase it was said in.
    pub phase: String,
    /// When, in milliseconds since the epoch.
    pub at_ms: i64,
}

impl Workflow {
    /// Returns the mode.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.body.rules().spec().mode
    }

    /// Returns what it is found by.
    #[must_use]
    pub fn key(&self) -> WorkflowKey {
        WorkflowKey {
            mode: self.mode(),
            id: self.id.clone(),
        }
    }

    /// Returns every goal that it is known to have set to work, by its workers.
    #[must_use]
    pub fn goals(&self) -> BTreeSet<GoalId> {
        let dispatches = self.workers.iter().flat_map(|worker| &worker.dispatches);
        dispatches.filter_map(|it| it.goal.clone()).collect()
    }

    /// Returns phase and subphase as they stand in `snapshot.json`.
    #[must_use]
    pub fn phase(&self) -> (&'static str, Option<&'static str>) {
        let (phase, subphase) = self.body.rules().phase();
        (phase.name, subphase)
    }
}

#[cfg(test)]
mod tests;
