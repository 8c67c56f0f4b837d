//! What a Ralph workflow should have under way now, with everything that is needed to do it.

use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::id::EffectId;
use kapi_core::text::short_id;

use crate::rules::branch::Branch;
use crate::rules::effect::{
    AgentQuestion, GoalWork, Verification, WorkflowAction, WorkflowEffect, WorkflowLanding,
};
use crate::rules::guidance;
use crate::rules::modes::ralph::plan::{FINDING_PREFIX, RalphPlan, each_once};
use crate::rules::modes::ralph::role::RalphRole;
use crate::rules::modes::ralph::state::{Ralph, Stand, TaskState};
use crate::rules::modes::ralph::want::{RalphWant, ordinal, wants};
use crate::rules::modes::ralph::{allowance, prompt, touch};
use crate::rules::role::Reads;
use crate::rules::state::Workflow;

/// Returns what should be under way now.
#[must_use]
pub fn next(workflow: &Workflow, ralph: &Ralph) -> Vec<WorkflowEffect> {
    let wanted = wants(workflow, ralph).into_iter();
    wanted
        .filter_map(|(id, want)| effect(workflow, ralph, id, want))
        .collect()
}

fn effect(
    workflow: &Workflow,
    ralph: &Ralph,
    id: EffectId,
    want: RalphWant<'_>,
) -> Option<WorkflowEffect> {
    let branch = ralph.branch.as_ref();
    let action = match want {
        RalphWant::Ask(role) => WorkflowAction::Ask(Box::new(question(workflow, ralph, role))),
        RalphWant::CheckBase => WorkflowAction::Verify(Box::new(on_base(workflow, ralph))),
        RalphWant::Prepare => {
            let mut checks = on_base(workflow, ralph);
            if ralph.baseline.is_some() {
                // They were run before the plan was approved.
                checks.commands.clear();
            }
            WorkflowAction::Prepare {
                branch: ralph.branch_name(&workflow.id)?,
                base: ralph.base.clone(),
                checks: Box::new(checks),
            }
        }
        RalphWant::Work(state) => WorkflowAction::Work(Box::new(work(workflow, ralph, state)?)),
        RalphWant::Land(state) => {
            WorkflowAction::Land(Box::new(landing(workflow, ralph, state, branch?)?))
        }
        RalphWant::VerifyMerged => verify_head(workflow, ralph, branch?, &merged_commands(ralph)),
        RalphWant::VerifyAll => verify_head(workflow, ralph, branch?, &all_commands(ralph)),
    };
    Some(WorkflowEffect {
        id,
        workflow: workflow.id.clone(),
        action,
    })
}

fn question(workflow: &Workflow, ralph: &Ralph, role: RalphRole) -> AgentQuestion {
    let terms = &workflow.terms;
    let head = ralph.branch.as_ref().map(|branch| branch.head.clone());
    let since = match role.spec().reads {
        Reads::Change => Some(ralph.base.clone()),
        Reads::Commit => None,
    };
    AgentQuestion {
        role: role.spec(),
        ordinal: ordinal(ralph, role),
        agent: role.spec().agent(terms).to_owned(),
        prompt: prompt::question(workflow, ralph, role),
        guidance: guidance::documents(workflow).to_vec(),
        commit: Some(head.unwrap_or_else(|| ralph.base.clone())),
        since,
        deadline_ms: terms.question_timeout_ms,
        sandbox: terms.sandbox,
        network: terms.network,
    }
}

fn work(workflow: &Workflow, ralph: &Ralph, state: &TaskState) -> Option<GoalWork> {
    let task = &state.task;
    Some(GoalWork {
        task: task.id.clone(),
        attempt: state.attempt,
        goal: state.goal.clone(),
        title: task.title.clone(),
        intent: prompt::task::intent(workflow, ralph, state),
        criteria: prompt::task::criteria(ralph, state),
        verify: each_once([&task.verify[..], &workflow.terms.verify[..]]),
        base: state.base.clone()?,
        budget: allowance::budget(workflow, state),
        branch_type: ralph.plan.as_ref()?.branch_type,
        checks: CheckPolicy {
            // The next review speaks for what mends a finding of the last one.
            already_green: task.id.as_str().starts_with(FINDING_PREFIX),
            ..CheckPolicy::default()
        },
        guidance: guidance::documents(workflow).to_vec(),
    })
}

fn landing(
    workflow: &Workflow,
    ralph: &Ralph,
    state: &TaskState,
    branch: &Branch,
) -> Option<WorkflowLanding> {
    let Stand::Proved { commit } = &state.stand else {
        return None;
    };
    let task = &state.task;
    let kind = ralph.plan.as_ref()?.branch_type.as_str();
    let id = &workflow.id;
    Some(WorkflowLanding {
        task: task.id.clone(),
        goal: state.goal.clone(),
        commit: commit.clone(),
        base: state.base.clone()?,
        within: if state.may_stray {
            Vec::new()
        } else {
            task.touches.clone()
        },
        branch: branch.name.clone(),
        worktree: branch.worktree.clone(),
        head: branch.head.clone(),
        message: format!(
            "{kind}: {}\n\nProved as {}.\n\nKapi-Workflow: {id}\nKapi-Task: {}\n",
            task.title,
            short_id(commit),
            task.id
        ),
        at_s: state.rested_at_ms.div_euclid(1000),
    })
}

fn verify_head(
    workflow: &Workflow,
    ralph: &Ralph,
    branch: &Branch,
    commands: &[String],
) -> WorkflowAction {
    let verification = verification(workflow, ralph, &branch.head, commands);
    WorkflowAction::Verify(Box::new(verification))
}

/// Returns the verification of everything on the base.
fn on_base(workflow: &Workflow, ralph: &Ralph) -> Verification {
    verification(workflow, ralph, &ralph.base, &all_commands(ralph))
}

fn verification(
    workflow: &Workflow,
    ralph: &Ralph,
    commit: &str,
    commands: &[String],
) -> Verification {
    let terms = &workflow.terms;
    Verification {
        commit: commit.to_owned(),
        base: ralph.base.clone(),
        commands: each_once([commands, &terms.verify[..]]),
        protect: terms.protect.clone(),
        timeout_ms: terms.verify_timeout_ms,
        sandbox: terms.sandbox,
    }
}

/// Returns what must hold of what has landed so far: the checks of the task that was merged, and of
/// every other whose paths were changed by what landed since its own checks last passed. What only
/// the finished whole can pass is left to the closeout, or nothing could be merged half-way; once
/// nothing is left it is checked here too. The closeout checks everything once more.
fn merged_commands(ralph: &Ralph) -> Vec<String> {
    let tasks = super::graph::in_order(ralph);
    let has_landed = |state: &&&TaskState| matches!(state.stand, Stand::Landed { .. });
    let is_due = |state: &&&TaskState| {
        ralph.unverified.as_ref() == Some(&state.task.id) || touch::is_stale(ralph, state)
    };
    let due = tasks.iter().filter(has_landed).filter(is_due);
    let mut commands: Vec<String> = due.flat_map(|state| state.task.verify.clone()).collect();
    if super::graph::left(ralph).is_empty() {
        let plan = ralph.plan.iter();
        commands.extend(plan.flat_map(|plan| plan.verify.clone()));
    }
    each_once([&commands[..], &[]])
}

/// Returns what must hold in the end.
fn all_commands(ralph: &Ralph) -> Vec<String> {
    let plan = ralph.plan.as_deref();
    plan.map(RalphPlan::checks).unwrap_or_default()
}

#[cfg(test)]
mod tests;
