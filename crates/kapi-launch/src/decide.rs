//! Deciding how a workspace is made and whether an earlier one is gone on with, then putting that
//! on record.
//!
//! Deciding only reads, apart from asking a remote. What an earlier launch left is never thrown
//! away while it holds work.

use std::path::PathBuf;

use kapi_core::isolation::SandboxLevel;
use kapi_git::id::CommitId;
use kapi_git::repository::Repository;
use kapi_git::rescue::RescueName;
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session::RepositorySession;

use super::branch::{self, BranchStart, RemoteQuery};
use super::context::LaunchHandlers;
use super::error::{LaunchError, LaunchErrorKind};
use super::event::{LaunchEvent, LaunchRequest};
use super::inputs::LaunchInputs;
use super::merging::MergeSite;
use super::paths::SandboxPaths;
use super::plan::{BranchPlan, Conduct, LaunchPlan, ModeChoice};
use super::record::{BranchRecord, LaunchState, SandboxRecord, VERSION, WorkState, WorkspaceKind};
use super::removal::{kept_notes, retire};
use super::{foreign, log, merging, ports, prepare, shown};

/// Hexadecimal digits of a project's key that its refs repeat.
const KEY_DIGITS: usize = 12;

/// Where a branch begins, with what was decided of the rest.
#[derive(Debug)]
pub(crate) struct LaunchDecision {
    pub(crate) made: WorkspaceKind,
    pub(crate) beginning: Option<BranchStart>,
    pub(crate) notes: Vec<String>,
    pub(crate) goes_on: bool,
}

/// Decides how the launch is made.
pub(crate) fn decide(
    grants: &HostGrants,
    plan: &LaunchPlan,
    scene: &LaunchInputs,
    ask: RemoteQuery,
) -> Result<LaunchDecision, LaunchError> {
    let mut notes = Vec::new();
    if plan.level == SandboxLevel::None {
        let note = "There is no isolation: the agent can read and write everything you can.";
        notes.push(note.to_owned());
    }
    let pending = scene.earlier.as_ref().filter(|earlier| {
        holds_work(earlier, &plan.location) && !is_published(earlier, scene.repo.as_ref())
    });
    if let Some(earlier) = pending {
        return go_on(plan, scene, earlier, notes);
    }
    let (Some(asked), Some(repo), true) = (&plan.branch, &scene.repo, scene.chosen.has_branch)
    else {
        if plan.level == SandboxLevel::Native {
            foreign::refuse(&plan.project)?;
        }
        return Ok(LaunchDecision {
            made: WorkspaceKind::Layer,
            beginning: None,
            notes,
            goes_on: false,
        });
    };
    let repository = &repo.repository;
    branch::refuse_checked_out(repository, &asked.name, &plan.location.worktree())?;
    let mut beginning = branch::beginning(repository, asked, grants, scene.earlier.as_ref(), ask)?;
    notes.append(&mut beginning.notes);
    Ok(LaunchDecision {
        made: workspace(plan),
        beginning: Some(beginning),
        notes,
        goes_on: false,
    })
}

/// Tells whether an earlier launch left something that is nowhere else.
pub(crate) fn holds_work(earlier: &SandboxRecord, location: &SandboxPaths) -> bool {
    match (earlier.state, earlier.work) {
        (LaunchState::Running, _) | (LaunchState::Finished, WorkState::Pending) => {
            match earlier.made {
                WorkspaceKind::Layer => !prepare::is_empty(&location.layer().join("upper")),
                WorkspaceKind::Checkout => location.worktree().is_dir(),
            }
        }
        (LaunchState::Finished, WorkState::Committed) => false,
    }
}

/// Tells whether a launch that was cut off had moved its branch already: then all is in there.
pub(crate) fn is_published(earlier: &SandboxRecord, repo: Option<&RepositorySession>) -> bool {
    let (LaunchState::Running, Some(branch), Some(repo)) = (earlier.state, &earlier.branch, repo)
    else {
        return false;
    };
    let repository = &repo.repository;
    let made = repository.resolve_commit(&format!("refs/kapi/{}/commit", branch.refs));
    made.is_ok_and(|made| branch::local(repository, &branch.name) == Some(made))
}

/// Goes on with what an earlier launch left, if this one is for the same.
fn go_on(
    plan: &LaunchPlan,
    scene: &LaunchInputs,
    earlier: &SandboxRecord,
    mut notes: Vec<String>,
) -> Result<LaunchDecision, LaunchError> {
    let id = plan.location.id().as_str();
    let asked = plan.branch.as_ref().filter(|_| scene.chosen.has_branch);
    let name = |branch: &BranchRecord| branch.name.clone();
    let is_same = earlier.mode == scene.chosen.mode
        && earlier.branch.as_ref().map(name) == asked.map(|branch| branch.name.clone())
        && !(plan.mode == ModeChoice::Worktree && earlier.made == WorkspaceKind::Layer)
        && shown::has_layers(earlier.level) == shown::has_layers(plan.level);
    let hint = format!(
        "review it with `kapi diff launch/{id}`, then launch it again with the same options, \
         merge it with `kapi sandbox merge {id}`, or remove it with `kapi sandbox discard {id}`."
    );
    if earlier
        .branch
        .as_ref()
        .is_some_and(|branch| branch.commit.is_some())
    {
        let message = format!("sandbox {id} was changed after its work was committed");
        let hint = format!(
            "review it with `kapi diff launch/{id}`; `kapi sandbox discard {id}` keeps it under \
             a rescue ref."
        );
        return Err(LaunchError::new(LaunchErrorKind::Denied, message, hint));
    }
    let is_merging = earlier
        .branch
        .as_ref()
        .is_some_and(|it| it.merging.is_some());
    if asked.is_some_and(|branch| branch.merge.is_some()) && !is_merging {
        let message = format!("sandbox {id} contains work that is not committed yet");
        let hint = format!(
            "launch it again without `--merge` first, or remove the work with `kapi sandbox \
             discard {id}`."
        );
        return Err(LaunchError::new(LaunchErrorKind::Denied, message, hint));
    }
    if !is_same {
        let message = format!("sandbox {id} contains work of another launch");
        return Err(LaunchError::new(LaunchErrorKind::Denied, message, hint));
    }
    if earlier.made == WorkspaceKind::Layer
        && earlier.base.is_none()
        && let (Some(branch), Some(repo)) = (&earlier.branch, &scene.repo)
    {
        let head = head(&repo.repository)?;
        if head.as_str() != branch.start {
            let message = format!(
                "sandbox {id} contains work based on commit {}, but {head} is checked out now",
                branch.start
            );
            return Err(LaunchError::new(LaunchErrorKind::Denied, message, hint));
        }
    }
    if is_merging && asked.is_some_and(|branch| branch.keep_commits) {
        let note = "A merge is one commit, so the agent's own commits are not kept.";
        notes.push(note.to_owned());
    }
    notes.push(match earlier.state {
        LaunchState::Running => {
            format!("The last launch of {id} was interrupted; this one continues where it stopped.")
        }
        LaunchState::Finished => {
            format!("Sandbox {id} already contains changes; this launch adds to them.")
        }
    });
    Ok(LaunchDecision {
        made: earlier.made,
        beginning: None,
        notes,
        goes_on: true,
    })
}

fn head(repository: &Repository) -> Result<CommitId, LaunchError> {
    repository
        .resolve_commit("HEAD")
        .map_err(|error| LaunchError::failed(&error))
}

/// Chooses between a layer over a frozen base and a real worktree, for a branch.
pub(crate) const fn workspace(plan: &LaunchPlan) -> WorkspaceKind {
    match (plan.mode, plan.level) {
        (ModeChoice::Worktree, _)
        | (_, SandboxLevel::None)
        | (ModeChoice::Auto, SandboxLevel::Podman) => WorkspaceKind::Checkout,
        (ModeChoice::Auto | ModeChoice::Overlay, SandboxLevel::Native | SandboxLevel::Podman) => {
            WorkspaceKind::Layer
        }
    }
}

/// Puts on record what was decided, after clearing away what an earlier launch no longer needs.
pub(crate) fn settle(
    grants: &HostGrants,
    plan: &LaunchPlan,
    scene: &LaunchInputs,
    decided: &LaunchDecision,
    stage: &LaunchHandlers<'_>,
) -> Result<SandboxRecord, LaunchError> {
    let now_ms = stage.clock.now_ms();
    let _choosing = ports::hold(&plan.location)?;
    let earlier = scene.earlier.as_ref();
    let port_base = ports::choose(&plan.location, earlier.map(|record| record.port_base))?;
    let launches = earlier.map_or(0, |record| record.launches) + 1;
    if let Some(commit) = decided
        .beginning
        .as_ref()
        .and_then(|found| found.set_aside.as_ref())
    {
        set_aside(plan, scene, commit, now_ms)?;
    }
    if let (Some(earlier), false) = (earlier, decided.goes_on) {
        clear(grants, plan, earlier, now_ms, stage)?;
    }
    let branch = match (decided.goes_on, &decided.beginning, &plan.branch) {
        (true, _, asked) => continued(earlier, asked.as_ref()),
        (false, Some(beginning), Some(asked)) => {
            let mut branch = new_branch(plan, asked, beginning, launches);
            if let (Some(revision), Some(repo)) = (&asked.merge, &scene.repo) {
                let at = MergeSite {
                    grants,
                    plan,
                    repo,
                    stage,
                };
                merging::begin(&at, revision, &mut branch)?;
            }
            Some(branch)
        }
        (false, _, _) => None,
    };
    let below = scene.repo.as_ref().map(below).transpose()?;
    let base = base(plan, scene, decided, branch.as_ref())?;
    let record = SandboxRecord {
        version: VERSION,
        id: plan.location.id().as_str().to_owned(),
        project: plan.project.clone(),
        mode: scene.chosen.mode,
        made: decided.made,
        level: plan.level,
        network: plan.network,
        agent: plan.agent.to_string(),
        branch,
        base,
        below: match (decided.goes_on, earlier) {
            (true, Some(earlier)) => earlier.below.clone(),
            (_, _) => below,
        },
        port_base,
        launches,
        state: LaunchState::Running,
        work: WorkState::Pending,
        created_at_ms: earlier.map_or(now_ms, |record| record.created_at_ms),
        updated_at_ms: now_ms,
        exit_code: None,
        error: None,
        error_class: None,
        advice: None,
        grade: None,
        n_changed: earlier.map_or(0, |record| record.n_changed),
    };
    log::at(&plan.location).record(now_ms, &[launched(plan, &record)])?;
    Ok(record)
}

/// Returns the branch of an earlier launch, with what is to become of it now.
fn continued(earlier: Option<&SandboxRecord>, asked: Option<&BranchPlan>) -> Option<BranchRecord> {
    let mut branch = earlier?.branch.clone()?;
    if let Some(asked) = asked {
        branch.push = asked.push;
        branch.keep_commits = asked.keep_commits && branch.merging.is_none();
    }
    Some(branch)
}

fn launched(plan: &LaunchPlan, record: &SandboxRecord) -> LaunchEvent {
    LaunchEvent::Launched {
        sandbox: Box::new(record.clone()),
        request: Box::new(LaunchRequest {
            task: plan.prompt.clone(),
            command: plan.command.clone(),
            limits: plan.limits,
            deadline_ms: plan.deadline_ms,
            is_interactive: plan.conduct == Conduct::Interactive,
        }),
    }
}

/// Makes the frozen base that a new layer lies over; one that is gone on with keeps its own.
fn base(
    plan: &LaunchPlan,
    scene: &LaunchInputs,
    decided: &LaunchDecision,
    branch: Option<&BranchRecord>,
) -> Result<Option<PathBuf>, LaunchError> {
    if decided.goes_on {
        return Ok(scene
            .earlier
            .as_ref()
            .and_then(|earlier| earlier.base.clone()));
    }
    match (decided.made, branch, &scene.repo) {
        (WorkspaceKind::Layer, Some(branch), Some(repo)) => {
            let base = prepare::freeze(&plan.location, &repo.repository, &branch.start)?;
            Ok(Some(base.dir))
        }
        (_, _, _) => Ok(None),
    }
}

/// Keeps a commit that the branch is about to leave behind.
fn set_aside(
    plan: &LaunchPlan,
    scene: &LaunchInputs,
    commit: &CommitId,
    now_ms: i64,
) -> Result<(), LaunchError> {
    let (Some(repo), Some(asked)) = (&scene.repo, &plan.branch) else {
        return Ok(());
    };
    let (name, date) = branch::rescue_parts(&asked.name, now_ms)?;
    let rescue = RescueName {
        name: &name,
        date: &date,
    };
    let kept = repo.repository.keep_commit(rescue, commit);
    kept.map(drop).map_err(|error| LaunchError::failed(&error))
}

fn below(repo: &RepositorySession) -> Result<String, LaunchError> {
    head(&repo.repository).map(|commit| commit.to_string())
}

fn clear(
    grants: &HostGrants,
    plan: &LaunchPlan,
    earlier: &SandboxRecord,
    now_ms: i64,
    stage: &LaunchHandlers<'_>,
) -> Result<(), LaunchError> {
    let kept = retire(grants, &plan.location, earlier, now_ms)?;
    for text in kept_notes(&kept) {
        (stage.notice)(kapi_machine::watch::Activity::Note { text });
    }
    if earlier.made == WorkspaceKind::Layer {
        let layer = prepare::open_layer(&plan.location)?;
        layer
            .discard()
            .map_err(|error| LaunchError::failed(&error))?;
    }
    Ok(())
}

fn new_branch(
    plan: &LaunchPlan,
    asked: &BranchPlan,
    beginning: &BranchStart,
    launches: u32,
) -> BranchRecord {
    let key = plan.location.project_key();
    let digits = key.get(key.len().saturating_sub(KEY_DIGITS)..);
    let digits = digits.unwrap_or_default();
    let refs = format!("launch-{digits}-{}-{launches}", plan.location.id().as_str());
    BranchRecord {
        name: asked.name.clone(),
        remote: asked.remote.clone(),
        remote_name: asked.remote_name.clone(),
        push: asked.push,
        start: beginning.start.to_string(),
        keep_commits: asked.keep_commits,
        local: beginning.local.as_ref().map(ToString::to_string),
        stand_in: beginning.local.is_some().then(|| format!("kapi/{refs}")),
        refs,
        merging: None,
        _masks: (),
        commit: None,
        landed: None,
        pushed: None,
        pr_url: None,
    }
}
