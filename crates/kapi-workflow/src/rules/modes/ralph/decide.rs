//! Where the rules of a Ralph workflow say no, and what follows from what came back.
//!
//! What came back is taken for what is wanted now, by the effect's name: what nobody wants any more
//! changes nothing. Every decision ends with the tasks that may begin then.

use kapi_check::rules::proof::verify_run::VerifyRun;
use kapi_core::actor::Actor;
use kapi_core::id::EffectId;

use crate::rules::decide::{human, said, wrong_phase};
use crate::rules::decision_context::DecisionContext;
use crate::rules::decision_draft::DecisionDraft;
use crate::rules::denied::WorkflowRule;
use crate::rules::event::WorkflowEvent;
use crate::rules::modes::ralph::command::RalphCommand;
use crate::rules::modes::ralph::event::RalphEvent;
use crate::rules::modes::ralph::plan::Attempt;
use crate::rules::modes::ralph::state::{Ralph, RalphPhase, Stand};
use crate::rules::modes::ralph::want::{RalphWant, wanted};
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::state::Workflow;

mod argue;
mod carry;
mod close;
mod draft;

/// Decides a request.
pub(crate) fn ask(
    workflow: &Workflow,
    ralph: &Ralph,
    actor: &Actor,
    command: &RalphCommand,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    let mut draft = DecisionDraft::new(workflow, ralph, given);
    match command {
        RalphCommand::ReopenPlan { reason } => {
            let action = "return to planning";
            human(actor, action)?;
            match ralph.phase {
                RalphPhase::Run | RalphPhase::Review | RalphPhase::Closeout => {}
                RalphPhase::Thesis
                | RalphPhase::Antithesis
                | RalphPhase::Synthesis
                | RalphPhase::Approval => return Err(wrong_phase(workflow, action)),
            }
            let reason = said(reason, "return to planning without a reason")?;
            draft.reopen(reason);
        }
        RalphCommand::AllowPaths => {
            let action = "let paths outside the plan be changed";
            human(actor, action)?;
            if ralph.phase != RalphPhase::Run {
                return Err(wrong_phase(workflow, action));
            }
            let held = ralph.tasks.values().filter(|it| it.strayed.is_some());
            let held: Vec<_> = held.map(|state| state.task.id.clone()).collect();
            if held.is_empty() {
                let reasons = vec!["no task changed such paths".to_owned()];
                return Err(WorkflowRule::NotReady { action, reasons });
            }
            for task in held {
                draft.fact(RalphEvent::StrayingAllowed { task });
            }
            draft.unblock();
        }
        RalphCommand::Retry { task } => {
            let action = "resume a task";
            human(actor, action)?;
            if ralph.phase != RalphPhase::Run {
                return Err(wrong_phase(workflow, action));
            }
            let state = ralph
                .tasks
                .get(task)
                .ok_or_else(|| WorkflowRule::Malformed {
                    rule: format!("resume {task}, which the plan does not have"),
                })?;
            if !matches!(state.stand, Stand::Rested { .. }) {
                let reasons = vec![format!("{task} has not stopped")];
                return Err(WorkflowRule::NotReady { action, reasons });
            }
            let task = task.clone();
            draft.fact(RalphEvent::TaskRetried { task });
            draft.unblock();
        }
    }
    draft.settle();
    Ok(draft.events)
}

/// Returns what follows an approval, or a person's word to go on: where the branch is there already,
/// every task begins that may.
pub(crate) fn going_on(
    workflow: &Workflow,
    ralph: &Ralph,
    given: &DecisionContext,
) -> Vec<WorkflowEvent> {
    let mut draft = DecisionDraft::new(workflow, ralph, given);
    draft.settle();
    draft.events
}

/// Returns what follows what a person wants changed: the plan is made anew, in every phase.
pub(crate) fn revised(
    workflow: &Workflow,
    ralph: &Ralph,
    text: &str,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    let mut draft = DecisionDraft::new(workflow, ralph, given);
    draft.reopen(text.to_owned());
    Ok(draft.events)
}

/// Decides what follows from how an effect ended.
pub(crate) fn report(
    workflow: &Workflow,
    ralph: &Ralph,
    effect: &EffectId,
    outcome: &WorkflowOutcome,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    let Some(want) = wanted(workflow, ralph, effect) else {
        return Ok(Vec::new());
    };
    let mut draft = DecisionDraft::new(workflow, ralph, given);
    draft.used = outcome.usage();
    match (want, outcome) {
        (_, WorkflowOutcome::Cancelled { .. } | WorkflowOutcome::Failed { .. }) => {}
        (RalphWant::Ask(role), WorkflowOutcome::Answered { by, answer, .. }) => {
            argue::answered(&mut draft, role, by, answer);
        }
        (RalphWant::Ask(role), WorkflowOutcome::Unreadable { why, .. }) => draft.refuse(role, why),
        (RalphWant::CheckBase, WorkflowOutcome::Verified(report)) => {
            argue::checked_base(&mut draft, report);
        }
        (
            RalphWant::Prepare,
            WorkflowOutcome::Prepared {
                branch,
                worktree,
                baseline,
            },
        ) => {
            draft.fact(RalphEvent::BranchPrepared {
                branch: branch.clone(),
                worktree: worktree.clone(),
                base: ralph.base.clone(),
            });
            if let Some(report) = baseline {
                carry::began_with(&mut draft, report);
            }
        }
        (RalphWant::Work(state), WorkflowOutcome::Rested { .. }) => {
            carry::rested(&mut draft, state, outcome);
        }
        (RalphWant::Land(state), WorkflowOutcome::Landed { .. }) => {
            carry::landed(&mut draft, state, outcome);
        }
        (RalphWant::Land(state), WorkflowOutcome::Conflicted { paths }) => {
            carry::conflicted(&mut draft, state, paths);
        }
        (RalphWant::Land(state), WorkflowOutcome::Strayed { paths }) => {
            carry::held(&mut draft, state, paths);
        }
        (RalphWant::VerifyMerged, WorkflowOutcome::Verified(report)) => {
            carry::verified(&mut draft, report)?;
        }
        (RalphWant::VerifyAll, WorkflowOutcome::Verified(report)) => {
            close::verified(&mut draft, report)?;
        }
        (_, _) => {
            return Err(WorkflowRule::Malformed {
                rule: format!("accept the result of {effect}: it has the wrong form"),
            });
        }
    }
    draft.settle();
    Ok(draft.events)
}

/// Returns the attempt of a cycle with the best plan.
pub(in crate::rules::modes::ralph) fn best(attempts: &[Attempt], cycle: u32) -> Option<&Attempt> {
    argue::best(attempts, cycle)
}

/// Returns how a command ended, in words.
pub(in crate::rules::modes::ralph) fn ended(run: &VerifyRun) -> String {
    carry::ended(run)
}

#[cfg(test)]
mod tests;
