//! The judge of a goal's turn: its effect becomes one question.
//!
//! Knows nothing of what a verdict leads to.

use std::time::Duration;

use kapi_check::perform::judge;
use kapi_check::perform::judge::evidence::JudgedChange;
use kapi_check::perform::judge::{JudgeQuestion, JudgeRetry, Judgement};
use kapi_core::failure::Failure;
use kapi_machine::watch::Watch;
use kapi_run::gate::GateRules;
use kapi_run::run_dir::RunDir;
use kapi_run::workshop;
use kapi_run::workshop::Workshop;
use kapi_spend::rules::day::Day;

use crate::perform::agent_run::run_id;
use crate::perform::real::RealWorld;
use crate::rules::effect::{Effect, JudgeTask};
use crate::rules::outcome::Outcome;

impl RealWorld<'_> {
    pub(crate) fn judge(
        &self,
        effect: &Effect,
        task: &JudgeTask,
        watch: &Watch<'_>,
    ) -> Result<Outcome, Failure> {
        let workshop = Workshop::open(&self.book, &self.place.project, watch.cancel)?;
        let change = JudgedChange {
            workshop: &workshop,
            base: Some(workshop::commit_id(&task.base)?),
            commit: workshop::commit_id(&task.commit)?,
        };
        let run_id = run_id(effect);
        let caller = self.caller(effect, &run_id);
        let question = JudgeQuestion {
            judge: &task.agent,
            instructions: &task.instructions,
            material: &task.material,
            change: &change,
            run_id: &run_id,
            run_dir: &RunDir::open(&self.place.runs, &run_id)?,
            dir: &self.place.scratch.join("judge"),
            level: task.sandbox,
            network: task.network,
            rules: GateRules::Service(&caller),
            deadline: Duration::from_millis(task.deadline_ms),
            // A wait for a judge stands in the goal's log.
            waiting: JudgeRetry::ByCaller,
            today: Day::of_ms(self.clock.now_ms()),
        };
        Ok(match judge::ask(&self.book, &question, watch)? {
            Judgement::Given(run) => Outcome::Judged(run),
            Judgement::Cancelled(usage) => Outcome::Cancelled {
                usage,
                session: None,
            },
        })
    }
}
