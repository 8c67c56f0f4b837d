//! A judge that is a model: one question without tools, and the verdict by a channel of its own.
//!
//! It sees the change and nothing else of the repository. What it used is counted and priced.

use std::time::Duration;

use kapi_agent::verdict::{Token, parse_verdict};
use kapi_core::goal::effect::{Effect, JudgeTask};
use kapi_core::goal::outcome::{Failure, JudgeAnswer, JudgeRun, Outcome};
use kapi_core::spend::day::Day;
use kapi_core::spend::tokens::TokenCounts;
use kapi_core::usage::Usage;
use kapi_engine::world::{Activity, Watch};
use kapi_gateway::ask::answer::Answer;
use kapi_gateway::ask::error::AskError;
use kapi_gateway::ask::form::{Form, SEALED_VERDICT};
use kapi_gateway::ask::{self, Question};

use crate::agent_run::run_id;
use crate::failure;
use crate::judge::provider::{price_name, server};
use crate::judge::token::{sealed, token};
use crate::judge::{ALONE_DIFF_BYTES_MAX, change, material};
use crate::real::RealWorld;
use crate::run_dir::RunDir;
use crate::workshop::Workshop;

/// The most tokens a verdict may take, with the thinking before it.
const OUTPUT_TOKENS_MAX: u32 = 16_000;
/// Said of a change that is longer than what is shown of it.
const CUT: &str = "The change is longer than this, and the rest is not shown: what is not shown \
                   proves nothing.";

impl RealWorld<'_> {
    pub(super) fn judge_by_model(
        &self,
        effect: &Effect,
        (task, provider, model): (&JudgeTask, &str, &str),
        watch: &Watch<'_>,
    ) -> Result<Outcome, Failure> {
        let server = server(&self.book, provider)?;
        let workshop = Workshop::open(&self.book, &self.place.project, watch.cancel)?;
        let patch = change(&workshop, task, ALONE_DIFF_BYTES_MAX)?;
        let run_id = run_id(effect);
        let run_dir = RunDir::open(&self.place.runs, &run_id)?;
        let token = token(&self.book.grant, &run_id)?;
        let system = sealed(&task.instructions, &token);
        let user = material(task, &patch, CUT);
        run_dir.keep(
            "prompt.md",
            format!("{system}\n\n----\n\n{user}").as_bytes(),
        )?;
        let question = Question {
            model,
            system: &system,
            user: &user,
            output_tokens_max: OUTPUT_TOKENS_MAX,
            form: Form::Object(&SEALED_VERDICT),
        };
        let deadline = Duration::from_millis(task.deadline_ms);
        let asked = ask::ask(&server, &question, deadline, watch.cancel);
        if asked.n_unmetered > 0 {
            let text = format!(
                "judge {}: the server did not tell all it counted",
                task.agent
            );
            (watch.notice)(Activity::Note { text });
        }
        let usage = self.priced(provider, model, &asked.usage);
        if matches!(asked.outcome, Err(AskError::Cancelled { .. })) {
            return Ok(Outcome::Cancelled {
                usage,
                session: None,
            });
        }
        if let Ok(answer) = &asked.outcome {
            run_dir.keep("answer.txt", answer.text.as_bytes())?;
        }
        Ok(Outcome::Judged(JudgeRun {
            by: task.agent.clone(),
            answer: read(&asked.outcome, &token),
            usage,
        }))
    }

    fn priced(&self, provider: &str, model: &str, counts: &TokenCounts) -> Usage {
        let today = Day::of_ms(self.clock.now_ms());
        let provider = price_name(&self.book, provider);
        counts.usage(self.book.prices.cost(&provider, model, today, counts))
    }
}

fn read(outcome: &Result<Answer, AskError>, token: &str) -> JudgeAnswer {
    match outcome {
        Ok(answer) => parse_verdict(&answer.text, Token::Required(token)),
        Err(error) => match error.failure() {
            Some(failure) => JudgeAnswer::Unavailable(failure),
            None => JudgeAnswer::Malformed {
                text: format!("failed to {}", failure::chain(error)),
            },
        },
    }
}
