//! Runs of the agent beside the work: it reads a checkout and changes nothing.
//!
//! The contract is drafted and the journey distilled this way. What is recorded then goes through
//! the agent's tools; the outcome is only how the run ended.

use std::time::Duration;

use kapi_agent::agent::AgentKind;
use kapi_core::failure::Failure;
use kapi_machine::watch::EffectWatch;
use kapi_run::asker::{AgentHome, QuestionFiles, ReadOnlyQuestion, ToolSet};
use kapi_run::repository_session::RepositorySession;
use kapi_run::run_dir::RunDir;
use kapi_run::{asker, failure, repository_session};

use crate::perform::agent_run::{outcome_of, run_id};
use crate::perform::real::RealWorld;
use crate::rules::effect::{AgentPurpose, AgentTask, GoalEffect};
use crate::rules::outcome::GoalOutcome;

impl RealWorld<'_> {
    pub(crate) fn run_beside(
        &self,
        effect: &GoalEffect,
        task: &AgentTask,
        watch: &EffectWatch<'_>,
    ) -> Result<GoalOutcome, Failure> {
        let kind = AgentKind::parse(&task.agent).map_err(|error| failure::agent(&error))?;
        let repo = RepositorySession::open(&self.grants, &self.location.project, watch.cancel)?;
        let run_id = run_id(effect);
        let caller = self.caller(effect, &run_id);
        let question = ReadOnlyQuestion {
            agent: &kind,
            prompt: &task.prompt,
            files: QuestionFiles::Commit {
                repo: &repo,
                commit: &repository_session::commit_id(&task.start_commit)?,
            },
            home: AgentHome::Kept(&self.location.scratch.join(format!("home-{}", kind.name()))),
            session: match task.purpose {
                AgentPurpose::Distill => task.session.as_deref(),
                AgentPurpose::Setup | AgentPurpose::Work => None,
            },
            tools: ToolSet::Service(&caller),
            turn: task.turn,
            run_id: &run_id,
            run_dir: &RunDir::open(&self.location.runs, &run_id)?,
            dir: &self.location.scratch.join("beside"),
            level: task.sandbox,
            network: task.network,
            deadline: Duration::from_millis(task.deadline_ms),
            env: Vec::new(),
            mounts: Vec::new(),
        };
        let (run, end) = asker::ask(&self.grants, &question, watch)?;
        Ok(outcome_of(run, end))
    }
}
