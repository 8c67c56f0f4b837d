//! A judge that is an agent: a session of its own in a read-only checkout of what is judged.
//!
//! Knows nothing of what a verdict leads to.

use std::ffi::OsString;

use kapi_agent::agent::AgentKind;
use kapi_agent::verdict::{VerdictToken, judge_answer};
use kapi_core::failure::Failure;
use kapi_core::verdict::JudgeRun;
use kapi_machine::watch::EffectWatch;
use kapi_run::asker::{AgentHome, QuestionFiles, ReadOnlyQuestion, ToolSet};
use kapi_run::host_grants::HostGrants;
use kapi_run::{asker, failure};
use kapi_sys::process::ProcessEnd;

use crate::perform::judge::evidence::EvidenceLimits;
use crate::perform::judge::token::{TOKEN_VARIABLE, sealed, token};
use crate::perform::judge::{JudgeQuestion, JudgeRetry, Judgement, evidence};

pub(super) fn ask(
    grants: &HostGrants,
    question: &JudgeQuestion<'_>,
    reference: &str,
    watch: &EffectWatch<'_>,
) -> Result<Judgement, Failure> {
    let kind = AgentKind::parse(reference).map_err(|error| failure::agent(&error))?;
    let token = token(&grants.grant, question.run_id)?;
    let evidence = evidence::of(question.change, &EvidenceLimits::BESIDE_CHECKOUT)?;
    let prompt = format!(
        "{}\n\n----\n\n{}\n\n{evidence}",
        sealed(question.instructions, &token),
        question.material
    );
    let posed = ReadOnlyQuestion {
        agent: &kind,
        prompt: &prompt,
        files: QuestionFiles::Commit {
            repo: question.change.repo,
            commit: &question.change.commit,
        },
        home: AgentHome::Anew,
        session: None,
        tools: ToolSet::Reading(question.rules),
        turn: 1,
        run_id: question.run_id,
        run_dir: question.run_dir,
        dir: question.dir,
        level: question.level,
        network: question.network,
        deadline: question.deadline,
        env: token_variable(&kind, &token),
        mounts: Vec::new(),
    };
    let (run, end) = match question.waiting {
        JudgeRetry::ByCaller => asker::ask(grants, &posed, watch)?,
        JudgeRetry::Here => asker::ask_patiently(grants, &posed, watch)?,
    };
    if end == ProcessEnd::Cancelled {
        return Ok(Judgement::Cancelled(run.usage));
    }
    Ok(Judgement::Given(JudgeRun {
        by: question.judge.to_owned(),
        answer: judge_answer(&run, proof(&kind, &token)),
        usage: run.usage,
    }))
}

/// Returns what a verdict must carry.
///
/// A person's own program is not talked into anything: it says what it was written to say, and may
/// be older than the token. Where it does name a token, it must be the right one.
const fn proof<'a>(kind: &AgentKind, token: &'a str) -> VerdictToken<'a> {
    match kind {
        AgentKind::Claude
        | AgentKind::Codex
        | AgentKind::Gemini
        | AgentKind::Pi
        | AgentKind::Acp(_) => VerdictToken::Required(token),
        AgentKind::Command(_) | AgentKind::Script(_) => VerdictToken::Optional(token),
    }
}

fn token_variable(kind: &AgentKind, token: &str) -> Vec<(OsString, OsString)> {
    match kind {
        // A model reads its prompt; in its environment the token would be for its tools.
        AgentKind::Claude
        | AgentKind::Codex
        | AgentKind::Gemini
        | AgentKind::Pi
        | AgentKind::Acp(_) => Vec::new(),
        AgentKind::Command(_) | AgentKind::Script(_) => vec![(TOKEN_VARIABLE.into(), token.into())],
    }
}
