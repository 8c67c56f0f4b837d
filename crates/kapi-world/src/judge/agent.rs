//! A judge that is an agent: a session of its own in a read-only checkout of what is judged.
//!
//! Knows nothing of what a verdict leads to.

use std::ffi::OsString;
use std::time::Duration;

use kapi_agent::agent::Kind;
use kapi_agent::launch::Purpose;
use kapi_agent::verdict::{Token, judge_answer};
use kapi_core::goal::effect::{Effect, JudgeTask};
use kapi_core::goal::outcome::{AgentRun, Failure, JudgeRun, Outcome};
use kapi_engine::world::Watch;
use kapi_git::checkout::CheckoutPlan;
use kapi_git::owned_dir;
use kapi_sandbox::spec::Access;
use kapi_sys::process::End;

use crate::agent_run::run_id;
use crate::asking::{Asked, ask_gated};
use crate::confine::{Cell, WorksAt};
use crate::gate::Rules;
use crate::judge::token::{sealed, token};
use crate::judge::{DIFF_BYTES_MAX, change, material};
use crate::prover::checkout::make as checkout;
use crate::real::RealWorld;
use crate::run_dir::RunDir;
use crate::workshop::{self, Workshop};
use crate::{failure, home};

/// The variable that holds the token of the question, for programs.
const TOKEN_VARIABLE: &str = "KAPI_JUDGE_TOKEN";
/// Said of a change that is longer than what is shown of it.
const CUT: &str = "The change is longer than this; the working directory holds the whole result.";

impl RealWorld<'_> {
    pub(super) fn judge_by_agent(
        &self,
        effect: &Effect,
        (task, reference): (&JudgeTask, &str),
        watch: &Watch<'_>,
    ) -> Result<Outcome, Failure> {
        let kind = Kind::parse(reference).map_err(|error| failure::agent(&error))?;
        let settings = self.book.settings(&kind);
        let workshop = Workshop::open(&self.book, &self.place.project, watch.cancel)?;
        let checkout_dir = checkout(
            &workshop,
            &CheckoutPlan {
                commit: &workshop::commit_id(&task.commit)?,
                base: &workshop::commit_id(&task.base)?,
                protect: &[],
                to: &self.place.scratch.join("judge"),
            },
        )?;
        let patch = change(&workshop, task, DIFF_BYTES_MAX)?;
        let home = home::make_anew(&self.place.scratch.join("judge-home"))?;
        let run_id = run_id(effect);
        let run_dir = RunDir::open(&self.place.runs, &run_id)?;
        let cell = Cell {
            name: &run_id,
            level: task.sandbox,
            workspace: &checkout_dir,
            workspace_access: Access::ReadOnly,
            project: Some(workshop.repository.top_level()),
            works_at: WorksAt::Project,
            home: &home,
            git_view: None,
            mounts: Vec::new(),
            deadline: Duration::from_millis(task.deadline_ms),
            idle: None,
        };
        let token = token(&self.book.grant, &run_id)?;
        let prompt = format!(
            "{}\n\n----\n\n{}",
            sealed(&task.instructions, &token),
            material(task, &patch, CUT)
        );
        let asked = Asked {
            kind: &kind,
            settings: &settings,
            prompt: &prompt,
            session: None,
            turn: 1,
            run_id: &run_id,
            purpose: Purpose::Judge,
            network: task.network,
            env: token_variable(&kind, &token),
        };
        let rules = Rules::Goal(self.caller(effect, &run_id));
        let at_gate = (&asked, rules, &*self.place.scratch);
        let (run, end) = ask_gated(&self.book, cell, at_gate, &run_dir, watch)?;
        owned_dir::discard(&checkout_dir).map_err(|error| failure::plain(&error))?;
        Ok(outcome(&task.agent, &run, end, proof(&kind, &token)))
    }
}

/// Returns what a verdict must carry.
///
/// A person's own program is not talked into anything: it says what it was written to say, and may
/// be older than the token. Where it does name a token, it must be the right one.
const fn proof<'a>(kind: &Kind, token: &'a str) -> Token<'a> {
    match kind {
        Kind::Claude | Kind::Codex | Kind::Gemini | Kind::Pi => Token::Required(token),
        Kind::Command(_) | Kind::Script(_) => Token::Optional(token),
    }
}

fn token_variable(kind: &Kind, token: &str) -> Vec<(OsString, OsString)> {
    match kind {
        // A model reads its prompt; in its environment the token would be for its tools.
        Kind::Claude | Kind::Codex | Kind::Gemini | Kind::Pi => Vec::new(),
        Kind::Command(_) | Kind::Script(_) => vec![(TOKEN_VARIABLE.into(), token.into())],
    }
}

fn outcome(by: &str, run: &AgentRun, end: End, token: Token<'_>) -> Outcome {
    if end == End::Cancelled {
        return Outcome::Cancelled {
            usage: run.usage,
            session: None,
        };
    }
    Outcome::Judged(JudgeRun {
        by: by.to_owned(),
        answer: judge_answer(run, token),
        usage: run.usage,
    })
}
