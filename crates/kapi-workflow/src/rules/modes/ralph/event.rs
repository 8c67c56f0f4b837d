//! The facts of a Ralph workflow, as they stand in its log.

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::id::GoalId;
use kapi_goal::rules::plan::task::PlanTaskId;
use kapi_goal::rules::state::GoalStatus;
use serde::{Deserialize, Serialize};

use crate::rules::changed::LandedPaths;
use crate::rules::identity::ReviewerIdentity;
use crate::rules::limits::Amounts;
use crate::rules::modes::ralph::plan::{Objections, PlanTask, RalphPlan, Synthesis};
use crate::rules::modes::ralph::review::Review;

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RalphEvent {
    /// Somebody proposes a plan.
    ThesisRecorded {
        /// The cycle.
        cycle: u32,
        /// The attempt.
        attempt: u32,
        /// Who.
        by: ReviewerIdentity,
        /// The plan.
        plan: Box<RalphPlan>,
    },
    /// Somebody says what speaks against it.
    AntithesisRecorded {
        /// The cycle.
        cycle: u32,
        /// The attempt.
        attempt: u32,
        /// Who.
        by: ReviewerIdentity,
        /// What.
        objections: Objections,
    },
    /// Something came of the argument.
    SynthesisRecorded {
        /// The cycle.
        cycle: u32,
        /// The attempt.
        attempt: u32,
        /// Who.
        by: ReviewerIdentity,
        /// What.
        synthesis: Box<Synthesis>,
    },
    /// Every attempt of the cycle was used up without consensus.
    ConsensusMissed {
        /// The cycle.
        cycle: u32,
    },
    /// A plan waits for its approval, or was approved in advance.
    PlanProposed {
        /// The cycle.
        cycle: u32,
        /// The plan.
        plan: Box<RalphPlan>,
    },
    /// The checks of the plan were run on the base, before anybody worked.
    BaseChecked {
        /// What they said.
        report: VerifyReport,
    },
    /// The plan has to be made anew.
    PlanReopened {
        /// Why.
        reason: String,
        /// Whether a review asked for it; a person asks for it otherwise.
        by_review: bool,
    },
    /// The workflow's branch and its worktree are there.
    BranchPrepared {
        /// The branch.
        branch: String,
        /// The worktree.
        worktree: String,
        /// The commit it begins with.
        base: String,
    },
    /// A task is set to work.
    TaskBegun {
        /// Which task.
        task: PlanTaskId,
        /// The try at it, from 1.
        attempt: u32,
        /// The commit it begins with.
        base: String,
        /// What its goal may use altogether, set aside of what is left of the workflow's limits;
        /// `None` where there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allowance: Option<Amounts>,
    },
    /// A goal of a task came to rest.
    TaskRested {
        /// Which task.
        task: PlanTaskId,
        /// The try at it, from 1.
        attempt: u32,
        /// Its goal.
        goal: GoalId,
        /// Where the goal stands.
        status: GoalStatus,
        /// The proved commit.
        commit: Option<String>,
        /// Why it stands there.
        reason: Option<String>,
        /// When, in milliseconds since the epoch.
        at_ms: i64,
    },
    /// A task's commit is on the workflow's branch.
    TaskLanded {
        /// Which task.
        task: PlanTaskId,
        /// The branch's commit now.
        head: String,
        /// Its tree.
        tree: String,
        /// Whether it was merged with what had landed meanwhile, and has to be verified as such.
        merged: bool,
        /// The paths that its commit changed; `None` where nobody looked, as in older logs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changed: Option<LandedPaths>,
    },
    /// A task's checks pass on the commit it began with and its goal changed nothing: there is nothing
    /// to land.
    TaskAlreadyDone {
        /// Which task.
        task: PlanTaskId,
        /// The commit.
        commit: String,
    },
    /// A task's commit does not fit what landed meanwhile: its owner does it again on that.
    TaskConflicted {
        /// Which task.
        task: PlanTaskId,
        /// The paths.
        paths: Vec<String>,
    },
    /// What a task landed does not hold together with the rest: its owner does it again on that.
    TaskSentBack {
        /// Which task.
        task: PlanTaskId,
        /// What was seen.
        because: String,
    },
    /// A task was sent back as often as it may be without a person's word.
    TaskGivenUp {
        /// Which task.
        task: PlanTaskId,
        /// Why.
        reason: String,
    },
    /// A task's commit changes paths that the plan does not assign to it: a person is asked before it
    /// lands.
    TaskStrayed {
        /// Which task.
        task: PlanTaskId,
        /// Its proved commit.
        commit: String,
        /// Why it is held, with the paths.
        reason: String,
    },
    /// A person lets a task change such paths.
    StrayingAllowed {
        /// Which task.
        task: PlanTaskId,
    },
    /// What landed was verified as a whole, in a clean checkout.
    HeadVerified {
        /// The commit.
        commit: String,
        /// What came of it.
        report: VerifyReport,
    },
    /// A task was added to mend what a review or a verification found.
    FixPlanned {
        /// The task.
        task: Box<PlanTask>,
        /// Why.
        because: String,
    },
    /// A task that came to rest goes on.
    TaskRetried {
        /// Which.
        task: PlanTaskId,
    },
    /// Everything planned has landed and is looked at.
    ReviewAsked {
        /// The commit.
        commit: String,
    },
    /// Somebody looked at everything that landed.
    Reviewed {
        /// The review.
        review: Review,
    },
    /// An agent's answer was not what was asked for; it is told and asked again.
    AnswerRefused {
        /// Who was asked, in which role.
        role: String,
        /// What was wrong.
        why: String,
    },
    /// Every criterion has its evidence.
    Accounted {
        /// For each criterion the numbers of the evidence that speaks for it.
        acceptance: Vec<AcceptedCriterion>,
        /// Why it is right as it is: the agent's words, narrative.
        rationale: String,
        /// What may still go wrong.
        risks: Vec<String>,
        /// What comes next.
        follow_up: Vec<String>,
    },
}

/// A criterion and what speaks for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptedCriterion {
    /// The criterion.
    pub criterion: String,
    /// The numbers of the evidence.
    pub evidence: Vec<u32>,
}

#[cfg(test)]
mod tests;
