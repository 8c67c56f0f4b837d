//! Asking a judge: a fresh session, a read-only clean checkout, and the change as data.
//!
//! The judge never sees the executor's history, and its home is made anew each time.

use std::time::Duration;

use kapi_agent::agent::Kind;
use kapi_agent::launch::Purpose;
use kapi_agent::verdict::judge_answer;
use kapi_core::goal::effect::{Effect, JudgeTask};
use kapi_core::goal::outcome::{AgentRun, Failure, JudgeRun, Outcome};
use kapi_core::goal::quote::fenced;
use kapi_engine::world::Watch;
use kapi_git::checkout::CheckoutPlan;
use kapi_git::owned_dir;
use kapi_sandbox::spec::Access;
use kapi_sys::process::End;

use crate::agent_run::run_id;
use crate::asking::{Asked, ask};
use crate::confine::Cell;
use crate::real::RealWorld;
use crate::run_dir::RunDir;
use crate::verify::checkout;
use crate::workshop::{self, Workshop};
use crate::{failure, home};

/// Bytes of the change that a judge is shown; the checkout has all of it.
const DIFF_BYTES_MAX: usize = 60_000;

impl RealWorld<'_> {
    pub(crate) fn judge(
        &self,
        effect: &Effect,
        task: &JudgeTask,
        watch: &Watch<'_>,
    ) -> Result<Outcome, Failure> {
        let kind = Kind::parse(&task.agent).map_err(|error| failure::agent(&error))?;
        let settings = self.book.settings(&kind);
        let workshop = Workshop::open(&self.book, &self.place.project, watch.cancel)?;
        let (base, commit) = (
            workshop::commit_id(&task.base)?,
            workshop::commit_id(&task.commit)?,
        );
        let checkout_dir = checkout(
            &workshop,
            &CheckoutPlan {
                commit: &commit,
                base: &base,
                protect: &[],
                to: &self.place.scratch.join("judge"),
            },
        )?;
        let patch = workshop
            .repository
            .diff(&base, &commit, DIFF_BYTES_MAX)
            .map_err(|error| failure::plain(&error))?;
        let home = home::make_anew(&self.place.scratch.join("judge-home"))?;
        let run_id = run_id(effect);
        let run_dir = RunDir::open(&self.place.runs, &run_id)?;
        let cell = Cell {
            name: &run_id,
            level: task.sandbox,
            workspace: &checkout_dir,
            workspace_access: Access::ReadOnly,
            home: &home,
            git_view: None,
            mounts: Vec::new(),
            deadline: Duration::from_millis(task.deadline_ms),
            idle: None,
        };
        let prompt = with_change(&task.question, &patch.bytes, patch.is_cut);
        let asked = Asked {
            kind: &kind,
            settings: &settings,
            prompt: &prompt,
            session: None,
            turn: 1,
            run_id: &run_id,
            purpose: Purpose::Judge,
            network: task.network,
            git_env: Vec::new(),
        };
        let (run, end) = ask(&self.book, cell, &asked, &run_dir, watch)?;
        owned_dir::discard(&checkout_dir).map_err(|error| failure::plain(&error))?;
        Ok(outcome(&task.agent, &run, end))
    }
}

fn with_change(question: &str, patch: &[u8], is_cut: bool) -> String {
    let text = String::from_utf8_lossy(patch);
    let note = if is_cut {
        "\n\nThe change is longer than this; the working directory holds the whole result."
    } else {
        ""
    };
    format!(
        "{question}\n\n# The change\n\n{}{note}",
        fenced(&text, "diff")
    )
}

fn outcome(by: &str, run: &AgentRun, end: End) -> Outcome {
    if end == End::Cancelled {
        return Outcome::Cancelled {
            usage: run.usage,
            session: None,
        };
    }
    Outcome::Judged(JudgeRun {
        by: by.to_owned(),
        answer: judge_answer(run),
        usage: run.usage,
    })
}
