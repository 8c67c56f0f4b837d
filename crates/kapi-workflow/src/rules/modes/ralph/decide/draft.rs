//! What a decision about a build may propose, refuse and record.
//!
//! Knows which tasks may begin after every decision, and when nothing more can.

use kapi_goal::rules::budget::BudgetLimit;
use kapi_goal::rules::plan::task::PlanTaskId;
use kapi_goal::rules::state::GoalStatus;
use kapi_goal::rules::words;

use crate::rules::conflict::Settlement;
use crate::rules::decision_draft::DecisionDraft;
use crate::rules::event::WorkflowEvent;
use crate::rules::limits::Amounts;
use crate::rules::modes::ralph::event::RalphEvent;
use crate::rules::modes::ralph::role::RalphRole;
use crate::rules::modes::ralph::state::{Ralph, RalphPhase, Stand, TaskState};
use crate::rules::modes::ralph::want::wants;
use crate::rules::modes::ralph::{allowance, evolve, graph};
use crate::rules::spent;
use crate::rules::state::Workflow;

/// What goes on with a build whose tasks have used up their turns.
const MORE_TURNS: &str = " --turns +10";
/// What lets the work land that changes paths beside those of the plan.
const ALLOW_PATHS: &str = " --allow-paths";

impl DecisionDraft<'_, Ralph> {
    /// Adds the approval of the plan.
    pub(super) fn approved(&mut self, event: WorkflowEvent) {
        evolve::approved(&mut self.now);
        self.events.push(event);
    }

    /// Records that a task does not fit on the branch.
    pub(super) fn conflict(&mut self, task: &PlanTaskId, paths: &[String]) {
        let head = self.now.branch.as_ref().map(|branch| branch.head.clone());
        self.events.push(WorkflowEvent::ConflictFound {
            what: task.to_string(),
            paths: paths.to_vec(),
            onto: head.unwrap_or_default(),
            at_ms: self.given.now_ms,
        });
    }

    /// Returns to planning; what did not fit in the old plan is nobody's affair any more.
    pub(super) fn plan_anew(&mut self, reason: String, by_review: bool) {
        let tasks: Vec<PlanTaskId> = self.now.tasks.keys().cloned().collect();
        for task in tasks {
            let settlement = Settlement {
                by: "another plan".to_owned(),
                commit: None,
                why: reason.clone(),
                at_ms: self.given.now_ms,
            };
            self.settle_conflicts(&task.to_string(), settlement);
        }
        self.fact(RalphEvent::PlanReopened { reason, by_review });
    }

    /// Returns to planning because a person wants it. Planning first, so that nothing of the old
    /// plan begins once more.
    pub(super) fn reopen(&mut self, reason: String) {
        self.plan_anew(reason, false);
        self.unblock();
    }

    /// Tells a role what was wrong with its answer; too often is a person's affair.
    pub(super) fn refuse(&mut self, role: RalphRole, why: &str) {
        let role = role.as_str().to_owned();
        self.fact(RalphEvent::AnswerRefused {
            role: role.clone(),
            why: why.to_owned(),
        });
        let refused = self.now.refused.get(&role).cloned().unwrap_or_default();
        self.block_on_refusals(&role, &refused, "");
    }

    /// Begins what may begin, asks for the review once everything landed, and says so where nothing
    /// can go on without a person.
    pub(super) fn settle(&mut self) {
        let Some(branch) = self.now.branch.clone() else {
            return;
        };
        if self.now.phase != RalphPhase::Run || self.now.unverified.is_some() {
            return;
        }
        self.let_the_stinted_go_on();
        let may_begin = graph::may_begin(&self.now, self.workflow.terms.jobs);
        let share = self
            .free()
            .part(u64::try_from(may_begin.len()).unwrap_or(u64::MAX));
        for id in may_begin.into_iter().filter(|_| !share.is_used_up()) {
            let Some(state) = self.now.tasks.get(&id) else {
                continue;
            };
            let allowance = allowance::allowed(self.workflow, state, &share);
            let base = state.base.clone().unwrap_or_else(|| branch.head.clone());
            let attempt = state.attempt;
            self.fact(RalphEvent::TaskBegun {
                task: id,
                attempt,
                base,
                allowance,
            });
        }
        if graph::left(&self.now).is_empty() {
            self.fact(RalphEvent::ReviewAsked {
                commit: branch.head,
            });
        } else if wants(self.workflow, &self.now).is_empty() {
            self.block_on_rested();
        }
    }

    /// Returns what is left and not set aside for a goal at work.
    fn free(&self) -> Amounts {
        allowance::free(self.workflow, &self.now).less(&self.used)
    }

    /// Lets goals go on that used up what was set aside for them, while there is more.
    fn let_the_stinted_go_on(&mut self) {
        if self.free().is_used_up() {
            return;
        }
        let stinted = allowance::stinted(self.workflow, &self.now);
        for task in stinted {
            self.fact(RalphEvent::TaskRetried { task });
        }
    }

    /// Returns the workflow with what the outcome at hand used.
    fn with_use(&self) -> Workflow {
        let mut workflow = self.workflow.clone();
        workflow.used.add(&self.used);
        workflow
    }

    fn block_on_rested(&mut self) {
        if self.free().is_used_up()
            && let Some((reason, unblock)) = spent::used_up(&self.with_use())
        {
            // Only more of it helps, whatever else rests.
            self.block(reason, unblock);
            return;
        }
        let left = graph::left(&self.now);
        let reasons: Vec<String> = left.iter().filter_map(|it| rest_words(it)).collect();
        let has_strayed = left.iter().any(|it| it.strayed.is_some());
        let needs_turns = left.iter().any(|it| needs_turns(it));
        let within = if has_strayed {
            "; it lands with --allow-paths, and is done again within its paths without"
        } else {
            ""
        };
        let reason = format!("nothing can start: {}{within}", reasons.join("; "));
        // To go on with the workflow is to go on with the goals of its tasks.
        let resume = self.resume();
        let unblock = match (has_strayed, needs_turns) {
            (true, _) => format!("{resume}{ALLOW_PATHS}"),
            (false, true) => format!("{resume}{MORE_TURNS}"),
            (false, false) => resume,
        };
        self.block(reason, unblock);
    }
}

/// Tells whether the goal of a task has used up its turns, which only a person adds to.
fn needs_turns(state: &TaskState) -> bool {
    let Stand::Rested { status, reason } = &state.stand else {
        return false;
    };
    let used_up = words::used_up(BudgetLimit::Turns);
    *status == GoalStatus::Paused && reason.as_ref().is_some_and(|it| *it == used_up)
}

/// Returns why a task rests.
fn rest_words(state: &TaskState) -> Option<String> {
    let Stand::Rested { status, reason } = &state.stand else {
        return None;
    };
    let id = &state.task.id;
    let why = reason.as_deref().unwrap_or("no reason was given");
    let goal = state.goal.as_ref();
    Some(match (goal, status) {
        (Some(goal), GoalStatus::Done) => format!("{id} was proved by {goal}, but {why}"),
        (Some(goal), status) => format!("{id}: goal {goal} is {} ({why})", status.as_str()),
        (None, _) => format!("{id}: {why}"),
    })
}
