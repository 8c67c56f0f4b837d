//! The goals of a workflow as its whole sees them: what they have used by their own accounts, and what
//! was set aside for them.
//!
//! A goal's log is the truth about it. What is wrong with one is told by the effect that drives it,
//! so here it is only left out.

use kapi_core::actor::Actor;
use kapi_core::id::{EffectId, GoalId};
use kapi_goal::record::project::Project;
use kapi_goal::rules::budget::Raise;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::state::Goal;

use crate::rules::effect::GoalWork;
use crate::rules::limits::GoalAccount;
use crate::rules::spent;
use crate::rules::state::Workflow;

/// Returns the goal that an effect drives, once that is known.
pub(super) fn of_effect(workflow: &Workflow, effect: &EffectId) -> Option<GoalId> {
    let dispatches = workflow
        .workers
        .iter()
        .flat_map(|worker| &worker.dispatches);
    let mut own = dispatches.filter(|it| it.effect == *effect);
    own.find_map(|it| it.goal.clone())
}

/// Tells whether what goals use counts against a limit.
pub(super) fn are_limited(workflow: &Workflow) -> bool {
    !spent::limit(workflow).is_unlimited()
}

/// Returns what a goal of the workflow has used so far.
pub(super) fn account(
    project: &Project<'_>,
    workflow: &Workflow,
    goal: &GoalId,
) -> Option<GoalAccount> {
    let goal = project.load(goal).ok()?;
    let of = goal.contract.working.workflow.as_ref()?;
    (of.id == workflow.id).then(|| GoalAccount {
        task: of.task.clone(),
        attempt: of.attempt,
        used: goal.spent.total(),
    })
}

/// Lets a goal that is there already use what was set aside for it, in the name of the person who
/// allowed that for the whole. Doing it again adds nothing.
pub(super) fn allow(project: &Project<'_>, workflow: &Workflow, work: &GoalWork) {
    let Some(Ok(goal)) = work.goal.as_ref().map(|id| project.load(id)) else {
        return;
    };
    let raise = missing(&goal, work);
    if raise == Raise::default() {
        return;
    }
    let person = Actor::Human {
        user: workflow.started_by.clone(),
    };
    // A goal that has ended needs nothing more; what else refuses is told when it is driven.
    drop(project.submit(&goal.id, &person, &GoalCommand::RaiseBudget(raise)));
}

/// Returns what has to be added to a goal's limits for what was set aside.
fn missing(goal: &Goal, work: &GoalWork) -> Raise {
    let more = |have: Option<u64>, want: Option<u64>| match (have, want) {
        (Some(have), Some(want)) => want.saturating_sub(have),
        (None, _) | (_, None) => 0,
    };
    Raise {
        tokens: more(goal.budget.tokens, work.budget.tokens),
        usd_micros: more(goal.budget.usd_micros, work.budget.usd_micros),
        ..Raise::default()
    }
}
