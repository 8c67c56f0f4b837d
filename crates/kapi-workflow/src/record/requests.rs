//! Every request that can be made of the workflows of a project.
//!
//! Each reads what it needs; no state is held between two.

use kapi_core::actor::Actor;
use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::record::error::EngineError;
use kapi_goal::record::goal_listing::GoalListingEntry;
use kapi_goal::record::inventory::Inventory;
use kapi_goal::record::inventory::workflow_entry::Attachment;
use kapi_machine::follow::LogCursor;
use kapi_machine::logged::EventRecord;
use kapi_sys::lock::Lock;

use super::error::WorkflowLack;
use super::machine::stream;
use crate::record::approvals::WorkflowApprovals;
use crate::record::error::WorkflowError;
use crate::record::files::subject;
use crate::record::index;
use crate::record::index::WorkflowListingEntry;
use crate::record::opened::{OpenWorkflow, WorkflowSubmission};
use crate::record::workflows::Workflows;
use crate::rules::command::WorkflowCommand;
use crate::rules::denied::{WorkflowDenial, WorkflowRule};
use crate::rules::event::WorkflowEvent;
use crate::rules::next_command::next_commands;
use crate::rules::pending::Means;
use crate::rules::state::Workflow;

/// Everything that a status shows, from one look at the inventory.
#[derive(Debug)]
pub struct WorkflowOverview {
    /// The goals, sorted by index.
    pub goals: Vec<GoalListingEntry>,
    /// The workflows, sorted by index.
    pub workflows: Vec<WorkflowListingEntry>,
    /// Which sessions are attached, oldest first.
    pub attachments: Vec<Attachment>,
}

/// An approval as a person gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approving {
    /// The hash of the artifact that was shown.
    pub shown: String,
    /// How it was given.
    pub means: Means,
    /// Whether the risks were accepted with it.
    pub accepts_risks: bool,
}

impl Workflows<'_> {
    /// Returns goals, workflows and attachments.
    ///
    /// # Errors
    /// When the disk refuses. What is damaged is listed with its fault.
    pub fn standings(&self) -> Result<WorkflowOverview, EngineError> {
        let inventory = Inventory::read(self.disk, &self.layout)?;
        let attachments = inventory.as_ref().map_or(&[][..], Inventory::attachments);
        Ok(WorkflowOverview {
            goals: kapi_goal::record::goal_entries::list_with(self, inventory.as_ref())?,
            workflows: index::list(self, inventory.as_ref())?,
            attachments: attachments.to_vec(),
        })
    }

    /// Returns every workflow with where it stands, sorted by index.
    ///
    /// # Errors
    /// When the disk refuses. A damaged workflow is listed with its fault.
    pub fn workflows(&self) -> Result<Vec<WorkflowListingEntry>, EngineError> {
        let inventory = Inventory::read(self.disk, &self.layout)?;
        index::list(self, inventory.as_ref())
    }

    /// Loads a workflow. Changes nothing.
    ///
    /// # Errors
    /// When there is no such workflow, or its log is damaged.
    pub fn workflow(&self, key: &WorkflowKey) -> Result<Workflow, WorkflowError> {
        OpenWorkflow::load(self, key)?.into_workflow()
    }

    /// Makes a request of a workflow.
    ///
    /// # Errors
    /// When a rule refuses (not one byte was changed then), somebody else is at it for too long,
    /// the log is damaged, or the disk refuses.
    pub fn submit_workflow(
        &self,
        key: &WorkflowKey,
        actor: &Actor,
        command: &WorkflowCommand,
    ) -> Result<WorkflowSubmission, WorkflowError> {
        if matches!(actor, Actor::Human { .. }) {
            // Read whole: no person decides on top of a log that was altered below its fold.
            self.workflow_log(key)?;
        }
        let mut open = OpenWorkflow::load(self, key)?;
        open.workflow()?;
        let submitted = open.submit(actor, command)?;
        if !submitted.recorded.is_empty() {
            open.note()
                .map_err(|error| EngineError::NotDerived(Box::new(error)))?;
        }
        Ok(submitted)
    }

    /// Approves what waits, if the artifact is still what was shown and what was drafted.
    ///
    /// An artifact that a crash left unwritten is written first; one that somebody edited is not,
    /// and refuses the approval.
    ///
    /// # Errors
    /// As [`Workflows::submit_workflow`].
    pub fn approve_workflow(
        &self,
        key: &WorkflowKey,
        actor: &Actor,
        approving: &Approving,
    ) -> Result<WorkflowSubmission, WorkflowError> {
        let workflow = self.workflow(key)?;
        let Some(pending) = &workflow.pending else {
            // Nothing to hash: the rules say so in their own words.
            let found = String::new();
            return self.submit_workflow(key, actor, &approve(approving, found));
        };
        let layout = self.layout.workflow(key.mode, &key.id);
        let mut found = subject(self.disk, &layout, pending)?;
        if matches!(actor, Actor::Human { .. }) && found != pending.sha256 {
            self.repair_workflow(key)?;
            found = subject(self.disk, &layout, pending)?;
        }
        self.submit_workflow(key, actor, &approve(approving, found))
    }

    /// Writes again whatever a workflow's log implies and a crash has left undone.
    ///
    /// # Errors
    /// When there is no such workflow, its log is damaged, or the disk refuses.
    pub fn repair_workflow(&self, key: &WorkflowKey) -> Result<Workflow, WorkflowError> {
        let mut open = OpenWorkflow::load(self, key)?;
        open.workflow()?;
        open.repair()?;
        open.into_workflow()
    }

    /// Returns who drives a workflow right now, if anybody does. Asks the real file system.
    ///
    /// # Errors
    /// When the lock cannot be read.
    pub fn workflow_driver(&self, key: &WorkflowKey) -> Result<Option<String>, WorkflowError> {
        let lock = self.layout.workflow(key.mode, &key.id).drive_lock();
        Ok(Lock::holder(&lock)?)
    }

    /// Returns every event of a workflow.
    ///
    /// # Errors
    /// When there is no such workflow, or its log is damaged.
    pub fn workflow_log(
        &self,
        key: &WorkflowKey,
    ) -> Result<Vec<EventRecord<WorkflowEvent>>, WorkflowError> {
        self.workflow_log_since(key, &mut LogCursor::default())
    }

    /// Returns the events of a workflow that came since the last call with this cursor.
    ///
    /// # Errors
    /// When there is no such workflow, or its log is damaged.
    pub fn workflow_log_since(
        &self,
        key: &WorkflowKey,
        cursor: &mut LogCursor,
    ) -> Result<Vec<EventRecord<WorkflowEvent>>, WorkflowError> {
        let logged = cursor.follow(&stream(self, key))?;
        logged.ok_or_else(|| WorkflowError::NotFound {
            workflow: key.clone(),
        })
    }

    /// Tells what is missing for a workflow to go on: what it says of itself and nobody in this
    /// person's home gave leave for.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn unapproved_workflow(
        &self,
        workflow: &Workflow,
    ) -> Result<Option<WorkflowLack>, EngineError> {
        WorkflowApprovals::of(self, &workflow.id)
            .map_or(Ok(None), |approvals| approvals.lack(workflow))
    }

    /// Records a person's leave for a workflow that was started elsewhere, of exactly what `shown`
    /// says. The workflow's log stays as it is.
    ///
    /// # Errors
    /// When it is not a person who asks or it is not what was shown any more; nothing has changed
    /// then. When the disk refuses.
    pub fn adopt_workflow(&self, person: &Actor, shown: &Workflow) -> Result<(), WorkflowError> {
        let workflow = self.workflow(&shown.key())?;
        let refused = |why| {
            WorkflowError::from(WorkflowDenial {
                why,
                phase: Some(workflow.phase()),
                pending: None,
                next_commands: next_commands(&workflow),
            })
        };
        if !matches!(person, Actor::Human { .. }) {
            return Err(refused(WorkflowRule::OnlyHuman {
                action: "adopt a workflow",
                actor: person.to_string(),
            }));
        }
        if workflow != *shown {
            return Err(refused(WorkflowRule::Malformed {
                rule: "adopt a workflow that has changed since it was shown".to_owned(),
            }));
        }
        match WorkflowApprovals::of(self, &workflow.id) {
            Some(approvals) => Ok(approvals.adopt(person, &workflow)?),
            None => Ok(()),
        }
    }
}

fn approve(approving: &Approving, found: String) -> WorkflowCommand {
    WorkflowCommand::Approve {
        sha256: approving.shown.clone(),
        found,
        means: approving.means,
        accepts_risks: approving.accepts_risks,
    }
}
