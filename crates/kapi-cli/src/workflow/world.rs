//! The world of a workflow, composed: its project, its person, the world of each of its goals, and
//! the guidance that agents are given.
//!
//! The same parts as the world of a goal, made anew for each effect.

use kapi_core::actor::Actor;
use kapi_core::failure::{Failure, chain};
use kapi_core::id::GoalId;
use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::perform::real::RealWorld;
use kapi_goal::record::project::Project;
use kapi_machine::watch::EffectWatch;
use kapi_workflow::perform;
use kapi_workflow::perform::WorkflowEnvironment;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::effect::WorkflowEffect;
use kapi_workflow::rules::guidance;
use kapi_workflow::rules::outcome::WorkflowOutcome;
use kapi_workflow::rules::state::Workflow;

use crate::config::Config;
use crate::context::Context;
use crate::error::Error;
use crate::tool_service;

/// What the world of a workflow is made of.
#[derive(Clone, Copy)]
pub(crate) struct WorkflowSetup<'a> {
    /// Where, and with what.
    pub(crate) context: &'a Context,
    /// The project.
    pub(crate) project: &'a Project<'a>,
    /// The workflow.
    pub(crate) key: &'a WorkflowKey,
    /// Who started it.
    pub(crate) started_by: &'a str,
    /// The configuration.
    pub(crate) config: &'a Config,
}

impl WorkflowSetup<'_> {
    /// Performs one effect.
    pub(crate) fn perform(
        &self,
        effect: &WorkflowEffect,
        watch: &EffectWatch<'_>,
    ) -> WorkflowOutcome {
        let workflow = || self.workflow();
        let world = |id: &GoalId| self.of_goal(id).map_err(failure);
        let guidance = |name: &str| guidance::body(name).map(str::to_owned);
        let location = WorkflowEnvironment {
            project: self.project,
            person: Actor::Human {
                user: self.started_by.to_owned(),
            },
            workflow: &workflow,
            world: &world,
            guidance: &guidance,
            as_task: &|asked, watch| self.as_task(asked, watch),
        };
        perform::perform(&location, effect, watch)
    }

    fn workflow(&self) -> Result<Workflow, Failure> {
        Workflows::of(self.project)
            .workflow(self.key)
            .map_err(|error| Failure {
                message: chain(&error),
                hint: error.hint(),
            })
    }

    /// Returns the world of a goal, or of the workflow itself.
    fn of_goal(&self, id: &GoalId) -> Result<RealWorld<'_>, Error> {
        let (context, project) = (self.context, self.project);
        let workflow = Workflows::of(project).workflow(self.key);
        let workflow = workflow.map_err(|error| Error::workflow(&error))?;
        let grants = context.grants(self.config);
        Ok(RealWorld {
            location: context.location(project, id)?,
            grants: grants.with_models(&workflow.terms.models),
            clock: &context.clock,
            tool_service: tool_service::tool_service(context, project)?,
            spending: context.spending(project.layout.root(), self.config)?,
        })
    }
}

#[expect(clippy::needless_pass_by_value, reason = "handed to map_err")]
pub(crate) fn failure(error: Error) -> Failure {
    let message = error.message.strip_prefix("failed to ");
    Failure {
        message: message.unwrap_or(&error.message).to_owned(),
        hint: error.hint.clone(),
    }
}
