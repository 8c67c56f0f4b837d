//! The judge of a goal's turn: its effect becomes one question.
//!
//! Knows nothing of what a verdict leads to.

use std::time::Duration;

use kapi_check::perform::judge;
use kapi_check::perform::judge::evidence::JudgedChange;
use kapi_check::perform::judge::host_model::HostModels;
use kapi_check::perform::judge::{JudgeQuestion, JudgeRetry, Judgement};
use kapi_core::failure::Failure;
use kapi_machine::watch::EffectWatch;
use kapi_run::gate::GateRules;
use kapi_run::repository_session;
use kapi_run::repository_session::RepositorySession;
use kapi_run::run_dir::RunDir;
use kapi_spend::rules::day::Day;

use crate::perform::agent_run::run_id;
use crate::perform::real::RealWorld;
use crate::rules::effect::{GoalEffect, JudgeTask};
use crate::rules::outcome::GoalOutcome;

impl RealWorld<'_> {
    pub(crate) fn judge(
        &self,
        effect: &GoalEffect,
        task: &JudgeTask,
        host: Option<HostModels<'_>>,
        watch: &EffectWatch<'_>,
    ) -> Result<GoalOutcome, Failure> {
        let repo = RepositorySession::open(&self.grants, &self.location.project, watch.cancel)?;
        let change = JudgedChange {
            repo: &repo,
            base: Some(repository_session::commit_id(&task.base)?),
            commit: repository_session::commit_id(&task.commit)?,
        };
        let run_id = run_id(effect);
        let caller = self.caller(effect, &run_id);
        let question = JudgeQuestion {
            judge: &task.agent,
            instructions: &task.instructions,
            material: &task.material,
            change: &change,
            run_id: &run_id,
            run_dir: &RunDir::open(&self.location.runs, &run_id)?,
            dir: &self.location.scratch.join("judge"),
            level: task.sandbox,
            network: task.network,
            rules: GateRules::Service(&caller),
            deadline: Duration::from_millis(task.deadline_ms),
            // A wait for a judge stands in the goal's log.
            waiting: JudgeRetry::ByCaller,
            today: Day::of_ms(self.clock.now_ms()),
            host,
        };
        Ok(match judge::ask(&self.grants, &question, watch)? {
            Judgement::Given(run) => GoalOutcome::Judged(run),
            Judgement::Cancelled(usage) => GoalOutcome::Cancelled {
                usage,
                session: None,
            },
        })
    }
}
