//! Whether a rule is about a request: yes, no, or not known.

use kapi_core::pattern;

use crate::rules::policy::{PolicyRequest, RequestKind, When, classic};

/// Tells whether everything that a rule asks is so; none when that is not known.
pub(super) fn is_about(when: &When, request: &PolicyRequest) -> Option<bool> {
    let answers = [
        asked(!when.kinds.is_empty(), || {
            Some(when.kinds.contains(&request.kind))
        }),
        asked(!when.agents.is_empty(), || {
            is_one(&when.agents, request.agent.as_deref())
        }),
        asked(!when.loops.is_empty(), || {
            of_loop(request, &when.loops, request.loop_name.as_deref())
        }),
        asked(!when.projects.is_empty(), || {
            Some(is_project(&when.projects, &request.project))
        }),
        asked(!when.backends.is_empty(), || {
            is_one(&when.backends, request.backend.as_deref())
        }),
        asked(!when.tools.is_empty(), || {
            let tools = request.tools.as_ref()?;
            let is_named = |tool: &String| is_one(&when.tools, Some(tool)) == Some(true);
            Some(tools.iter().any(is_named))
        }),
        asked(!when.trigger_sources.is_empty(), || {
            of_loop(
                request,
                &when.trigger_sources,
                request.trigger_source.as_deref(),
            )
        }),
        asked(!when.prompt_contains.is_empty(), || {
            let prompt = request.prompt.to_lowercase();
            let mut texts = when.prompt_contains.iter();
            Some(texts.any(|text| prompt.contains(&text.to_lowercase())))
        }),
        when.prompt_chars_over.map_or(Some(true), |max| {
            let count = u64::try_from(request.prompt.chars().count()).ok()?;
            Some(count > max)
        }),
        asked(!when.budget_over.is_open(), || {
            Some(is_budget_over(when, request))
        }),
        when.unattended
            .map_or(Some(true), |wanted| Some(wanted == request.is_unattended)),
        when.window.as_ref().map_or(Some(true), |window| {
            let time = request.local_times.get(&window.zone)?;
            Some(window.holds(*time))
        }),
    ];
    if answers.contains(&Some(false)) {
        return Some(false);
    }
    if answers.contains(&None) {
        None
    } else {
        Some(true)
    }
}

/// Answers only what a rule asks.
fn asked(is_asked: bool, answer: impl FnOnce() -> Option<bool>) -> Option<bool> {
    if is_asked { answer() } else { Some(true) }
}

fn is_one(patterns: &[String], name: Option<&str>) -> Option<bool> {
    let name = classic::plain_name(name?);
    let name = name.strip_prefix('@').unwrap_or(&name);
    Some(
        patterns
            .iter()
            .any(|pattern| pattern::is_name(pattern, name)),
    )
}

/// What only runs of loops have, a task certainly has not.
fn of_loop(request: &PolicyRequest, patterns: &[String], name: Option<&str>) -> Option<bool> {
    match request.kind {
        RequestKind::Loop => is_one(patterns, name),
        RequestKind::Task => Some(false),
    }
}

/// A pattern without a slash is for the directory's name.
fn is_project(patterns: &[String], project: &str) -> bool {
    let project = project.trim_end_matches('/');
    let name = project.rsplit('/').next().unwrap_or(project);
    let is_of = |pattern: &String| {
        if pattern.contains('/') {
            pattern::covers(pattern, project)
        } else {
            pattern::is_name(pattern, name)
        }
    };
    patterns.iter().any(is_of)
}

fn is_budget_over(when: &When, request: &PolicyRequest) -> bool {
    let is_over = |max: Option<u64>, asked: Option<u64>| match (max, asked) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(max), Some(asked)) => asked > max,
    };
    let (max, asked) = (&when.budget_over, &request.budget);
    is_over(max.tokens, asked.tokens)
        || is_over(max.usd_micros, asked.usd_micros)
        || is_over(max.time_ms, asked.time_ms)
}
