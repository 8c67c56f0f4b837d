//! A workflow that a person named, and what every command does with it.
//!
//! Which one is meant is the core's rule; whether its files are this person's own is looked at here.

use std::path::PathBuf;

use kapi_core::mode::Mode;
use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::record::project::Project;
use kapi_workflow::record::opened::WorkflowSubmission;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::state::Workflow;

use crate::context::Context;
use crate::error::Error;
use crate::workflow::session;

/// A workflow that was found.
pub(crate) struct LocatedWorkflow<'a> {
    /// Its project.
    pub(crate) project: Project<'a>,
    /// Its name.
    pub(crate) key: WorkflowKey,
    /// The workflow.
    pub(crate) workflow: Workflow,
}

impl<'a> LocatedWorkflow<'a> {
    /// Loads a workflow.
    pub(crate) fn load(project: Project<'a>, key: WorkflowKey) -> Result<Self, Error> {
        let workflow = Workflows::of(&project)
            .workflow(&key)
            .map_err(|error| Error::workflow(&error))?;
        Ok(Self {
            project,
            key,
            workflow,
        })
    }

    /// Returns the directory with its log and its documents.
    pub(crate) fn dir(&self) -> PathBuf {
        let layout = self.project.layout.workflow(self.key.mode, &self.key.id);
        layout.dir().to_path_buf()
    }

    /// Makes a request in the person's name; what comes of it is kept here.
    pub(crate) fn submit(
        &mut self,
        context: &Context,
        command: &WorkflowCommand,
    ) -> Result<WorkflowSubmission, Error> {
        let submitted = Workflows::of(&self.project)
            .submit_workflow(&self.key, &context.actor, command)
            .map_err(|error| Error::workflow(&error))?;
        self.workflow = submitted.workflow.clone();
        Ok(submitted)
    }

    /// Attaches this session, where there is one.
    pub(crate) fn attach(&self, context: &Context) -> Result<(), Error> {
        let Some(session) = session::session(context) else {
            return Ok(());
        };
        let attached = Workflows::of(&self.project).attach(&session, &self.key);
        attached.map(drop).map_err(|error| Error::workflow(&error))
    }
}

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkflowQuery<'a> {
    /// The mode of the command.
    pub(crate) mode: Mode,
    /// What the person typed.
    pub(crate) reference: &'a str,
    /// The command, for whoever waits for a lock.
    pub(crate) owner: &'a str,
}
