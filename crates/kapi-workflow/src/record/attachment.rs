//! Which session works in which workflow: attached by an explicit command, detached by another.
//!
//! A session has at most one. Detaching changes no byte of the workflow.

use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::record::inventory::Inventory;
use kapi_goal::record::inventory::workflow_entry::Attachment;
use kapi_store::timestamp::format_ms;

use crate::record::error::WorkflowError;
use crate::record::index::read_or_rebuild;
use crate::record::workflows::Workflows;
use crate::rules::denied::{WorkflowDenial, WorkflowRule};

impl Workflows<'_> {
    /// Attaches a session to a workflow, in place of any other; nothing is written where it already
    /// is.
    ///
    /// # Errors
    /// When there is no such workflow or it has ended, or the disk refuses.
    pub fn attach(&self, session: &str, key: &WorkflowKey) -> Result<Attachment, WorkflowError> {
        let workflow = self.workflow(key)?;
        if workflow.status.is_terminal() {
            return Err(WorkflowDenial {
                why: WorkflowRule::AlreadyTerminal {
                    action: "attach this session",
                    status: workflow.status.as_str(),
                },
                phase: Some(workflow.phase()),
                pending: None,
                next_commands: vec!["kapi status".to_owned()],
            }
            .into());
        }
        if let Some(known) = self.attachment(session)?
            && known.workflow == key.id
            && known.mode == key.mode
        {
            return Ok(known);
        }
        let attachment = Attachment {
            session: session.to_owned(),
            mode: key.mode,
            workflow: key.id.clone(),
            since: format_ms(self.clock.now_ms()),
        };
        let held = self.lock()?;
        let mut inventory = read_or_rebuild(self)?;
        inventory.attach(attachment.clone());
        inventory.write(self.disk, &self.layout, &held)?;
        Ok(attachment)
    }

    /// Detaches a session and returns what it was attached to; nothing is written where it was not.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn detach(&self, session: &str) -> Result<Option<Attachment>, WorkflowError> {
        if self.attachment(session)?.is_none() {
            return Ok(None);
        }
        let held = self.lock()?;
        let mut inventory = read_or_rebuild(self)?;
        let detached = inventory.detach(session);
        if detached.is_some() {
            inventory.write(self.disk, &self.layout, &held)?;
        }
        Ok(detached)
    }

    /// Returns what a session is attached to. Changes nothing.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn attachment(&self, session: &str) -> Result<Option<Attachment>, WorkflowError> {
        let inventory = Inventory::read(self.disk, &self.layout)?;
        let attachments = inventory.as_ref().map_or(&[][..], Inventory::attachments);
        let found = attachments.iter().find(|known| known.session == session);
        Ok(found.cloned())
    }
}
