//! A Ralph workflow as it stands.

use std::collections::BTreeMap;

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::id::GoalId;
use kapi_goal::rules::plan::task::PlanTaskId;
use kapi_goal::rules::state::GoalStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rules::branch::Branch;
use crate::rules::changed::LandedPaths;
use crate::rules::context_begin::ContextBegin;
use crate::rules::handover::Spec;
use crate::rules::limits::Amounts;
use crate::rules::modes::ralph::event::AcceptedCriterion;
use crate::rules::modes::ralph::plan::{Attempt, PlanTask, RalphPlan};
use crate::rules::modes::ralph::review::Review;

/// A Ralph workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ralph {
    /// The commit it starts from.
    pub base: String,
    /// The spec of the interview it came from; without one the plan carries its own context.
    pub spec: Option<Box<Spec>>,
    /// Where it stands.
    pub phase: RalphPhase,
    /// The planning cycle, from 1.
    pub cycle: u32,
    /// Every attempt at consensus, oldest first.
    pub attempts: Vec<Attempt>,
    /// The plan that is proposed or carried out.
    pub plan: Option<Box<RalphPlan>>,
    /// What the checks of the plan said on the base, before anybody worked.
    #[serde(default)]
    pub baseline: Option<VerifyReport>,
    /// Why planning began anew, for the next thesis.
    pub reopened: Option<String>,
    /// The branch, once it is there.
    pub branch: Option<Branch>,
    /// The tasks under way: those of the plan, and those that mend.
    pub tasks: BTreeMap<PlanTaskId, TaskState>,
    /// The order in which tasks landed.
    pub landed: Vec<PlanTaskId>,
    /// What each of these landings changed, in the same order; `None` where nobody looked.
    #[serde(default)]
    pub changes: Vec<Option<LandedPaths>>,
    /// What landed in earlier planning cycles and stays on the branch, oldest first.
    pub earlier: Vec<Earlier>,
    /// The task whose landing was merged and has yet to be verified as a whole.
    pub unverified: Option<PlanTaskId>,
    /// The last verification of the branch as a whole, and of which commit; `None` once a review
    /// let it pass to the closeout, which verifies anew.
    pub verified: Option<(String, VerifyReport)>,
    /// How often the branch was verified as a whole; part of the next effect's name.
    pub verifications: u32,
    /// Every review, oldest first.
    pub reviews: Vec<Review>,
    /// Answers that were refused in a row, by role.
    pub refused: BTreeMap<String, Vec<String>>,
    /// Answers that came, refused ones included, by role; part of the next question's name.
    pub answers: BTreeMap<String, u32>,
    /// Fixes that were planned since a person last let it go on.
    pub mends: u32,
    /// A review said that the plan is wrong: what a person approved in advance does not cover the
    /// next one.
    pub must_ask: bool,
    /// How it was accounted for in the end.
    pub account: Option<WorkflowAccount>,
}

/// Where a Ralph workflow stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RalphPhase {
    /// A plan is proposed.
    Thesis,
    /// It is objected to.
    Antithesis,
    /// Something comes of it.
    Synthesis,
    /// The plan waits for its approval.
    Approval,
    /// Tasks are done and land.
    Run,
    /// What landed is looked at.
    Review,
    /// Evidence is put to every criterion.
    Closeout,
}

/// One task under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskState {
    /// The task.
    pub task: PlanTask,
    /// The planning cycle whose plan it belongs to.
    pub cycle: u32,
    /// The try at it, from 1.
    pub attempt: u32,
    /// The commit this try began with, once it began.
    pub base: Option<String>,
    /// Its goal, once there is one.
    pub goal: Option<GoalId>,
    /// Where it stands.
    pub stand: Stand,
    /// Whether a goal of it is being driven.
    pub is_working: bool,
    /// How often a goal of it was set to work; part of the effect's name.
    pub drives: u32,
    /// How often in a row it was sent back since a person last let it go on.
    pub sent_back: u32,
    /// When its goal last came to rest, in milliseconds since the epoch; 0 before.
    pub rested_at_ms: i64,
    /// Why it is done again: the paths that did not fit, what a verification said.
    pub because: Option<String>,
    /// What its goal may use altogether; `None` where nothing is limited.
    #[serde(default)]
    pub allowance: Option<Amounts>,
    /// How many landings there were when its commands last passed with what had landed.
    #[serde(default)]
    pub verified_with: usize,
    /// The proved commit that is held because it changes paths beside those of the plan.
    #[serde(default)]
    pub strayed: Option<String>,
    /// Whether a person lets it change such paths.
    #[serde(default)]
    pub may_stray: bool,
}

/// Where a task stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stand", rename_all = "snake_case", deny_unknown_fields)]
pub enum Stand {
    /// It waits for others or for a place.
    Waiting,
    /// Its goal proved it; it waits for its turn to land.
    Proved {
        /// The commit.
        commit: String,
    },
    /// It is on the branch.
    Landed {
        /// The branch's commit with it.
        head: String,
    },
    /// Its goal came to rest without proof.
    Rested {
        /// Where the goal stands.
        status: GoalStatus,
        /// Why.
        reason: Option<String>,
    },
}

/// A task of an earlier planning cycle that is on the branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Earlier {
    /// The cycle.
    pub cycle: u32,
    /// The task.
    pub task: PlanTaskId,
    /// What it was, in a few words.
    pub title: String,
    /// The branch's commit with it.
    pub head: String,
}

/// How a workflow was accounted for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowAccount {
    /// For each criterion what speaks for it.
    #[schemars(skip)]
    pub acceptance: Vec<AcceptedCriterion>,
    /// Why it is right as it is.
    pub rationale: String,
    /// What may still go wrong.
    pub risks: Vec<String>,
    /// What comes next.
    pub follow_up: Vec<String>,
}

impl Ralph {
    /// Returns the state that a workflow begins with.
    pub(crate) fn begun(begin: &ContextBegin) -> Self {
        Self {
            base: begin.base.clone(),
            spec: begin.spec.clone(),
            phase: RalphPhase::Thesis,
            cycle: 1,
            attempts: Vec::new(),
            plan: None,
            baseline: None,
            reopened: None,
            branch: None,
            tasks: BTreeMap::new(),
            landed: Vec::new(),
            changes: Vec::new(),
            earlier: Vec::new(),
            unverified: None,
            verified: None,
            verifications: 0,
            reviews: Vec::new(),
            refused: BTreeMap::new(),
            answers: BTreeMap::new(),
            mends: 0,
            must_ask: false,
            account: None,
        }
    }

    /// Returns the name of the branch that the plan asks for.
    pub(super) fn branch_name(&self, id: &GoalId) -> Option<String> {
        let kind = self.plan.as_ref()?.branch_type.as_str();
        Some(format!("{kind}/ralph-{}", id.slug()))
    }
}

#[cfg(test)]
mod tests;
