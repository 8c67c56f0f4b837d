//! Where the rules of a search say no, and what follows from what came back.
//!
//! What came back is taken for what is wanted now, by the effect's name: what nobody wants any more
//! changes nothing. Numbers are judged in [`super::verdict`] alone.

use kapi_core::actor::Actor;
use kapi_core::id::EffectId;

use crate::rules::decide::{human, said, wrong_phase};
use crate::rules::decision_context::DecisionContext;
use crate::rules::decision_draft::DecisionDraft;
use crate::rules::denied::WorkflowRule;
use crate::rules::event::WorkflowEvent;
use crate::rules::modes::autoresearch::command::AutoresearchCommand;
use crate::rules::modes::autoresearch::contract::sound;
use crate::rules::modes::autoresearch::decide::experiment::ExperimentAnswer;
use crate::rules::modes::autoresearch::event::{AutoresearchEvent, Ending};
use crate::rules::modes::autoresearch::role::AutoresearchRole;
use crate::rules::modes::autoresearch::state::{Autoresearch, AutoresearchPhase};
use crate::rules::modes::autoresearch::want::{Want, wants};
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::state::Workflow;

mod close;
mod draft;
mod experiment;
mod round;

/// Decides a request.
pub(crate) fn ask(
    workflow: &Workflow,
    search: &Autoresearch,
    actor: &Actor,
    command: &AutoresearchCommand,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    let mut draft = DecisionDraft::new(workflow, search, given);
    match command {
        AutoresearchCommand::Draft { contract } => {
            let action = "propose a contract";
            human(actor, action)?;
            if !is_drafting(search) {
                return Err(wrong_phase(workflow, action));
            }
            sound::check(contract).map_err(|rule| WorkflowRule::Malformed { rule })?;
            draft.contract(None, contract);
        }
        AutoresearchCommand::Import { history } => {
            let action = "continue another tool's records";
            human(actor, action)?;
            if !is_drafting(search) || !search.runs.is_empty() {
                return Err(wrong_phase(workflow, action));
            }
            let history = history.clone();
            draft.fact(AutoresearchEvent::HistoryImported { history });
        }
        AutoresearchCommand::Note { idea } => {
            human(actor, "note an idea")?;
            let text = said(idea, "note an idea without saying which")?;
            draft.fact(AutoresearchEvent::IdeaNoted { text });
        }
        AutoresearchCommand::Finish {} => {
            let action = "end the search";
            human(actor, action)?;
            match search.phase {
                AutoresearchPhase::Propose | AutoresearchPhase::Measure => {}
                AutoresearchPhase::Draft
                | AutoresearchPhase::Approval
                | AutoresearchPhase::Baseline
                | AutoresearchPhase::Verify
                | AutoresearchPhase::Split => return Err(wrong_phase(workflow, action)),
            }
            draft.fact(AutoresearchEvent::SearchEnded {
                ending: Ending::Finished,
            });
            draft.unblock();
        }
    }
    Ok(draft.events)
}

const fn is_drafting(search: &Autoresearch) -> bool {
    matches!(
        search.phase,
        AutoresearchPhase::Draft | AutoresearchPhase::Approval
    )
}

/// Returns what follows what a person wants changed: another contract, and with it another segment.
pub(crate) fn revised(
    workflow: &Workflow,
    search: &Autoresearch,
    text: &str,
    given: &DecisionContext,
) -> Vec<WorkflowEvent> {
    let mut draft = DecisionDraft::new(workflow, search, given);
    draft.fact(AutoresearchEvent::SegmentOpened {
        reason: text.to_owned(),
    });
    draft.unblock();
    draft.events
}

/// Decides what follows from how an effect ended.
pub(crate) fn report(
    workflow: &Workflow,
    search: &Autoresearch,
    effect: &EffectId,
    outcome: &WorkflowOutcome,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    let wanted = wants(search).into_iter().find(|(id, _)| id == effect);
    let Some((_, want)) = wanted else {
        return Ok(Vec::new());
    };
    let mut draft = DecisionDraft::new(workflow, search, given);
    match (want, outcome) {
        (_, WorkflowOutcome::Cancelled { .. } | WorkflowOutcome::Failed { .. }) => {}
        (Want::Draft, WorkflowOutcome::Answered { by, answer, .. }) => draft.answered(by, answer),
        (Want::Draft, WorkflowOutcome::Unreadable { why, .. }) => {
            draft.refuse(AutoresearchRole::Drafter, why);
        }
        (
            Want::Prepare,
            WorkflowOutcome::Prepared {
                branch, worktree, ..
            },
        ) => draft.fact(AutoresearchEvent::BranchPrepared {
            branch: branch.clone(),
            worktree: worktree.clone(),
            base: search.base.clone(),
        }),
        (Want::Baseline, WorkflowOutcome::Measured(measured)) => {
            experiment::baseline(&mut draft, measured)?;
        }
        (Want::Propose, WorkflowOutcome::Proposed(proposed)) => {
            experiment::proposed(&mut draft, proposed);
        }
        (Want::Propose, WorkflowOutcome::Unreadable { why, .. }) => {
            draft.refuse(AutoresearchRole::Researcher, why);
        }
        (Want::Try(place), WorkflowOutcome::Proposed(proposed)) => {
            let answer = experiment::answer(&draft, proposed);
            round::answered(&mut draft, place, answer);
        }
        (Want::Try(place), WorkflowOutcome::Unreadable { why, .. }) => {
            let answer = ExperimentAnswer::Refused { why: why.clone() };
            round::answered(&mut draft, place, answer);
        }
        (Want::Reapply(place), WorkflowOutcome::Reapplied(applied)) => {
            round::reapplied(&mut draft, place, applied);
        }
        (Want::Reapply(place), WorkflowOutcome::Conflicted { paths }) => {
            round::conflicted(&mut draft, place, paths);
        }
        (Want::Measure, WorkflowOutcome::Measured(measured)) => {
            experiment::measured(&mut draft, measured)?;
            round::pursue(&mut draft);
        }
        (Want::Settle(settling), WorkflowOutcome::Restored(restored)) => {
            close::settled(&mut draft, settling, restored)?;
        }
        (Want::VerifyHead, WorkflowOutcome::Measured(measured)) => {
            close::verified(&mut draft, measured)?;
        }
        (Want::Split, WorkflowOutcome::Split { branches }) => close::split(&mut draft, branches)?,
        (_, _) => {
            return Err(WorkflowRule::Malformed {
                rule: format!("take what came back for {effect}: it is not what was asked for"),
            });
        }
    }
    Ok(draft.events)
}

#[cfg(test)]
mod tests;
