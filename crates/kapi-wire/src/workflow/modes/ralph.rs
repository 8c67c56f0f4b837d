//! A Ralph workflow as others see it: the plan, its tasks with their goals, reviews, the account.
//!
//! A plan and a review are shown whole, in the shape in which agents gave them.

use kapi_goal::rules::plan::task::PlanTaskId;
use kapi_workflow::rules::branch::Branch;
use kapi_workflow::rules::modes::ralph::plan::RalphPlan;
use kapi_workflow::rules::modes::ralph::review::Review;
use kapi_workflow::rules::modes::ralph::state::{Ralph, Stand, TaskState, WorkflowAccount};
use schemars::JsonSchema;
use serde::Serialize;

/// A Ralph workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RalphView {
    /// The commit it starts from.
    pub base: String,
    /// The branch, once it is there.
    pub branch: Option<Branch>,
    /// The planning cycle, from 1.
    pub cycle: u32,
    /// Attempts at consensus in this cycle.
    pub attempts: usize,
    /// The plan that is proposed or carried out.
    #[schemars(skip)]
    pub plan: Option<Box<RalphPlan>>,
    /// The tasks under way, those that mend included.
    pub tasks: Vec<RalphTaskView>,
    /// The order in which tasks landed.
    pub landed: Vec<String>,
    /// Every review, oldest first.
    #[schemars(skip)]
    pub reviews: Vec<Review>,
    /// For each criterion what speaks for it, in the end.
    pub account: Option<WorkflowAccount>,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RalphTaskView {
    /// Its name, `T-001`.
    pub task: String,
    /// What, in a few words.
    pub title: String,
    /// What must have landed before.
    pub depends_on: Vec<String>,
    /// The try at it, from 1.
    pub attempt: u32,
    /// Its goal.
    pub goal: Option<String>,
    /// `waiting`, `proved`, `landed` or `rested`.
    pub stand: &'static str,
    /// The branch's commit with it, or the proved one.
    pub commit: Option<String>,
    /// Why its goal rests, or why it is done again.
    pub reason: Option<String>,
}

impl RalphView {
    /// Shows a Ralph workflow.
    #[must_use]
    pub fn of(ralph: &Ralph) -> Self {
        let in_cycle = |cycle: u32| ralph.attempts.iter().filter(move |at| at.cycle == cycle);
        Self {
            base: ralph.base.clone(),
            branch: ralph.branch.clone(),
            cycle: ralph.cycle,
            attempts: in_cycle(ralph.cycle).count(),
            plan: ralph.plan.clone(),
            tasks: ralph.tasks.values().map(RalphTaskView::of).collect(),
            landed: ralph.landed.iter().map(PlanTaskId::to_string).collect(),
            reviews: ralph.reviews.clone(),
            account: ralph.account.clone(),
        }
    }
}

impl RalphTaskView {
    fn of(state: &TaskState) -> Self {
        let (stand, commit, rested) = match &state.stand {
            Stand::Waiting => ("waiting", None, None),
            Stand::Proved { commit } => ("proved", Some(commit), None),
            Stand::Landed { head } => ("landed", Some(head), None),
            Stand::Rested { reason, .. } => ("rested", None, reason.as_ref()),
        };
        let edges = state.task.depends_on.iter();
        Self {
            task: state.task.id.to_string(),
            title: state.task.title.clone(),
            depends_on: edges.map(PlanTaskId::to_string).collect(),
            attempt: state.attempt,
            goal: state.goal.as_ref().map(ToString::to_string),
            stand,
            commit: commit.cloned(),
            reason: rested.or(state.because.as_ref()).cloned(),
        }
    }
}
