//! `kapi sandbox list`: one line for each sandbox.

use kapi_launch::look;
use kapi_launch::look::SandboxDetails;
use kapi_launch::record::WorkspaceKind;
use kapi_status::file::{SandboxMode, timestamp};
use kapi_sys::clock::Clock as _;
use serde::Serialize;

use super::super::launch::is_json;
use crate::amount;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subject::launches::sandboxes;
use crate::subject::launches::standing::end_abandoned;

/// Options of `kapi sandbox list`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {}

#[derive(Debug, Serialize)]
pub(crate) struct SandboxView {
    id: String,
    project: String,
    branch: Option<String>,
    mode: SandboxMode,
    workspace: WorkspaceKind,
    level: String,
    agent: String,
    state: &'static str,
    changed: usize,
    bytes: u64,
    created_at: String,
    updated_at: String,
    launches: u32,
    port_base: u16,
    exit_code: Option<i32>,
    error: Option<String>,
    commit: Option<String>,
    pushed: Option<String>,
    pr_url: Option<String>,
    sandbox: String,
}

/// Lists the sandboxes.
pub(crate) fn run(context: &Context, _args: &Args) -> Result<Exit, Error> {
    let listed = look::list(&sandboxes(context)).map_err(|error| Error::launch(&error))?;
    let mut views = Vec::new();
    for listed in &listed {
        end_abandoned(context, &listed.location)?;
        match &listed.found {
            Ok(known) => views.push((
                view(known, listed.location.dir().display().to_string()),
                known,
            )),
            Err(error) => {
                let id = listed.location.id().as_str();
                context
                    .ui
                    .say(&format!("note: sandbox {id}: failed to {}", error.message));
            }
        }
    }
    if is_json(context) {
        let views: Vec<SandboxView> = views.into_iter().map(|(view, _)| view).collect();
        context.ui.json(&views);
        return Ok(Exit::Success);
    }
    if views.is_empty() {
        context
            .ui
            .line("There are no sandboxes. Create one with `kapi launch <id> <project>`.");
        return Ok(Exit::Success);
    }
    let now_ms = context.clock.now_ms();
    context.ui.line(&row([
        "ID", "STATE", "FILES", "LEVEL", "CHANGED", "SIZE", "AGE", "BRANCH", "PROJECT",
    ]));
    for (view, known) in &views {
        let age = u64::try_from(now_ms - known.record.updated_at_ms).unwrap_or_default();
        context.ui.line(&row([
            &view.id,
            view.state,
            files_word(view.workspace),
            &view.level,
            &view.changed.to_string(),
            &size(view.bytes),
            &amount::duration(age),
            view.branch.as_deref().unwrap_or("-"),
            &view.project,
        ]));
    }
    Ok(Exit::Success)
}

/// Returns what is told of a sandbox.
pub(crate) fn view(known: &SandboxDetails, sandbox: String) -> SandboxView {
    let record = &known.record;
    let branch = record.branch.as_ref();
    SandboxView {
        id: record.id.clone(),
        project: record.project.display().to_string(),
        branch: branch.map(|branch| branch.name.clone()),
        mode: record.mode,
        workspace: record.made,
        level: record.level.to_string(),
        agent: record.agent.clone(),
        state: known.state,
        changed: known.n_changed,
        bytes: known.bytes,
        created_at: timestamp(record.created_at_ms),
        updated_at: timestamp(record.updated_at_ms),
        launches: record.launches,
        port_base: record.port_base,
        exit_code: record.exit_code,
        error: record.error.clone(),
        commit: branch.and_then(|branch| branch.commit.clone()),
        pushed: branch.and_then(|branch| branch.pushed.clone()),
        pr_url: branch.and_then(|branch| branch.pr_url.clone()),
        sandbox,
    }
}

/// Returns where the files of a sandbox are, in a word.
const fn files_word(workspace: WorkspaceKind) -> &'static str {
    match workspace {
        WorkspaceKind::Layer => "layer",
        WorkspaceKind::Checkout => "worktree",
    }
}

fn row(cells: [&str; 9]) -> String {
    let [id, state, mode, level, changed, size, age, branch, project] = cells;
    format!(
        "{id:<12} {state:<9} {mode:<9} {level:<7} {changed:>7} {size:>9} {age:>8}  {branch:<24} {project}"
    )
}

/// Returns bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(shift, _)| bytes >> shift > 0);
    unit.map_or_else(
        || format!("{bytes} B"),
        |(shift, name)| format!("{} {name}", bytes >> shift),
    )
}
