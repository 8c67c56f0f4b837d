//! The goal that a session is attached to, with what is needed to drive it.

use kapi_core::id::GoalId;
use kapi_goal::perform::real::RealWorld;
use kapi_goal::record::project::Project;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::state::Goal;

use crate::commands::rpc::OWNER;
use crate::config::Config;
use crate::context::Context;
use crate::driving;
use crate::error::Error;
use crate::exit_code::Exit;

/// A goal of this session.
pub(crate) struct AttachedGoal<'a> {
    /// Its project.
    pub(crate) project: Project<'a>,
    /// Its id.
    pub(crate) id: GoalId,
    /// The configuration.
    pub(crate) config: Config,
    /// What proves and judges it.
    pub(crate) real: RealWorld<'a>,
}

impl<'a> AttachedGoal<'a> {
    /// Attaches to a goal of the working directory's project.
    pub(crate) fn find(context: &'a Context, name: &str) -> Result<Self, Error> {
        let (project, id) = context.find_sound_goal(name, OWNER)?;
        let attached = Self::of(context, project, id)?;
        let goal = attached.goal()?;
        if !goal.contract.is_session() {
            return Err(Error::new(
                Exit::Denied,
                format!(
                    "goal {} is worked on in a sandbox, not in a session",
                    goal.id
                ),
            )
            .with_hint(format!(
                "watch it with `kapi log {} -f`.",
                goal.id.reference()
            )));
        }
        Ok(attached)
    }

    /// Attaches to a goal.
    pub(crate) fn of(
        context: &'a Context,
        project: Project<'a>,
        id: GoalId,
    ) -> Result<Self, Error> {
        driving::require_approved(&project, &id)?;
        let config = context.config(Some(project.layout.root()))?;
        let goal = project
            .load(&id)
            .map_err(|error| Error::engine(&error, &id.reference()))?;
        let real = driving::world_of(context, &project, &goal, &config)?;
        Ok(Self {
            project,
            id,
            config,
            real,
        })
    }

    /// Returns the goal as it is now.
    pub(crate) fn goal(&self) -> Result<Goal, Error> {
        self.project
            .load(&self.id)
            .map_err(|error| Error::engine(&error, &self.id.reference()))
    }

    /// Makes a request of it in the person's name, and returns it as it is afterwards.
    pub(crate) fn submit(&self, context: &Context, command: &GoalCommand) -> Result<Goal, Error> {
        self.project
            .submit(&self.id, &context.actor, command)
            .map(|submitted| submitted.goal)
            .map_err(|error| Error::engine(&error, &self.id.reference()))
    }
}
