//! What one attempt is launched with: profile, program, model, limits, branch.
//!
//! Resolved from the request, the project's files as they are now, and the person's settings; the
//! narrower always counts. Starts nothing.

use kapi_agent::agent::AgentKind;
use kapi_agent::models;
use kapi_agent::settings::AgentSettings;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_launch::bounds::Touch;
use kapi_launch::inputs::has_branches;
use kapi_run::{asking, failure};

use super::ending::not_launched;
use super::{Performer, ending};
use crate::record::profile_file;
use crate::record::profile_file::tool::{AgentTool, tool_flags};
use crate::record::profile_file::{Access, AgentProfile};
use crate::rules::definition::WorkspaceMode;
use crate::rules::task::{End, KernelTask};
use crate::rules::task_terms::TaskBudget;

/// The longest an attempt may take when there is no limit, in milliseconds: a day.
const DEADLINE_MS_MAX: u64 = 24 * 60 * 60 * 1_000;

/// What one attempt is launched with.
#[derive(Debug)]
pub(super) struct Setup {
    /// Who works.
    pub(super) profile: AgentProfile,
    /// The agent program as it was written.
    pub(super) backend: String,
    /// The agent program.
    pub(super) kind: AgentKind,
    /// How it is wanted.
    pub(super) settings: AgentSettings,
    /// What of the workspace it may change.
    pub(super) touch: Touch,
    /// The branch of its work, where it can change anything or begins at a commit of its own.
    pub(super) branch: Option<String>,
    /// The longest it may take, in milliseconds.
    pub(super) deadline_ms: u64,
    /// Which limit the deadline is.
    pub(super) deadline: Deadline,
    /// What it may use.
    pub(super) budget: TaskBudget,
    /// What a person should know, as sentences.
    pub(super) notes: Vec<String>,
}

/// Which limit of time is the nearest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deadline {
    /// The timeout of the request.
    Timeout,
    /// The time of its budget.
    Budget,
}

/// Resolves a task.
pub(super) fn resolve(performer: &Performer<'_>, task: &KernelTask) -> Result<Setup, End> {
    let request = &task.request;
    let root = performer.project.layout.root();
    let profiles = profile_file::discover(root, root, &performer.setting.person);
    let profile = profiles.find(&request.agent).map_err(|unknown| {
        let fault = unknown.fault.as_ref().map(|fault| format!("; {fault}"));
        not_launched(format!("failed to {unknown}{}", fault.unwrap_or_default()))
    })?;
    let backend = request.backend.clone().or_else(|| profile.backend.clone());
    let backend = backend.or_else(|| performer.terms.default_backend.clone());
    let level = performer.setting.level;
    let there = || asking::default_agent(&performer.grants, level).map(str::to_owned);
    let Some(backend) = backend.or_else(there) else {
        return Err(ending::not_launched_but(
            format!(
                "failed to find an agent for {}: the request, the profile and the configuration name \
                 none, and none can start here",
                profile.name
            ),
            "`kapi doctor --agents` shows what each needs.",
        ));
    };
    let kind =
        AgentKind::parse(&backend).map_err(|error| ending::refused(&failure::agent(&error)))?;
    let mut notes = Vec::new();
    let settings = settings(performer, task, profile, &kind, &mut notes)?;
    let touch = touch(task, profile);
    let budget = request.budget;
    let branch = wants_branch(performer, task, touch).then(|| branch(performer, task));
    let timeout_ms = match request.timeout_ms {
        0 => DEADLINE_MS_MAX,
        timeout_ms => timeout_ms,
    };
    let (deadline_ms, deadline) = match budget.time_ms {
        Some(time_ms) if time_ms <= timeout_ms => (time_ms, Deadline::Budget),
        Some(_) | None => (timeout_ms, Deadline::Timeout),
    };
    Ok(Setup {
        profile: profile.clone(),
        backend,
        kind,
        settings,
        touch,
        branch: branch.transpose()?,
        deadline_ms,
        deadline,
        budget,
        notes,
    })
}

/// Tells whether an attempt gets a branch. Whoever only reads must see the same commit on every
/// machine; where there are no branches, the changes stay in the sandbox.
fn wants_branch(performer: &Performer<'_>, task: &KernelTask, touch: Touch) -> bool {
    task.request.base.is_some()
        || touch == Touch::Workspace
            && has_branches(&performer.grants, performer.project.layout.root())
}

/// A read-only profile, and a read-only loop, both keep their agent from writing.
fn touch(task: &KernelTask, profile: &AgentProfile) -> Touch {
    let of_loop = task.loop_run().map(|run| run.definition.workspace);
    match (profile.access, of_loop) {
        (Access::ReadOnly, _) | (_, Some(WorkspaceMode::ReadOnly)) => Touch::Nothing,
        (Access::Write, Some(WorkspaceMode::Branch) | None) => Touch::Workspace,
    }
}

/// Returns a branch that nobody has: neither a person, nor another queue of the same repository, whose
/// tasks have the same numbers.
fn branch(performer: &Performer<'_>, task: &KernelTask) -> Result<String, End> {
    let root = performer.project.layout.root();
    let survey = RepositorySurvey::of(&performer.grants, root).ok();
    let is_free = |name: &String| {
        let is_free = survey.as_ref().map(|survey| survey.branch_is_free(name));
        is_free.and_then(Result::ok).unwrap_or(true)
    };
    let names = branch_names(performer, task);
    let tried = names.join(", ");
    names.into_iter().find(is_free).ok_or_else(|| {
        ending::not_launched_but(
            format!("failed to find a free branch for its work: {tried} cannot be made"),
            "rename what is in their way, such as a branch named kapi, with `git branch -m`.",
        )
    })
}

/// Returns what the branch of a task may be called, the one that is wanted most first.
pub(super) fn branch_names(performer: &Performer<'_>, task: &KernelTask) -> Vec<String> {
    let name = match task.loop_run() {
        Some(run) => format!("kapi/{}-{}", run.name(), task.id),
        None => format!("kapi/{}", task.id),
    };
    let unique = format!("{name}-{:x}", task.submitted_at_ms);
    let last = format!("{unique}-{}", task.attempts);
    // Linked worktrees share their branches and each has a queue of its own.
    let is_linked = performer.project.layout.root().join(".git").is_file();
    let names = [name, unique, last].into_iter();
    names.skip(usize::from(is_linked)).collect()
}

fn settings(
    performer: &Performer<'_>,
    task: &KernelTask,
    profile: &AgentProfile,
    kind: &AgentKind,
    notes: &mut Vec<String>,
) -> Result<AgentSettings, End> {
    let mut settings = performer.grants.settings(kind);
    let terms = &performer.terms;
    let of_backend = terms.backends.get(kind.name());
    let model = task.request.model.clone().or_else(|| profile.model.clone());
    let model = model.or_else(|| of_backend?.model.clone());
    let model = model.or_else(|| terms.default_model.clone());
    if let Some(model) = model {
        let provider = of_backend.and_then(|terms| terms.provider.as_deref());
        let model = match (kind, provider) {
            // Pi alone has several, and names them before the model.
            (AgentKind::Pi, Some(provider)) if !model.contains('/') => {
                format!("{provider}/{model}")
            }
            (_, _) => model,
        };
        // A person's own program is not told; its profile may be another agent's.
        if !matches!(kind, AgentKind::Command(_) | AgentKind::Script(_)) {
            models::choose(&mut settings, kind, &model)
                .map_err(|error| ending::refused(&failure::agent(&error)))?;
        }
    }
    if let Some(tools) = &profile.tools {
        let flags = tool_flags(kind.name(), tools, &[]);
        settings.args.extend(flags.arguments);
        let mut loose = flags.sandbox_only;
        if flags.settings.is_some() {
            // Its own settings file is the adapter's; what writes is held by the sandbox.
            loose = AgentTool::ALL
                .iter()
                .filter(|tool| !tools.contains(tool))
                .cloned()
                .collect();
        }
        if !loose.is_empty() && matches!(kind, AgentKind::Codex | AgentKind::Gemini) {
            notes.push(format!(
                "{} cannot be configured without {}; only the sandbox restricts it.",
                kind.name(),
                names(&loose)
            ));
        }
        if !flags.not_there.is_empty() {
            let names = names(&flags.not_there);
            notes.push(format!("{} has no tool for {names}.", kind.name()));
        }
    }
    Ok(settings)
}

fn names(tools: &[AgentTool]) -> String {
    let names: Vec<&str> = tools.iter().map(AgentTool::name).collect();
    names.join(", ")
}
