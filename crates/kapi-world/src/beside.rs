//! Runs of the agent beside the work: it reads a checkout and changes nothing.
//!
//! The contract is drafted and the journey distilled this way. What is recorded then goes through
//! the agent's tools; the outcome is only how the run ended.

use std::time::Duration;

use kapi_agent::agent::Kind;
use kapi_agent::launch::Purpose;
use kapi_core::goal::effect::{AgentPurpose, AgentTask, Effect};
use kapi_core::goal::outcome::{Failure, Outcome};
use kapi_engine::world::Watch;
use kapi_git::checkout::CheckoutPlan;
use kapi_git::owned_dir;
use kapi_sandbox::spec::Access;

use crate::agent_run::{outcome_of, run_id, settings_hidden};
use crate::asking::{Asked, ask_with_tools};
use crate::confine::{Cell, WorksAt};
use crate::failure;
use crate::prover::checkout::make as checkout;
use crate::real::RealWorld;
use crate::run_dir::RunDir;
use crate::workshop::{self, Workshop};

impl RealWorld<'_> {
    pub(crate) fn run_beside(
        &self,
        effect: &Effect,
        task: &AgentTask,
        watch: &Watch<'_>,
    ) -> Result<Outcome, Failure> {
        let kind = Kind::parse(&task.agent).map_err(|error| failure::agent(&error))?;
        let settings = self.book.settings(&kind);
        let workshop = Workshop::open(&self.book, &self.place.project, watch.cancel)?;
        let checkout_dir = checkout(
            &workshop,
            &CheckoutPlan {
                commit: &workshop::commit_id(&task.start_commit)?,
                base: &workshop::commit_id(&task.base)?,
                protect: &[],
                to: &self.place.scratch.join("beside"),
            },
        )?;
        let run_id = run_id(effect);
        let run_dir = RunDir::open(&self.place.runs, &run_id)?;
        let home = self.place.scratch.join(format!("home-{}", kind.name()));
        let cell = Cell {
            name: &run_id,
            level: task.sandbox,
            workspace: &checkout_dir,
            workspace_access: Access::ReadOnly,
            project: Some(workshop.repository.top_level()),
            works_at: WorksAt::Project,
            home: &home,
            git_view: None,
            mounts: settings_hidden(&kind, &checkout_dir, &run_dir)?,
            deadline: Duration::from_millis(task.deadline_ms),
            idle: None,
        };
        let asked = Asked {
            kind: &kind,
            settings: &settings,
            prompt: &task.prompt,
            session: match task.purpose {
                AgentPurpose::Distill => task.session.as_deref(),
                AgentPurpose::Setup | AgentPurpose::Work => None,
            },
            turn: task.turn,
            run_id: &run_id,
            purpose: Purpose::Work,
            network: task.network,
            env: Vec::new(),
        };
        let at_desk = (&asked, self.caller(effect, &run_id), &*self.place.scratch);
        let (run, end) = ask_with_tools(&self.book, cell, at_desk, &run_dir, watch)?;
        owned_dir::discard(&checkout_dir).map_err(|error| failure::plain(&error))?;
        Ok(outcome_of(run, end))
    }
}
