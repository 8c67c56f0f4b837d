//! How a launch is shown, to people and to programs.
//!
//! The shapes of `--json` are documented in `docs/json.md`.

use kapi_core::text::{counted, short_id};
use kapi_core::usage::Usage;
use kapi_launch::finish::ChangedPathView;
use kapi_launch::plan::LaunchPlan;
use kapi_launch::preview::LaunchPreview;
use kapi_launch::record::{WorkState, WorkspaceKind};
use kapi_launch::result::LaunchResult;
use kapi_status::file::SandboxMode;
use serde::Serialize;

use crate::ui::{Format, Ui};

/// How many paths are shown to a person.
const PATHS_MAX: usize = 20;

#[derive(Debug, Serialize)]
struct LaunchView<'a> {
    id: &'a str,
    project: String,
    mode: SandboxMode,
    workspace: WorkspaceKind,
    level: String,
    network: kapi_core::isolation::NetworkMode,
    isolation: Option<&'a str>,
    agent: &'a str,
    branch: Option<BranchView<'a>>,
    exit_code: i32,
    agent_exit_code: i32,
    error: Option<&'a str>,
    hint: Option<&'a str>,
    message: &'a str,
    usage: Usage,
    changed: &'a [ChangedPathView],
    left_out: &'a [String],
    notes: &'a [String],
    port_base: u16,
    launches: u32,
    sandbox: String,
    worktree: Option<String>,
    status_file: String,
}

#[derive(Debug, Serialize)]
struct BranchView<'a> {
    name: &'a str,
    /// The branch that has the work.
    landed: &'a str,
    start: &'a str,
    commit: Option<&'a str>,
    remote: &'a str,
    remote_branch: &'a str,
    pushed: Option<&'a str>,
    pr_url: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct PreviewView<'a> {
    id: &'a str,
    project: String,
    dry_run: bool,
    mode: SandboxMode,
    workspace: WorkspaceKind,
    level: String,
    network: kapi_core::isolation::NetworkMode,
    agent: String,
    branch: Option<&'a str>,
    start: Option<&'a str>,
    push: bool,
    goes_on: bool,
    sandbox: String,
    notes: &'a [String],
}

/// Shows what a launch would do.
pub(crate) fn preview(ui: Ui, plan: &LaunchPlan, preview: &LaunchPreview) {
    use kapi_launch::plan::Push;
    let branch = plan.branch.as_ref();
    let has_push = branch.is_some_and(|branch| branch.push != Push::No);
    if ui.format == Format::Json {
        ui.json(&PreviewView {
            id: plan.location.id().as_str(),
            project: plan.project.display().to_string(),
            dry_run: true,
            mode: preview.mode,
            workspace: preview.made,
            level: plan.level.to_string(),
            network: plan.network,
            agent: plan.agent.to_string(),
            branch: branch.map(|branch| branch.name.as_str()),
            start: preview.start.as_deref(),
            push: has_push,
            goes_on: preview.goes_on,
            sandbox: plan.location.dir().display().to_string(),
            notes: &preview.notes,
        });
        return;
    }
    for note in &preview.notes {
        ui.say(&format!("note: {note}"));
    }
    ui.line(&format!(
        "Would launch {} in sandbox {}.",
        plan.agent,
        plan.location.id().as_str()
    ));
    ui.line(&format!("  project   {}", plan.project.display()));
    ui.line(&format!(
        "  files     {}",
        made_word(preview.made, branch.is_some())
    ));
    ui.line(&format!("  level     {}", plan.level));
    if let Some(branch) = branch {
        ui.line(&format!("  branch    {}", branch.name));
        if let Some(start) = &preview.start {
            ui.line(&format!(
                "  from      {start}; the remote is checked at launch"
            ));
        }
        let push = if has_push {
            branch.remote.as_str()
        } else {
            "no"
        };
        ui.line(&format!("  push      {push}"));
    }
    ui.line(&format!("  state     {}", plan.location.dir().display()));
    ui.line("Nothing was created. Run it again without `--dry-run`.");
}

/// Shows what came of a launch.
pub(crate) fn launched(ui: Ui, plan: &LaunchPlan, launched: &LaunchResult, notes: &[String]) {
    if ui.format == Format::Json {
        ui.json(&view(plan, launched, notes));
        return;
    }
    let record = &launched.record;
    if !launched.message.trim().is_empty() {
        ui.line(launched.message.trim_end());
        ui.line("");
    }
    let n = launched.changed.len();
    let end = match (&launched.error, launched.exit_code) {
        (None, _) => "ended successfully".to_owned(),
        (Some(_), code) => format!("ended with exit code {code}"),
    };
    ui.line(&format!(
        "Sandbox {} {end}; {} changed.",
        record.id,
        counted(n, "path")
    ));
    for change in launched.changed.iter().take(PATHS_MAX) {
        ui.line(&format!("  {:<9} {}", change.change, change.path));
    }
    if n > PATHS_MAX {
        ui.line(&format!("  and {} more", n - PATHS_MAX));
    }
    for left in launched.left_out.iter().take(PATHS_MAX) {
        ui.line(&format!("  left out  {left}"));
    }
    if let Some(branch) = &record.branch {
        match &branch.commit {
            Some(commit) => ui.line(&format!(
                "Branch {} is at {}.",
                branch.holder(),
                short_id(commit)
            )),
            None => ui.line(&format!("Branch {} has no new commits.", branch.name)),
        }
        if branch.pushed.is_some() {
            ui.line(&format!(
                "Pushed to {} as {}.",
                branch.remote, branch.remote_name
            ));
        }
        if let Some(url) = &branch.pr_url {
            ui.line(&format!("Pull request: {url}"));
        }
    }
    if let Some(error) = &launched.error {
        ui.say(&format!("error: {}", error.message));
        if let Some(hint) = &error.hint {
            ui.say(&format!("hint: {hint}"));
        }
    }
    next(ui, launched);
}

fn next(ui: Ui, launched: &LaunchResult) {
    let record = &launched.record;
    let id = &record.id;
    if launched.changed.is_empty() {
        ui.line(&format!("  next      kapi sandbox discard {id}"));
        return;
    }
    ui.line(&format!("  next      kapi diff launch/{id}"));
    match (&record.branch, record.work) {
        (Some(branch), WorkState::Committed) => {
            ui.line(&format!("            git merge {}", branch.holder()));
        }
        (Some(_), WorkState::Pending) => {}
        (None, _) => ui.line(&format!("            kapi sandbox merge {id}")),
    }
}

fn view<'a>(plan: &LaunchPlan, launched: &'a LaunchResult, notes: &'a [String]) -> LaunchView<'a> {
    let record = &launched.record;
    LaunchView {
        id: &record.id,
        project: record.project.display().to_string(),
        mode: record.mode,
        workspace: record.made,
        level: record.level.to_string(),
        network: record.network,
        isolation: record.grade.as_deref(),
        agent: &record.agent,
        branch: record.branch.as_ref().map(|branch| BranchView {
            name: &branch.name,
            landed: branch.holder(),
            start: &branch.start,
            commit: branch.commit.as_deref(),
            remote: &branch.remote,
            remote_branch: &branch.remote_name,
            pushed: branch.pushed.as_deref(),
            pr_url: branch.pr_url.as_deref(),
        }),
        exit_code: launched.exit_code,
        agent_exit_code: launched.agent_exit_code,
        error: launched.error.as_ref().map(|error| error.message.as_str()),
        hint: launched
            .error
            .as_ref()
            .and_then(|error| error.hint.as_deref()),
        message: &launched.message,
        usage: launched.usage,
        changed: &launched.changed,
        left_out: &launched.left_out,
        notes,
        port_base: record.port_base,
        launches: record.launches,
        sandbox: plan.location.dir().display().to_string(),
        worktree: match record.made {
            WorkspaceKind::Checkout => Some(plan.location.worktree().display().to_string()),
            WorkspaceKind::Layer => None,
        },
        status_file: launched.status_path.display().to_string(),
    }
}

const fn made_word(made: WorkspaceKind, has_branch: bool) -> &'static str {
    match made {
        WorkspaceKind::Layer if has_branch => "a copy-on-write layer over the files of its commit",
        WorkspaceKind::Layer => "a copy-on-write layer over the project",
        WorkspaceKind::Checkout => "a git worktree of its own",
    }
}
