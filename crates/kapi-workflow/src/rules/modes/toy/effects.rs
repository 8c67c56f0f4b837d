//! What a toy wants under way, and what follows when it has ended: one thing after the other.

use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::id::EffectId;
use kapi_goal::rules::plan::task::PlanTaskId;
use kapi_goal::rules::state::GoalStatus;

use crate::rules::branch::{Branch, BranchType};
use crate::rules::decide::asked;
use crate::rules::decision_context::DecisionContext;
use crate::rules::denied::WorkflowRule;
use crate::rules::effect::{
    AgentQuestion, GoalWork, Verification, WorkflowAction, WorkflowEffect, WorkflowLanding,
};
use crate::rules::event::WorkflowEvent;
use crate::rules::modes::ModeAnswer;
use crate::rules::modes::toy::event::ToyEvent;
use crate::rules::modes::toy::spec::{APPROVE_TOY, WEIGHER};
use crate::rules::modes::toy::state::Toy;
use crate::rules::modes::toy::verb;
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::state::Workflow;

/// The task that its goal works on.
const TASK: &str = "T-001";

/// Returns the one thing that should be under way now.
pub(super) fn next(workflow: &Workflow, toy: &Toy) -> Option<WorkflowEffect> {
    let (name, action) = if !toy.is_approved {
        (
            "weigher",
            WorkflowAction::Ask(Box::new(question(workflow, toy))),
        )
    } else if let Some(landed) = toy.landed() {
        ("carry", verb::action(toy, landed))
    } else if let Some(branch) = &toy.branch {
        match &toy.proved {
            None => ("work", WorkflowAction::Work(Box::new(work(workflow, toy)?))),
            Some(commit) => (
                "land",
                WorkflowAction::Land(Box::new(landing(toy, branch, commit)?)),
            ),
        }
    } else {
        let action = WorkflowAction::Prepare {
            branch: format!("chore/toy-{}", workflow.id.slug()),
            base: toy.base.clone(),
            checks: Box::new(checks(workflow, toy)),
        };
        ("prepare", action)
    };
    Some(WorkflowEffect {
        id: EffectId::new(toy.tries, name, 1),
        workflow: workflow.id.clone(),
        action,
    })
}

fn question(workflow: &Workflow, toy: &Toy) -> AgentQuestion {
    let terms = &workflow.terms;
    AgentQuestion {
        role: &WEIGHER,
        ordinal: toy.tries,
        agent: WEIGHER.agent(terms).to_owned(),
        prompt: format!("Describe a scale for this: {}\n", workflow.purpose),
        guidance: Vec::new(),
        commit: Some(toy.base.clone()),
        since: None,
        deadline_ms: terms.question_timeout_ms,
        sandbox: terms.sandbox,
        network: terms.network,
    }
}

fn checks(workflow: &Workflow, toy: &Toy) -> Verification {
    let terms = &workflow.terms;
    Verification {
        commit: toy.base.clone(),
        base: toy.base.clone(),
        commands: terms.verify.clone(),
        protect: terms.protect.clone(),
        timeout_ms: terms.verify_timeout_ms,
        sandbox: terms.sandbox,
    }
}

fn work(workflow: &Workflow, toy: &Toy) -> Option<GoalWork> {
    Some(GoalWork {
        task: PlanTaskId::parse(TASK).ok()?,
        attempt: toy.tries,
        goal: None,
        title: "Build the scale".to_owned(),
        intent: toy.draft.as_ref()?.text.clone(),
        criteria: "It weighs.".to_owned(),
        verify: vec![toy.draft.as_ref()?.script.clone()],
        base: toy.base.clone(),
        budget: workflow.terms.budget,
        branch_type: BranchType::Chore,
        checks: CheckPolicy::default(),
        guidance: Vec::new(),
    })
}

fn landing(toy: &Toy, branch: &Branch, commit: &str) -> Option<WorkflowLanding> {
    Some(WorkflowLanding {
        goal: None,
        within: Vec::new(),
        task: PlanTaskId::parse(TASK).ok()?,
        commit: commit.to_owned(),
        base: toy.base.clone(),
        branch: branch.name.clone(),
        worktree: branch.worktree.clone(),
        head: branch.head.clone(),
        message: "chore: a scale\n".to_owned(),
        at_s: 0,
    })
}

/// Decides what follows from how an effect ended; nothing where nobody wants it any more.
pub(super) fn report(
    workflow: &Workflow,
    toy: &Toy,
    effect: &EffectId,
    outcome: &WorkflowOutcome,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    let wanted = next(workflow, toy).filter(|wanted| wanted.id == *effect);
    let Some(wanted) = wanted.filter(|_| workflow.pending.is_none()) else {
        return Ok(Vec::new());
    };
    let fact = |fact: ToyEvent| Ok(vec![fact.into()]);
    match (&wanted.action, outcome) {
        (WorkflowAction::Ask(_), WorkflowOutcome::Answered { answer, .. }) => {
            let ModeAnswer::Toy(scale) = answer.as_ref() else {
                return Ok(in_vain("the answer is another mode's"));
            };
            let scale = Box::new(scale.clone());
            let mut events = vec![ToyEvent::Described { scale }.into()];
            events.push(asked(workflow, &events, APPROVE_TOY, Vec::new(), given));
            Ok(events)
        }
        (WorkflowAction::Ask(_), WorkflowOutcome::Unreadable { .. }) => {
            Ok(in_vain("the answer is no scale"))
        }
        (
            WorkflowAction::Prepare { .. },
            WorkflowOutcome::Prepared {
                branch, worktree, ..
            },
        ) => fact(ToyEvent::BranchMade {
            branch: branch.clone(),
            worktree: worktree.clone(),
        }),
        (
            WorkflowAction::Work(_),
            WorkflowOutcome::Rested {
                status: GoalStatus::Done,
                commit: Some(commit),
                ..
            },
        ) => fact(ToyEvent::Proved {
            commit: commit.clone(),
        }),
        (WorkflowAction::Work(_), WorkflowOutcome::Rested { .. }) => {
            Ok(in_vain("the scale is not proved"))
        }
        (WorkflowAction::Land(_), WorkflowOutcome::Landed { head, tree, .. }) => {
            fact(ToyEvent::Landed {
                head: head.clone(),
                tree: tree.clone(),
            })
        }
        (WorkflowAction::Land(_), WorkflowOutcome::Conflicted { .. }) => {
            Ok(in_vain("the scale does not fit"))
        }
        _ => carried(effect, outcome),
    }
}

fn carried(
    effect: &EffectId,
    outcome: &WorkflowOutcome,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    match verb::ended(outcome) {
        Some(Ok(what)) => Ok(vec![
            ToyEvent::Carried { what }.into(),
            WorkflowEvent::Completed {},
        ]),
        Some(Err(why)) => Ok(in_vain(why)),
        None => Err(WorkflowRule::Malformed {
            rule: format!("take what came back for {effect}: it is not what was asked for"),
        }),
    }
}

/// Waits for a person, who lets it be tried anew.
fn in_vain(reason: &str) -> Vec<WorkflowEvent> {
    let blocked = WorkflowEvent::Blocked {
        reason: reason.to_owned(),
        unblock: "resume".to_owned(),
    };
    vec![ToyEvent::TriedInVain {}.into(), blocked]
}
