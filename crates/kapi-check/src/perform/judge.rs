//! Asking a judge: a fresh question each time, and the work as data.
//!
//! The only place where somebody is asked whether work is done, for goals and loops alike. An agent
//! gets a session of its own, a home made anew and a read-only clean checkout; a model is asked
//! directly and sees the change alone. Neither sees the executor's history, and both must hand back
//! the token of the question, but for a person's own program.

mod agent;
pub mod evidence;
pub mod host_model;
mod model;
mod token;

use std::path::Path;
use std::time::Duration;

use kapi_core::failure::Failure;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::usage::Usage;
use kapi_core::verdict::JudgeRun;
use kapi_gateway::ask::probe;
use kapi_machine::watch::EffectWatch;
use kapi_run::gate::GateRules;
use kapi_run::host_grants::HostGrants;
use kapi_run::judge_provider::JudgeReference;
use kapi_run::run_dir::RunDir;
use kapi_run::{failure, judge_provider};
use kapi_spend::rules::day::Day;
use kapi_sys::cancel::Cancel;

use crate::perform::judge::evidence::JudgedChange;
use crate::perform::judge::host_model::HostModels;

/// The longest a model is waited for to say that it is there.
const PROBE_DEADLINE: Duration = Duration::from_secs(30);

/// A question to a judge.
pub struct JudgeQuestion<'a> {
    /// Who judges: an agent, or a model of a provider.
    pub judge: &'a str,
    /// What it is told, with marks where the token of the question goes.
    pub instructions: &'a str,
    /// What it is to judge, but for the change itself.
    pub material: &'a str,
    /// The change.
    pub change: &'a JudgedChange<'a>,
    /// The run's id.
    pub run_id: &'a str,
    /// Where prompt, transcript and logs are kept.
    pub run_dir: &'a RunDir,
    /// A directory of this question alone.
    pub dir: &'a Path,
    /// The isolation of an agent.
    pub level: SandboxLevel,
    /// What an agent can reach.
    pub network: NetworkMode,
    /// Before what an agent asks.
    pub rules: GateRules<'a>,
    /// How long it may take.
    pub deadline: Duration,
    /// Who waits for a provider that fails.
    pub waiting: JudgeRetry,
    /// The day, for prices.
    pub today: Day,
    /// Models that the host of a session asks for us, where there is one.
    pub host: Option<HostModels<'a>>,
}

/// Who waits for a judge whose provider fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JudgeRetry {
    /// The caller, in its own log.
    ByCaller,
    /// The asker, for some minutes.
    Here,
}

/// What came of a question to a judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// A verdict, or why there is none.
    Given(JudgeRun),
    /// Nobody wanted it any more; this was used and not yet reported.
    Cancelled(Usage),
}

/// Asks a judge.
pub fn ask(
    grants: &HostGrants,
    question: &JudgeQuestion<'_>,
    watch: &EffectWatch<'_>,
) -> Result<Judgement, Failure> {
    match JudgeReference::parse(question.judge) {
        JudgeReference::Agent(reference) => agent::ask(grants, question, reference, watch),
        JudgeReference::Model { provider, model } => {
            let model = model::Model { provider, model };
            model::ask(grants, question, model, watch)
        }
    }
}

/// A model that can judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeModel {
    /// The model, as its server names it: some serve another than was asked for.
    pub model: String,
}

/// Asks a provider whether a model is there and may be asked, which costs at most a few tokens.
///
/// # Errors
/// When `reference` is not written as provider/model, nothing is known of the provider, its key is
/// missing, or the model does not answer; each with what to do about it.
pub fn probe(grants: &HostGrants, reference: &str) -> Result<JudgeModel, Failure> {
    let JudgeReference::Model { provider, model } = JudgeReference::parse(reference) else {
        return Err(not_a_model(reference));
    };
    let server = judge_provider::server(grants, provider)?;
    let probed = probe::probe(&server, model, PROBE_DEADLINE, &Cancel::new());
    match probed.outcome {
        Ok(present) => Ok(JudgeModel {
            model: present.model,
        }),
        Err(error) => Err(Failure {
            message: format!("ask judge {reference}: {}", failure::chain(&error)),
            hint: error.hint(),
        }),
    }
}

/// Checks that a model of a provider could be asked, without asking it.
///
/// # Errors
/// When `reference` is not written as provider/model, nothing is known of the provider, or its key
/// is missing; each with what to do about it.
pub fn check(grants: &HostGrants, reference: &str) -> Result<(), Failure> {
    match JudgeReference::parse(reference) {
        JudgeReference::Model { provider, .. } => {
            judge_provider::server(grants, provider).map(drop)
        }
        JudgeReference::Agent(_) => Err(not_a_model(reference)),
    }
}

fn not_a_model(reference: &str) -> Failure {
    Failure {
        message: format!("read {reference:?} as provider/model"),
        hint: Some("write provider/model, such as anthropic/claude-opus-4-7.".to_owned()),
    }
}
