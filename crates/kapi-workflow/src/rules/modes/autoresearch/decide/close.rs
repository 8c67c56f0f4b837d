//! What follows a decision that was carried out, and the end of a search.
//!
//! Nothing is completed that was not measured and checked as it stands.

use kapi_check::rules::measure::MeasurementReport;

use crate::rules::branch::PartBranch;
use crate::rules::decision_draft::DecisionDraft;
use crate::rules::denied::WorkflowRule;
use crate::rules::event::WorkflowEvent;
use crate::rules::modes::autoresearch::decide::experiment::is_of;
use crate::rules::modes::autoresearch::decide::round;
use crate::rules::modes::autoresearch::event::{AutoresearchEvent, Ending};
use crate::rules::modes::autoresearch::groups::groups;
use crate::rules::modes::autoresearch::run::RunStatus;
use crate::rules::modes::autoresearch::state::{Autoresearch, AutoresearchPhase, Settling};
use crate::rules::modes::autoresearch::verdict;
use crate::rules::outcome::RestorationReport;

/// Takes the proof that branch and worktree are where they belong.
pub(super) fn settled(
    draft: &mut DecisionDraft<'_, Autoresearch>,
    settling: Settling,
    restored: &RestorationReport,
) -> Result<(), WorkflowRule> {
    let expected = match settling {
        Settling::Keep => draft.now.runs.last().map(|run| run.tree.clone()),
        Settling::Restore => draft
            .now
            .branch
            .as_ref()
            .and_then(|branch| branch.tree.clone()),
    };
    let is_moved = settling == Settling::Restore && restored.commit != draft.now.head();
    if is_moved || expected.is_some_and(|tree| tree != restored.tree) {
        return Err(WorkflowRule::Malformed {
            rule: format!(
                "take {} with the tree {} for where the branch belongs",
                restored.commit, restored.tree
            ),
        });
    }
    draft.fact(AutoresearchEvent::Settled {
        commit: restored.commit.clone(),
        tree: restored.tree.clone(),
        n_removed: restored.n_removed,
    });
    round::pursue(draft);
    match draft.now.phase {
        AutoresearchPhase::Propose if draft.now.round.is_none() => limit(draft),
        AutoresearchPhase::Verify if draft.now.gains().next().is_none() => {
            draft.events.push(WorkflowEvent::Completed {});
        }
        AutoresearchPhase::Propose
        | AutoresearchPhase::Draft
        | AutoresearchPhase::Approval
        | AutoresearchPhase::Baseline
        | AutoresearchPhase::Measure
        | AutoresearchPhase::Verify
        | AutoresearchPhase::Split => {}
    }
    Ok(())
}

/// Ends the search where the contract allows no more.
fn limit(draft: &mut DecisionDraft<'_, Autoresearch>) {
    let Some(contract) = &draft.now.contract else {
        return;
    };
    let ending = if draft.now.experiments() >= contract.runs {
        Ending::RunsUsedUp
    } else if draft.now.failures() > contract.failures {
        Ending::TooManyFailures
    } else {
        return;
    };
    draft.fact(AutoresearchEvent::SearchEnded { ending });
}

/// Takes the last measurement of what was kept.
pub(super) fn verified(
    draft: &mut DecisionDraft<'_, Autoresearch>,
    measured: &MeasurementReport,
) -> Result<(), WorkflowRule> {
    is_of(measured, draft.now.head())?;
    let Some(contract) = draft.now.contract.clone() else {
        return Ok(());
    };
    let head = draft.now.head().to_owned();
    let last = draft
        .now
        .runs
        .iter()
        .rfind(|run| run.status == RunStatus::Keep);
    if last.is_some_and(|run| run.tree != measured.tree) {
        let rule = format!("take the tree {} for what was kept", measured.tree);
        return Err(WorkflowRule::Malformed { rule });
    }
    for sample in &measured.samples {
        draft.saw("verify", "benchmark.sh", &sample.run, &head);
    }
    if let Some(checks) = &measured.checks {
        draft.saw("verify", "checks.sh", checks, &head);
    }
    if let Err(failed) = verdict::baseline(&contract, measured) {
        draft.fact(AutoresearchEvent::BaselineFailed {
            measured: Box::new(measured.clone()),
            reason: failed.reason.clone(),
        });
        let resume = draft.resume();
        draft.block(
            format!(
                "what was kept does not hold when it is measured again: {}",
                failed.reason
            ),
            format!("{resume} measures again, {resume} --revise '…' drafts another contract"),
        );
        return Ok(());
    }
    let groups = groups(draft.now.gains());
    draft.fact(AutoresearchEvent::HeadVerified {
        measured: Box::new(measured.clone()),
        groups,
    });
    Ok(())
}

/// Takes the branches of the parts.
pub(super) fn split(
    draft: &mut DecisionDraft<'_, Autoresearch>,
    branches: &[PartBranch],
) -> Result<(), WorkflowRule> {
    if branches.len() > draft.now.groups.len() {
        let rule = "take more branches than there are parts".to_owned();
        return Err(WorkflowRule::Malformed { rule });
    }
    draft.fact(AutoresearchEvent::BranchesMade {
        branches: branches.to_vec(),
    });
    draft.events.push(WorkflowEvent::Completed {});
    Ok(())
}
