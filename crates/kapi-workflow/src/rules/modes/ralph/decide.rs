//! Where the rules of a Ralph workflow say no, and what follows from what came back.
//!
//! What came back is taken for what is wanted now, by the effect's name: what nobody wants any more
//! changes nothing. Every decision ends with the tasks that may begin then.

use kapi_check::rules::proof::verify_run::VerifyRun;
use kapi_core::actor::Actor;
use kapi_core::id::EffectId;
use kapi_core::workflow_status::Status;

use crate::rules::decide::{human, said, wrong_phase};
use crate::rules::denied::Why;
use crate::rules::event::Event;
use crate::rules::given::Given;
use crate::rules::modes::ralph::command::RalphCommand;
use crate::rules::modes::ralph::decide::draft::Draft;
use crate::rules::modes::ralph::event::RalphEvent;
use crate::rules::modes::ralph::plan::Attempt;
use crate::rules::modes::ralph::state::{Ralph, RalphPhase, Stand};
use crate::rules::modes::ralph::want::{Want, wanted};
use crate::rules::outcome::Outcome;
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
    given: &Given,
) -> Result<Vec<Event>, Why> {
    let mut draft = Draft::new(workflow, ralph, given);
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
        RalphCommand::Retry { task } => {
            let action = "resume a task";
            human(actor, action)?;
            if ralph.phase != RalphPhase::Run {
                return Err(wrong_phase(workflow, action));
            }
            let state = ralph.tasks.get(task).ok_or_else(|| Why::Malformed {
                rule: format!("resume {task}, which the plan does not have"),
            })?;
            if !matches!(state.stand, Stand::Rested { .. }) {
                let reasons = vec![format!("{task} has not stopped")];
                return Err(Why::NotReady { action, reasons });
            }
            let task = task.clone();
            draft.ralph(RalphEvent::TaskRetried { task });
            draft.unblock();
        }
    }
    draft.settle();
    Ok(draft.events)
}

/// Returns what follows an approval, or a person's word to go on: where the branch is there already,
/// every task begins that may.
pub(crate) fn going_on(workflow: &Workflow, ralph: &Ralph, given: &Given) -> Vec<Event> {
    let mut draft = Draft::new(workflow, ralph, given);
    draft.settle();
    draft.events
}

/// Returns what follows what a person wants changed: the plan is made anew, in every phase.
pub(crate) fn revised(
    workflow: &Workflow,
    ralph: &Ralph,
    text: &str,
    given: &Given,
) -> Result<Vec<Event>, Why> {
    let mut draft = Draft::new(workflow, ralph, given);
    draft.reopen(text.to_owned());
    Ok(draft.events)
}

/// Decides what follows from how an effect ended.
pub(crate) fn report(
    workflow: &Workflow,
    ralph: &Ralph,
    effect: &EffectId,
    outcome: &Outcome,
    given: &Given,
) -> Result<Vec<Event>, Why> {
    let Some(want) = wanted(workflow, ralph, effect) else {
        return Ok(Vec::new());
    };
    let mut draft = Draft::new(workflow, ralph, given);
    draft.has_used(&outcome.usage());
    match (want, outcome) {
        (_, Outcome::Cancelled { .. } | Outcome::Failed { .. }) => {}
        (Want::Ask(role), Outcome::Answered { by, answer, .. }) => {
            argue::answered(&mut draft, role, by, answer);
        }
        (Want::Ask(role), Outcome::Unreadable { why, .. }) => draft.refuse(role, why),
        (
            Want::Prepare,
            Outcome::Prepared {
                branch,
                worktree,
                baseline,
            },
        ) => {
            draft.ralph(RalphEvent::BranchPrepared {
                branch: branch.clone(),
                worktree: worktree.clone(),
                base: ralph.base.clone(),
            });
            if let Some(report) = baseline {
                carry::began_with(&mut draft, report);
            }
        }
        (Want::Work(state), Outcome::Rested { .. }) => carry::rested(&mut draft, state, outcome),
        (Want::Land(state), Outcome::Landed { .. }) => carry::landed(&mut draft, state, outcome),
        (Want::Land(state), Outcome::Conflicted { paths }) => {
            carry::conflicted(&mut draft, state, paths);
        }
        (Want::VerifyMerged, Outcome::Verified(report)) => {
            carry::verified(&mut draft, report)?;
        }
        (Want::VerifyAll, Outcome::Verified(report)) => close::verified(&mut draft, report)?,
        (_, _) => {
            return Err(Why::Malformed {
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

/// Returns the beginning of a commit's name.
pub(in crate::rules::modes::ralph) fn short(commit: &str) -> &str {
    kapi_core::quote::head(commit, 12)
}

/// Tells whether it goes on by itself.
const fn is_active(workflow: &Workflow) -> bool {
    matches!(workflow.status, Status::Active)
}

#[cfg(test)]
mod tests;
