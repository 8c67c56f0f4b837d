//! What each goal of a build may use of what is left of the workflow's limits.
//!
//! Goals that are set to work together get equal parts; what one leaves over is there for the next.
//! Known before a goal begins, so that side by side they do not use the same rest twice.

use kapi_core::usage::Usage;
use kapi_goal::rules::budget::Budget;
use kapi_goal::rules::plan::task::PlanTaskId;
use kapi_goal::rules::state::GoalStatus;

use crate::rules::limits::Amounts;
use crate::rules::modes::ralph::graph;
use crate::rules::modes::ralph::state::{Ralph, Stand, TaskState};
use crate::rules::spent;
use crate::rules::state::Workflow;

/// Returns what is left and not set aside for a goal at work.
pub(super) fn free(workflow: &Workflow, ralph: &Ralph) -> Amounts {
    let working = ralph.tasks.values().filter(|state| state.is_working);
    working.fold(spent::left(workflow), |left, state| {
        let allowance = state.allowance.unwrap_or_default();
        left.without(&allowance.less(&used(workflow, state)))
    })
}

/// Returns what the goal of a task may use altogether when it is set to work with a share of what is
/// left; `None` where nothing is limited.
pub(super) fn allowed(workflow: &Workflow, state: &TaskState, share: &Amounts) -> Option<Amounts> {
    (!share.is_unlimited()).then(|| share.beyond(&used(workflow, state)))
}

/// Returns the tasks whose goals rest because they used up what was set aside for them.
///
/// Each goes on only with more than it had, so nobody goes on for ever.
pub(super) fn stinted(workflow: &Workflow, ralph: &Ralph) -> Vec<PlanTaskId> {
    let is_stinted = |state: &&TaskState| {
        let rests = matches!(
            &state.stand,
            Stand::Rested {
                status: GoalStatus::Paused,
                ..
            }
        );
        let allowance = state.allowance.unwrap_or_default();
        rests && allowance.less(&used(workflow, state)).is_used_up()
    };
    let rested = graph::left(ralph).into_iter().filter(is_stinted);
    rested.map(|state| state.task.id.clone()).collect()
}

/// Returns the limits of a task's goal.
pub(super) fn budget(workflow: &Workflow, state: &TaskState) -> Budget {
    let budget = workflow.terms.budget;
    let Some(allowance) = state.allowance else {
        return budget;
    };
    Budget {
        tokens: allowance.tokens.or(budget.tokens),
        usd_micros: allowance.usd_micros.or(budget.usd_micros),
        ..budget
    }
}

/// Returns what the goal of a task's try has used so far.
fn used(workflow: &Workflow, state: &TaskState) -> Usage {
    let accounts = workflow.goals.values();
    let mut used = Usage::default();
    for account in accounts.filter(|it| it.task == state.task.id && it.attempt == state.attempt) {
        used.add(&account.used);
    }
    used
}
