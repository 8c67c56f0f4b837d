//! What an agent is told: how to do well, what holds for this run, lessons, why the
//! attempt before did not finish, and its task.
//!
//! What others wrote stands in fences. Nothing here is relied on: what holds is held by the sandbox.

use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::quote::{fenced, head, visible};
use kapi_launch::bounds::Touch;
use kapi_run::failure;

use super::ending::not_launched;
use super::setup::Setup;
use super::{Performer, PerformerSettings};
use crate::record::awareness;
use crate::record::awareness::Circumstances;
use crate::record::guardrails::GuardrailMemory;
use crate::rules::guardrail::Domain;
use crate::rules::guardrail::choose::{LOOP_COUNT_MAX, LessonQuery, QueriedDomain, TASK_COUNT_MAX};
use crate::rules::task::{End, KernelTask};

/// Bytes of why an attempt is tried again that the next one is told.
const RETRY_CAUSE_BYTES_MAX: usize = 2_000;

/// What an agent is told beside what is known of its run.
pub(super) struct PromptParts<'a> {
    /// Its task.
    pub(super) prompt: &'a str,
    /// What the run before left; empty where there is nothing.
    pub(super) handoff: &'a str,
    /// What its work is held to, one line each.
    pub(super) checks: &'a [String],
}

/// Composes everything an agent is told.
pub(super) fn compose(
    performer: &Performer<'_>,
    task: &KernelTask,
    setup: &Setup,
    network: NetworkMode,
    words: &PromptParts<'_>,
) -> Result<String, End> {
    let root = performer.project.layout.root();
    let awareness = awareness::load(root, root);
    let tools: Vec<String> = setup
        .profile
        .tools
        .iter()
        .flatten()
        .map(|tool| tool.name().to_owned())
        .collect();
    let about = awareness::describe(&Circumstances {
        level: level_word(&performer.setting),
        network: network_words(network),
        is_read_only: setup.touch == Touch::Nothing,
        branch: setup.branch.as_deref(),
        keeps_commits: task.request.keep_commits,
        time_ms: Some(setup.deadline_ms),
        tokens: setup.budget.tokens,
        usd_micros: setup.budget.usd_micros,
        tools: &tools,
        checks: words.checks,
    });
    let mut first = format!("{}\n\n{about}", awareness.text);
    let role = setup.profile.system_prompt.trim();
    if !role.is_empty() {
        first.push_str("\n\n## Your Role\n");
        first.push_str(role);
    }
    let guardrails = guardrails(performer, task, words.prompt)?;
    let mut prompt = String::new();
    if let Some(retry_cause) = &task.retry_cause {
        let text = visible(head(retry_cause, RETRY_CAUSE_BYTES_MAX));
        prompt.push_str("An earlier attempt did not finish:\n\n");
        prompt.push_str(&fenced(&text, ""));
        prompt.push_str("\n\n");
    }
    if !words.handoff.is_empty() {
        prompt.push_str(words.handoff);
        prompt.push_str("\n\n");
    }
    prompt.push_str(words.prompt);
    Ok(awareness::compose(&first, &guardrails, &prompt))
}

/// Returns the memory of lessons.
pub(super) fn memory<'a>(performer: &'a Performer<'_>) -> GuardrailMemory<'a> {
    GuardrailMemory {
        disk: performer.project.disk,
        clock: performer.project.clock,
        project: performer.project.layout.root().to_path_buf(),
        dir: performer.terms.guardrails_dir.clone(),
        owner: performer.project.owner.clone(),
        accept_after_hits: performer.terms.accept_learnt_after,
    }
}

fn guardrails(performer: &Performer<'_>, task: &KernelTask, prompt: &str) -> Result<String, End> {
    let request = &task.request;
    let count_max = match task.loop_run() {
        Some(_) => LOOP_COUNT_MAX,
        None => TASK_COUNT_MAX,
    };
    let names = [Some(request.agent.as_str()), request.domain.as_deref()];
    let domains: Vec<QueriedDomain> = names
        .into_iter()
        .flatten()
        .filter_map(|name| Domain::parse(name.trim_start_matches('@')).ok())
        .map(|domain| QueriedDomain { domain, count_max })
        .collect();
    let chosen = memory(performer).choose(&LessonQuery {
        domains: &domains,
        prompt,
        now_ms: performer.project.clock.now_ms(),
        tokens_max: usize::try_from(performer.terms.guardrail_tokens_max).unwrap_or(usize::MAX),
    });
    // Lessons that cannot be read are no reason to work without them.
    let chosen =
        chosen.map_err(|error| not_launched(format!("failed to {}", failure::chain(&error))))?;
    Ok(chosen.body().unwrap_or_default().to_owned())
}

const fn level_word(setting: &PerformerSettings) -> &'static str {
    match setting.level {
        SandboxLevel::Native => "native",
        SandboxLevel::Podman => "podman",
        SandboxLevel::None => "none",
    }
}

const fn network_words(network: NetworkMode) -> &'static str {
    match network {
        NetworkMode::None => "nothing",
        NetworkMode::Filtered => "the hosts that the user allowed",
        NetworkMode::Open => "everything this machine can reach",
    }
}
