//! Which workflow a person means, and which interviews a new one might go on from.
//!
//! Reads rows of the inventory only; the rules are core's.

use kapi_core::id::GoalId;
use kapi_core::link::WorkflowRelation;
use kapi_core::mode::Mode;
use kapi_core::workflow_key::WorkflowKey;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_goal::record::inventory::workflow_entry::WorkflowEntry;
use kapi_goal::record::reference;

use crate::record::error::WorkflowError;
use crate::record::index::{WorkflowListingEntry, WorkflowSummary};
use crate::record::workflows::Workflows;
use crate::rules::candidate::{ApprovedHandover, HandoverCandidate, candidates};
use crate::rules::target;
use crate::rules::target::{InventoryRow, TargetError};

/// The workflow that a person means to resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeTarget {
    /// The workflow.
    pub key: WorkflowKey,
    /// The interview that was named, where the workflow that came of it is meant.
    pub by_way_of: Option<GoalId>,
}

impl Workflows<'_> {
    /// Returns the workflow that `kapi <mode> resume <token>` means.
    ///
    /// # Errors
    /// When it means none, several, or one that cannot be resumed so; when the disk refuses.
    pub fn find_to_resume(&self, mode: Mode, token: &str) -> Result<ResumeTarget, WorkflowError> {
        let listed = self.workflows()?;
        match target::resume(mode, token, &rows(&listed)) {
            Ok(target) => {
                let (id, by_way_of) = (target.workflow, target.by_way_of);
                let key = WorkflowKey { mode, id };
                Ok(ResumeTarget { key, by_way_of })
            }
            Err(error) => Err(damaged_or(error, token, listed)),
        }
    }

    /// Returns the workflow that `kapi <mode> approve <token>` means.
    ///
    /// # Errors
    /// When it means none, several, or one of another mode; when the disk refuses.
    pub fn find_to_approve(&self, mode: Mode, token: &str) -> Result<WorkflowKey, WorkflowError> {
        let listed = self.workflows()?;
        match target::approve(mode, token, &rows(&listed)) {
            Ok(id) => Ok(WorkflowKey { mode, id }),
            Err(error) => Err(damaged_or(error, token, listed)),
        }
    }

    /// Returns the workflow of any mode with exactly this index, name or both; `None` where there is
    /// none, as when a goal is meant.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn find_workflow(&self, token: &str) -> Result<Option<WorkflowKey>, WorkflowError> {
        let listed = self.workflows()?;
        let ids: Vec<GoalId> = listed.iter().map(|listed| listed.key.id.clone()).collect();
        let found = reference::find(token, &ids).ok();
        let key = listed
            .into_iter()
            .find(|listed| Some(&listed.key.id) == found.as_ref());
        Ok(key.map(|listed| listed.key))
    }

    /// Returns the approved interviews that nothing was started from and that fit a purpose, best
    /// first.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn interviews_for(
        &self,
        purpose: &str,
        mode: Mode,
    ) -> Result<Vec<HandoverCandidate>, WorkflowError> {
        let listed = self.workflows()?;
        let approved: Vec<ApprovedHandover> = entries(&listed).filter_map(approved).collect();
        Ok(candidates(purpose, mode, &approved))
    }
}

/// Returns what core is told of each workflow.
#[must_use]
pub fn rows(listed: &[WorkflowListingEntry]) -> Vec<InventoryRow> {
    entries(listed).map(row).collect()
}

fn entries(listed: &[WorkflowListingEntry]) -> impl Iterator<Item = &WorkflowEntry> {
    listed.iter().filter_map(|listed| match &listed.state {
        WorkflowSummary::Known(entry) => Some(&**entry),
        WorkflowSummary::Damaged(_) => None,
    })
}

fn row(entry: &WorkflowEntry) -> InventoryRow {
    let successor = entry
        .links
        .iter()
        .find(|link| link.relation == WorkflowRelation::Successor);
    InventoryRow {
        id: entry.id.clone(),
        mode: entry.mode,
        status: entry.status,
        is_approved: entry.about.is_some() || entry.status == WorkflowStatus::Linked,
        successor: successor.map(|link| (link.mode, link.workflow.clone())),
    }
}

fn approved(entry: &WorkflowEntry) -> Option<ApprovedHandover> {
    let goal = entry.about.clone()?;
    Some(ApprovedHandover {
        id: entry.id.clone(),
        goal,
        intent: Vec::new(),
    })
}

/// A damaged workflow that was named is told as what it is, and not as unknown.
fn damaged_or(error: TargetError, token: &str, listed: Vec<WorkflowListingEntry>) -> WorkflowError {
    if !matches!(error, TargetError::Unknown { .. }) {
        return error.into();
    }
    let mut damaged: Vec<(GoalId, WorkflowError)> = Vec::new();
    for listed in listed {
        if let WorkflowSummary::Damaged(error) = listed.state {
            damaged.push((listed.key.id, error));
        }
    }
    let ids: Vec<GoalId> = damaged.iter().map(|(id, _)| id.clone()).collect();
    let found = reference::find(token, &ids).ok();
    let fault = damaged
        .into_iter()
        .find(|(id, _)| Some(id) == found.as_ref());
    fault.map_or_else(|| error.into(), |(_, fault)| fault)
}
