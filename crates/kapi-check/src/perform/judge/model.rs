//! A judge that is a model: one question without tools, and the verdict by a channel of its own.
//!
//! It sees the change and nothing else of the repository. It is asked at its provider, or by the host of
//! a session that has it. What it used is counted and priced.

use kapi_agent::failure::reported;
use kapi_agent::verdict::{VerdictToken, parse_verdict};
use kapi_core::failure::Failure;
use kapi_core::usage::{Doubt, Usage};
use kapi_core::verdict::{JudgeAnswer, JudgeRun};
use kapi_gateway::ask::error::AskError;
use kapi_gateway::ask::form::{AnswerForm, SEALED_VERDICT};
use kapi_gateway::ask::server::ModelEndpoint;
use kapi_gateway::ask::{self, ModelQuestion};
use kapi_machine::watch::{Activity, EffectWatch};
use kapi_run::asker::patience::{AfterFailure, ProviderRetry};
use kapi_run::failure;
use kapi_run::host_grants::HostGrants;
use kapi_run::judge_provider::{price_name, server};
use kapi_run::spending::calls::{CallBook, CallStart};
use kapi_spend::rules::call::{CallBounds, OutputLimit};
use kapi_spend::rules::price::Price;
use kapi_spend::rules::tokens::TokenCounts;

use crate::perform::judge::evidence::EvidenceLimits;
use crate::perform::judge::host_model::{HostModels, HostOutcome, HostQuestion, is_asked_by_host};
use crate::perform::judge::token::{sealed, token};
use crate::perform::judge::{JudgeQuestion, JudgeRetry, Judgement, evidence};

/// The most tokens a verdict may take, with the thinking before it.
const OUTPUT_TOKENS_MAX: u32 = 16_000;
/// What tokens of text and code have in the mean.
const LIKELY_BYTES_PER_TOKEN: u64 = 4;
/// Few questions have more bytes than this for each token.
const MOST_BYTES_PER_TOKEN: u64 = 8;
/// What the form of the answer and the provider's own words add, at most.
const ADDED_INPUT_TOKENS: u64 = 4_096;

/// A model of a provider.
#[derive(Debug, Clone, Copy)]
pub(super) struct Model<'a> {
    /// Whose it is.
    pub(super) provider: &'a str,
    /// What they call it.
    pub(super) model: &'a str,
}

/// Who asks it.
enum ModelLine<'a> {
    /// Kapi, at its provider.
    Server(Box<ModelEndpoint>),
    /// The host of the session.
    Host(HostModels<'a>),
}

pub(super) fn ask(
    grants: &HostGrants,
    question: &JudgeQuestion<'_>,
    model: Model<'_>,
    watch: &EffectWatch<'_>,
) -> Result<Judgement, Failure> {
    let host = question
        .host
        .filter(|host| is_asked_by_host(grants, question.judge, host.has));
    let line = match host {
        Some(host) => ModelLine::Host(host),
        None => ModelLine::Server(Box::new(server(grants, model.provider)?)),
    };
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
    let provider = price_name(grants, model.provider);
    let book = CallBook::new(watch, Some(&grants.prices), provider);
    let bounds = bounds(&posed);
    for call in 1.. {
        let output_max = match book.begin(call, model.model, &bounds, &|| false) {
            CallStart::Go { output_max } => output_max,
            // Whoever limits it was told why, and ends what this is part of.
            CallStart::Refused(_) | CallStart::Stopped => break,
        };
        let most = output_max.and_then(|most| u32::try_from(most).ok());
        let posed = ModelQuestion {
            output_tokens_max: most.unwrap_or(OUTPUT_TOKENS_MAX).min(OUTPUT_TOKENS_MAX),
            ..posed
        };
        let tried = put(&line, &posed, question, watch);
        let usage = priced(book.price(model.model).as_ref(), &tried, &bounds);
        let answer = match tried.outcome {
            AttemptOutcome::Said(text) => {
                question.run_dir.keep("answer.txt", text.as_bytes())?;
                parse_verdict(&text, VerdictToken::Required(&token))
            }
            AttemptOutcome::Failed(answer) => answer,
            AttemptOutcome::Cancelled => return Ok(Judgement::Cancelled(usage)),
        };
        if let (JudgeAnswer::Unavailable(trouble), JudgeRetry::Here) = (&answer, question.waiting) {
            match patience.wait(trouble, usage, watch) {
                AfterFailure::AskAgain => {
                    book.end(call);
                    continue;
                }
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
    Ok(Judgement::Cancelled(Usage::ZERO))
}

/// Returns what one try may use: at most a token for each byte, and what a provider adds.
fn bounds(posed: &ModelQuestion<'_>) -> CallBounds {
    let bytes = posed.system.len().saturating_add(posed.user.len());
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    CallBounds {
        input_least: bytes / MOST_BYTES_PER_TOKEN,
        input_likely: bytes / LIKELY_BYTES_PER_TOKEN,
        input_max: Some(bytes.saturating_add(ADDED_INPUT_TOKENS)),
        output: OutputLimit::Named(OUTPUT_TOKENS_MAX.into()),
    }
}

/// What came of one try.
struct JudgeAttempt {
    outcome: AttemptOutcome,
    counts: TokenCounts,
    /// Requests of which nobody told what they used.
    n_unmetered: u64,
}

/// What was said, or what it means that nothing was.
enum AttemptOutcome {
    Said(String),
    Failed(JudgeAnswer),
    Cancelled,
}

fn put(
    line: &ModelLine<'_>,
    posed: &ModelQuestion<'_>,
    question: &JudgeQuestion<'_>,
    watch: &EffectWatch<'_>,
) -> JudgeAttempt {
    let attempt = match line {
        ModelLine::Server(server) => {
            let asked = ask::ask(server, posed, question.deadline, watch.cancel);
            JudgeAttempt {
                outcome: match asked.outcome {
                    Ok(answer) => AttemptOutcome::Said(answer.text),
                    Err(AskError::Cancelled { .. }) => AttemptOutcome::Cancelled,
                    Err(error) => AttemptOutcome::Failed(unanswered(&error)),
                },
                counts: asked.usage,
                n_unmetered: asked.n_unmetered.into(),
            }
        }
        ModelLine::Host(host) => {
            let carried = HostQuestion {
                model: question.judge,
                system: posed.system,
                user: posed.user,
                output_tokens_max: posed.output_tokens_max,
                deadline: question.deadline,
            };
            let answered = (host.ask)(&carried, watch.cancel);
            JudgeAttempt {
                outcome: match answered.outcome {
                    HostOutcome::Said(text) => AttemptOutcome::Said(text),
                    HostOutcome::Cancelled => AttemptOutcome::Cancelled,
                    HostOutcome::Failed(message) => {
                        let failure = reported(None, &message);
                        AttemptOutcome::Failed(JudgeAnswer::Unavailable(failure))
                    }
                },
                counts: answered.counts.unwrap_or_default(),
                n_unmetered: u64::from(answered.counts.is_none()),
            }
        }
    };
    if attempt.n_unmetered > 0 {
        let judge = question.judge;
        let text = format!("judge {judge}: its usage was not reported completely");
        (watch.notice)(Activity::Note { text });
    }
    attempt
}

/// Returns what a try used and cost; what nobody told counts at its most, and as doubtful.
fn priced(price: Option<&Price>, tried: &JudgeAttempt, bounds: &CallBounds) -> Usage {
    let (counts, n) = (&tried.counts, tried.n_unmetered);
    let mut usage = counts.usage(price.map(|price| price.cost(counts)));
    let input = bounds.input_max.unwrap_or_default().saturating_mul(n);
    let output = u64::from(OUTPUT_TOKENS_MAX).saturating_mul(n);
    let most = price.map(|price| price.most(input, output));
    let may_have_cost = n > 0 || !counts.is_zero();
    usage.add(&Usage {
        input_tokens: input,
        output_tokens: output,
        usd_micros: most.filter(|_| n > 0),
        doubt: Doubt {
            calls: n,
            tokens: input.saturating_add(output),
            usd_micros: most.unwrap_or(0),
            unpriced_calls: u64::from(price.is_none() && may_have_cost),
        },
    });
    usage
}

/// Returns what it means that a server gave no answer.
fn unanswered(error: &AskError) -> JudgeAnswer {
    match error.failure() {
        Some(failure) => JudgeAnswer::Unavailable(failure),
        None => JudgeAnswer::Malformed {
            text: format!("failed to {}", failure::chain(error)),
        },
    }
}
