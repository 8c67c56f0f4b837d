//! A judge that is a model: one question without tools, and the verdict by a channel of its own.
//!
//! It sees the change and nothing else of the repository. What it used is counted and priced.

use kapi_agent::verdict::{VerdictToken, parse_verdict};
use kapi_core::failure::Failure;
use kapi_core::usage::Usage;
use kapi_core::verdict::{JudgeAnswer, JudgeRun};
use kapi_gateway::ask::answer::ModelAnswer;
use kapi_gateway::ask::error::AskError;
use kapi_gateway::ask::form::{AnswerForm, SEALED_VERDICT};
use kapi_gateway::ask::server::ModelEndpoint;
use kapi_gateway::ask::{self, ModelQuestion};
use kapi_machine::watch::{Activity, EffectWatch};
use kapi_run::asker::patience::{AfterFailure, ProviderRetry};
use kapi_run::failure;
use kapi_run::host_grants::HostGrants;
use kapi_run::judge_provider::{price_name, server};
use kapi_spend::rules::tokens::TokenCounts;

use crate::perform::judge::evidence::EvidenceLimits;
use crate::perform::judge::token::{sealed, token};
use crate::perform::judge::{JudgeQuestion, JudgeRetry, Judgement, evidence};

/// The most tokens a verdict may take, with the thinking before it.
const OUTPUT_TOKENS_MAX: u32 = 16_000;

/// A model of a provider.
#[derive(Debug, Clone, Copy)]
pub(super) struct Model<'a> {
    /// Whose it is.
    pub(super) provider: &'a str,
    /// What they call it.
    pub(super) model: &'a str,
}

pub(super) fn ask(
    grants: &HostGrants,
    question: &JudgeQuestion<'_>,
    model: Model<'_>,
    watch: &EffectWatch<'_>,
) -> Result<Judgement, Failure> {
    let server = server(grants, model.provider)?;
    let evidence = evidence::of(question.change, &EvidenceLimits::ALONE)?;
    let token = token(&grants.grant, question.run_id)?;
    let system = sealed(question.instructions, &token);
    let user = format!("{}\n\n{evidence}", question.material);
    let prompt = format!("{system}\n\n----\n\n{user}");
    question.run_dir.keep("prompt.md", prompt.as_bytes())?;
    let posed = ModelQuestion {
        model: model.model,
        system: &system,
        user: &user,
        output_tokens_max: OUTPUT_TOKENS_MAX,
        form: AnswerForm::Object(&SEALED_VERDICT),
    };
    let mut patience = ProviderRetry::default();
    loop {
        let tried = put(&server, &posed, question, watch);
        let usage = priced(grants, model, question, &tried.counts);
        if matches!(tried.outcome, Err(AskError::Cancelled { .. })) {
            return Ok(Judgement::Cancelled(usage));
        }
        if let Ok(answer) = &tried.outcome {
            question
                .run_dir
                .keep("answer.txt", answer.text.as_bytes())?;
        }
        let answer = read(&tried.outcome, &token);
        if let (JudgeAnswer::Unavailable(trouble), JudgeRetry::Here) = (&answer, question.waiting) {
            match patience.wait(trouble, usage, watch) {
                AfterFailure::AskAgain => continue,
                AfterFailure::Cancelled => return Ok(Judgement::Cancelled(Usage::default())),
                AfterFailure::GiveUp => {}
            }
        }
        return Ok(Judgement::Given(JudgeRun {
            by: question.judge.to_owned(),
            answer,
            usage,
        }));
    }
}

/// What came of one try.
struct JudgeAttempt {
    outcome: Result<ModelAnswer, AskError>,
    counts: TokenCounts,
}

fn put(
    server: &ModelEndpoint,
    posed: &ModelQuestion<'_>,
    question: &JudgeQuestion<'_>,
    watch: &EffectWatch<'_>,
) -> JudgeAttempt {
    let asked = ask::ask(server, posed, question.deadline, watch.cancel);
    if asked.n_unmetered > 0 {
        let judge = question.judge;
        let text = format!("judge {judge}: the server did not report complete usage");
        (watch.notice)(Activity::Note { text });
    }
    JudgeAttempt {
        outcome: asked.outcome,
        counts: asked.usage,
    }
}

fn priced(
    grants: &HostGrants,
    model: Model<'_>,
    question: &JudgeQuestion<'_>,
    counts: &TokenCounts,
) -> Usage {
    let provider = price_name(grants, model.provider);
    counts.usage(
        grants
            .prices
            .cost(&provider, model.model, question.today, counts),
    )
}

fn read(outcome: &Result<ModelAnswer, AskError>, token: &str) -> JudgeAnswer {
    match outcome {
        Ok(answer) => parse_verdict(&answer.text, VerdictToken::Required(token)),
        Err(error) => match error.failure() {
            Some(failure) => JudgeAnswer::Unavailable(failure),
            None => JudgeAnswer::Malformed {
                text: format!("failed to {}", failure::chain(error)),
            },
        },
    }
}
