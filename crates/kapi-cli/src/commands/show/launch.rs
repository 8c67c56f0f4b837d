//! One launch: where it stands, what it changed, where its work is.
//!
//! What it changed is listed once its agent has ended: until then it still changes.

use kapi_core::text::{counted, shortened};
use kapi_core::usage::Usage;
use kapi_launch::event::LaunchHistory;
use kapi_launch::finish::ChangedPathView;
use kapi_launch::look::SandboxDetails;
use kapi_launch::paths::SandboxPaths;
use kapi_launch::record::{LaunchState, WorkState};
use kapi_launch::{log, look, merge};
use kapi_run::spending::usage_meter::UsageLimits;
use kapi_status::file::ErrorClass;
use kapi_sys::clock::Clock as _;
use serde::Serialize;

use crate::amount;
use crate::commands::sandbox::grants;
use crate::commands::sandbox::list::{self, SandboxView};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subject::launches::standing::end_abandoned;
use crate::ui::Format;

/// Characters of the task that are shown to a person.
const TASK_CHARS_MAX: usize = 200;
/// How many paths are shown to a person.
const PATHS_MAX: usize = 20;

#[derive(Debug, Serialize)]
struct LaunchShowView<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    sandbox: SandboxView,
    /// Who has it now.
    holder: Option<&'a str>,
    /// What its agent was told; unknown where an earlier Kapi launched it.
    task: Option<&'a str>,
    /// The most the last launch may use.
    limits: Option<UsageLimits>,
    /// What its launches that have ended used.
    used: Usage,
    error_class: Option<ErrorClass>,
    advice: Option<&'a str>,
    /// What differs from its start; nothing while somebody has it.
    paths: &'a [ChangedPathView],
    next: &'a [String],
}

/// Shows a launch.
pub(crate) fn show(context: &Context, location: &SandboxPaths) -> Result<Exit, Error> {
    context.require_human("access sandboxes from outside")?;
    end_abandoned(context, location)?;
    let known = look::known(location).map_err(|error| Error::launch(&error))?;
    let history = log::at(location).history().unwrap_or_else(|error| {
        context
            .ui
            .say(&format!("warning: failed to {}.", error.message));
        LaunchHistory::default()
    });
    let holder = location.holder().map_err(|error| Error::launch(&error))?;
    let changed = match &holder {
        Some(_) => Vec::new(),
        None => changed(context, location),
    };
    let next = next(&known, &history, holder.is_some());
    match context.ui.format {
        Format::Json => context.ui.json(&LaunchShowView {
            kind: "launch",
            sandbox: list::view(&known, location.dir().display().to_string()),
            holder: holder.as_deref(),
            task: history
                .request
                .as_ref()
                .map(|request| request.task.as_str()),
            limits: history.request.as_ref().map(|request| request.limits),
            used: history.used,
            error_class: known.record.error_class,
            advice: known.record.advice.as_deref(),
            paths: &changed,
            next: &next,
        }),
        Format::Human => {
            human(context, &known, &history, holder.as_deref());
            paths(context, &known, &changed);
            for command in &next {
                context.ui.line(&format!("  next      {command}"));
            }
        }
    }
    Ok(Exit::Success)
}

/// Returns what differs, as far as that can be told now.
fn changed(context: &Context, location: &SandboxPaths) -> Vec<ChangedPathView> {
    let found = grants(context).and_then(|grants| {
        let now_ms = context.clock.now_ms();
        merge::difference(&grants, location, 0, now_ms).map_err(|error| Error::launch(&error))
    });
    match found {
        Ok(found) => found.changed,
        Err(error) => {
            context.ui.say(&format!("note: {error}"));
            Vec::new()
        }
    }
}

fn human(context: &Context, known: &SandboxDetails, history: &LaunchHistory, holder: Option<&str>) {
    let (ui, record) = (context.ui, &known.record);
    ui.line(&format!("Launch {} is {}.", record.id, known.state));
    let row = |key: &str, text: &str| ui.line(&format!("  {key:<9} {text}"));
    row("project", &record.project.display().to_string());
    row("agent", &record.agent);
    if let Some(request) = &history.request {
        row("task", &shortened(&request.task, TASK_CHARS_MAX));
    }
    if let Some(holder) = holder {
        row("held by", holder);
    }
    if let Some(code) = record.exit_code {
        row("exit code", &code.to_string());
    }
    if let Some(error) = &record.error {
        row("because", error);
    }
    if let Some(advice) = &record.advice {
        row("advice", advice);
    }
    if let Some(cost) = amount::cost(&history.used) {
        row("used", &cost);
    }
    if let Some(branch) = &record.branch {
        let commit = branch.commit.as_deref().map(kapi_core::text::short_id);
        let at = commit.map_or_else(|| "no commit yet".to_owned(), |at| format!("at {at}"));
        row("branch", &format!("{}, {at}", branch.name));
        if branch.pushed.is_some() {
            let to = format!("{} as {}", branch.remote, branch.remote_name);
            row("pushed", &to);
        }
        if let Some(url) = &branch.pr_url {
            row("request", url);
        }
    }
    let launches = usize::try_from(record.launches).unwrap_or(usize::MAX);
    row("launched", &counted(launches, "time"));
    let age_ms = context.clock.now_ms() - record.updated_at_ms;
    let age = amount::duration(u64::try_from(age_ms).unwrap_or_default());
    row("since", &format!("{age} ago"));
    row("size", &list::size(known.bytes));
}

fn paths(context: &Context, known: &SandboxDetails, changed: &[ChangedPathView]) {
    let n = known.n_changed.max(changed.len());
    context
        .ui
        .line(&format!("  changed   {}", counted(n, "path")));
    for change in changed.iter().take(PATHS_MAX) {
        context
            .ui
            .line(&format!("    {:<9} {}", change.change, change.path));
    }
    if changed.len() > PATHS_MAX {
        let more = changed.len() - PATHS_MAX;
        context.ui.line(&format!("    and {more} more"));
    }
}

fn next(known: &SandboxDetails, history: &LaunchHistory, is_held: bool) -> Vec<String> {
    let (record, id) = (&known.record, &known.record.id);
    if is_held {
        return vec![
            format!("kapi log launch/{id} -f"),
            format!("kapi wait launch/{id}"),
            format!("kapi cancel launch/{id}"),
        ];
    }
    let mut next = Vec::new();
    let is_resumable = history
        .request
        .as_ref()
        .is_some_and(|request| !request.command.is_empty());
    let has_ended_well = record.state == LaunchState::Finished && record.exit_code == Some(0);
    if is_resumable && !has_ended_well {
        next.push(format!("kapi resume launch/{id}"));
    }
    next.extend([
        format!("kapi diff launch/{id}"),
        format!("kapi log launch/{id}"),
    ]);
    match (&record.branch, record.work) {
        (Some(branch), WorkState::Committed) if branch.commit.is_some() => {
            next.push(format!("git merge {}", branch.name));
        }
        (Some(_), _) => {}
        (None, _) => next.push(format!("kapi sandbox merge {id}")),
    }
    next.push(format!("kapi sandbox discard {id}"));
    next
}
