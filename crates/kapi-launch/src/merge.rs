//! What a sandbox changed: shown, taken over into the project, or dropped.
//!
//! Taking over overwrites nothing that changed in the project since; dropping keeps what git can
//! keep. Each holds the sandbox while it looks.

pub mod deceptive_text;
pub mod gate;

mod deletions;
mod merge_report;

use std::collections::BTreeSet;
use std::path::PathBuf;

use kapi_core::deletions::Deletions;
use kapi_git::apply::offers::{self, LayerOffers};
use kapi_git::apply::{self, ApplyError, ApplyOffer, ApplyPlan, OnConflict, Preview};
use kapi_git::id::CommitId;
use kapi_git::layer::walk::{self, LayerChangeKind, LayerWalk};
use kapi_git::layer::{Layer, changes};
use kapi_git::owned_dir;
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session;
use kapi_status::perform::writer as status;
use kapi_sys::cancel::Cancel;
use kapi_sys::clock::{Clock as _, SystemClock};
use serde::Serialize;

use self::deceptive_text::DeceptiveText;
use self::gate::AutoRun;
use self::merge_report::{HeldBackFiles, both_sides, merged, why_held};
use super::error::{LaunchError, LaunchErrorKind};
use super::event::LaunchEvent;
use super::finish::{self, ChangedPathView, SandboxWork, changed};
use super::inputs::ground;
use super::paths::SandboxPaths;
use super::record::{self, SandboxRecord, WorkState, WorkspaceKind};
use super::{log, prepare, removal};
use crate::pruned;

/// What a sandbox changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The paths.
    pub changed: Vec<ChangedPathView>,
    /// What is never taken over, and why.
    pub left_out: Vec<String>,
    /// Those of the paths that run by themselves.
    pub auto_run: Vec<AutoRun>,
    /// Lines that are not what they seem.
    pub deceptive: Vec<DeceptiveText>,
    /// The patch; foreign bytes.
    #[serde(skip)]
    pub patch: Vec<u8>,
    /// Whether the patch goes on after its last byte here, or leaves large files out.
    pub is_cut: bool,
}

/// What is to be taken over.
#[derive(Debug, Clone)]
pub struct MergePlan {
    /// Which paths; none is all.
    pub select: Vec<String>,
    /// The links that may lead out of the project.
    pub links_out: BTreeSet<PathBuf>,
    /// What to do about conflicts, and about what is held back.
    pub conflicts: Conflicts,
    /// What to do about files that run by themselves.
    pub auto_run: RiskyChanges,
    /// What to do where much of the project would be deleted.
    pub mass_deletion: RiskyChanges,
    /// Whether only to tell.
    pub rehearsal: Rehearsal,
}

/// What to do about paths that cannot be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflicts {
    /// Take nothing over.
    Refuse,
    /// Take the rest over.
    Skip,
    /// Take the rest over, and write texts with the marks of a conflict in them.
    Mark,
}

/// What to do about what a person looks at first: files that run by themselves, a mass deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RiskyChanges {
    /// They are held back.
    Hold,
    /// The person has looked at them: they are taken over like others.
    Open,
}

/// Whether a merge is performed or only reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rehearsal {
    /// It is only reported.
    Only,
    /// It is done.
    No,
}

/// What a merge did, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MergeResult {
    /// Whether anything was written.
    pub applied: bool,
    /// Each path with what happens to it.
    pub paths: Vec<MergedPath>,
    /// How many changes were not selected.
    pub not_selected: usize,
    /// Patterns that match nothing.
    pub unmatched: Vec<String>,
    /// What is never taken over, and why.
    pub left_out: Vec<String>,
    /// How many of the paths cannot be taken over, or are held back.
    pub obstacles: usize,
    /// How many of the paths are held back because they run by themselves.
    pub held: usize,
    /// What it deletes, if that is much of the project.
    pub mass_deletion: Option<Deletions>,
    /// Lines that are not what they seem.
    pub deceptive: Vec<DeceptiveText>,
}

/// One path of a merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MergedPath {
    /// The path.
    pub path: String,
    /// What happens: `create`, `replace`, `delete`, `merge`, `same`, `marked`, `conflict`, `refused`,
    /// `held`.
    pub verdict: &'static str,
    /// Why, for a conflict, a refusal or what is held back.
    pub why: Option<String>,
}

/// Returns the record of a sandbox that must exist.
///
/// # Errors
/// When there is none, or it cannot be read.
pub fn known(location: &SandboxPaths) -> Result<SandboxRecord, LaunchError> {
    SandboxRecord::load(location)?.ok_or_else(|| record::missing(location))
}

/// Shows what a sandbox changed.
///
/// # Errors
/// When it is in use, or cannot be read.
pub fn difference(
    grants: &HostGrants,
    location: &SandboxPaths,
    bytes_max: usize,
    now_ms: i64,
) -> Result<Difference, LaunchError> {
    let record = known(location)?;
    let _held = location.hold_to_read("kapi diff")?;
    if record.branch.is_some() {
        return branch_difference(grants, location, &record, bytes_max, now_ms);
    }
    let layer = prepare::open_layer(location)?;
    let git = repository_session::find_git(grants, &Cancel::new())?;
    let lower = prepare::lower(&record)?;
    let found = changes::changes(&git, &layer, &lower, bytes_max)
        .map_err(|error| LaunchError::failed(&error))?;
    Ok(Difference {
        changed: changed_of(&found.walk),
        left_out: left_out_of(&found.walk),
        auto_run: gate::of_walk(&found.walk, &layer.upper(), &record.project),
        deceptive: deceptive_text::of_patch(&found.patch.bytes),
        is_cut: found.patch.is_cut || !found.omitted.is_empty(),
        patch: found.patch.bytes,
    })
}

fn branch_difference(
    grants: &HostGrants,
    location: &SandboxPaths,
    record: &SandboxRecord,
    bytes_max: usize,
    now_ms: i64,
) -> Result<Difference, LaunchError> {
    let (_, repo) = ground(grants, &record.project)?;
    let (Some(repo), Some(branch)) = (repo, &record.branch) else {
        return Err(gone(record));
    };
    // Of a merge the review is what it changes on the branch.
    let start = branch.merging.as_ref().map_or(&branch.start, |it| &it.ours);
    let start = repository_session::commit_id(start)?;
    let mut left_out = Vec::new();
    let commit = match (&branch.commit, record.work) {
        (Some(commit), WorkState::Committed) => repository_session::commit_id(commit)?,
        (None, WorkState::Committed) => start.clone(),
        (_, WorkState::Pending) => {
            let ready = prepare::found(location, record, Some(&repo))?;
            let work = SandboxWork {
                repo: &repo,
                ready: &ready,
                record,
            };
            let made = work.snapshot("shown", now_ms)?;
            let Some(made) = made else {
                return Err(gone(record));
            };
            let refused = made.refused.iter();
            left_out = refused
                .map(|refused| format!("{}: {}", refused.path.display(), refused.why))
                .collect();
            made.commit
        }
    };
    let repository = &repo.repository;
    let failed = |error: &dyn std::error::Error| LaunchError::failed(error);
    let everything = ["**".to_owned()];
    let changes = repository
        .protected_changes(&start, &commit, &everything)
        .map_err(|error| failed(&error))?;
    let patch = repository
        .patch(&start, &commit, bytes_max)
        .map_err(|error| failed(&error))?;
    let changed: Vec<ChangedPathView> = changes
        .iter()
        .map(|change| changed(&change.path, finish::change_word(change.kind)))
        .collect();
    Ok(Difference {
        auto_run: gate::of_changes(&changed, &patch.bytes),
        deceptive: deceptive_text::of_patch(&patch.bytes),
        changed,
        left_out,
        patch: patch.bytes,
        is_cut: patch.is_cut,
    })
}

fn gone(record: &SandboxRecord) -> LaunchError {
    LaunchError::new(
        LaunchErrorKind::Failed,
        format!(
            "find the repository of sandbox {} at {}",
            record.id,
            record.project.display()
        ),
        "move the project back.",
    )
}

/// Takes what a sandbox changed over into its project.
///
/// # Errors
/// When it has a branch, is in use, or the project could not be changed; nothing was then.
pub fn merge(
    grants: &HostGrants,
    location: &SandboxPaths,
    plan: &MergePlan,
) -> Result<MergeResult, LaunchError> {
    refuse_branch(&known(location)?)?;
    let _held = location.hold("kapi sandbox merge")?;
    let mut record = log::at(location).known()?;
    let layer = prepare::open_layer(location)?;
    let git = repository_session::find_git(grants, &Cancel::new())?;
    let (_, repo) = ground(grants, &record.project)?;
    let lower = prepare::lower(&record)?;
    let walk = walk::walk(&layer, &lower).map_err(|error| LaunchError::failed(&error))?;
    let deceptive = deceptive_text::of_layer(&git, &layer, &lower)?;
    let offered = offered(location, &record, &layer, &walk, repo.is_some())?;
    let held = match plan.auto_run {
        RiskyChanges::Hold => gate::of_walk(&walk, &layer.upper(), &record.project),
        RiskyChanges::Open => Vec::new(),
    };
    let (held_back, offered): (Vec<ApplyOffer>, Vec<ApplyOffer>) = offered
        .into_iter()
        .partition(|offer| why_held(&held, &offer.path).is_some());
    let apply_plan = ApplyPlan {
        git: &git,
        repository: repo.as_ref().map(|repo| &repo.repository),
        project: &record.project,
        work: &location.apply_work(&record.project),
        offers: &offered,
        select: &plan.select,
        links_out: &plan.links_out,
        on_conflict: on_conflict(plan.conflicts),
    };
    let aside = ApplyPlan {
        offers: &held_back,
        ..apply_plan
    };
    let aside = HeldBackFiles {
        preview: apply::preview(&aside).map_err(refused)?,
        held,
    };
    let reported = |preview: &Preview, applied| merged(preview, applied, &walk, &aside);
    let foreseen = || -> Result<MergeResult, LaunchError> {
        let preview = apply::preview(&apply_plan).map_err(refused)?;
        Ok(reported(&preview, false))
    };
    let mass_deletion = match has_deletions(&walk) {
        true => {
            let counted = deletions::count(&record.project, &foreseen()?.paths);
            Some(counted).filter(Deletions::is_mass)
        }
        false => None,
    };
    let is_asked = plan.mass_deletion == RiskyChanges::Hold && mass_deletion.is_some();
    let is_misspelt = !plan.select.is_empty() && !foreseen()?.unmatched.is_empty();
    let must_wait =
        is_asked || is_misspelt || (plan.conflicts == Conflicts::Refuse && aside.n_held() > 0);
    let (preview, applied) = match (plan.rehearsal, must_wait) {
        (Rehearsal::Only, _) | (Rehearsal::No, true) => {
            (apply::preview(&apply_plan).map_err(refused)?, false)
        }
        (Rehearsal::No, false) => match apply::apply(&apply_plan) {
            Ok(applied) => (applied.preview, true),
            Err(ApplyError::Obstacles { preview }) => (preview, false),
            Err(error) => return Err(refused(error)),
        },
    };
    let done = MergeResult {
        mass_deletion,
        deceptive,
        ..reported(&preview, applied)
    };
    if applied {
        note_merged(location, &mut record, layer, &preview)?;
    }
    Ok(done)
}

fn refuse_branch(record: &SandboxRecord) -> Result<(), LaunchError> {
    let Some(branch) = &record.branch else {
        return Ok(());
    };
    Err(LaunchError::new(
        LaunchErrorKind::Denied,
        format!(
            "the work of sandbox {} is on branch {}",
            record.id,
            branch.holder()
        ),
        format!("merge it with `git merge {}`.", branch.holder()),
    ))
}

const fn on_conflict(conflicts: Conflicts) -> OnConflict {
    match conflicts {
        Conflicts::Refuse => OnConflict::Refuse,
        Conflicts::Skip => OnConflict::Skip,
        Conflicts::Mark => OnConflict::Mark,
    }
}

fn has_deletions(walk: &LayerWalk) -> bool {
    let mut kinds = walk.changes.iter().map(|change| change.kind);
    kinds.any(|kind| matches!(kind, LayerChangeKind::Deleted | LayerChangeKind::Replaced))
}

/// Returns what a layer's changes come to as offers to the project.
fn offered(
    location: &SandboxPaths,
    record: &SandboxRecord,
    layer: &Layer,
    walk: &LayerWalk,
    has_repository: bool,
) -> Result<Vec<ApplyOffer>, LaunchError> {
    let began = offers::beginning(&location.began(&record.project)).ok_or_else(|| {
        LaunchError::new(
            LaunchErrorKind::Failed,
            format!("find the start of sandbox {}", record.id),
            "copy what you need from its layer by hand.",
        )
    })?;
    let base = record.below.as_deref().map(CommitId::parse).transpose();
    let base = base.map_err(|error| LaunchError::failed(&error))?;
    offers::layer_offers(
        &LayerOffers {
            upper: &layer.upper(),
            project: &record.project,
            began,
            base: base.as_ref().filter(|_| has_repository),
        },
        walk,
    )
    .map_err(|error| LaunchError::failed(&error))
}

/// Puts on record what is left in a layer; nothing left is a new beginning.
fn note_merged(
    location: &SandboxPaths,
    record: &mut SandboxRecord,
    layer: Layer,
    preview: &Preview,
) -> Result<(), LaunchError> {
    for path in both_sides(preview) {
        // What the agent made of it stands in the project now, with what the person made of it.
        let uncovered = layer.uncover(path);
        uncovered.map_err(|error| LaunchError::failed(&error))?;
    }
    let left = walk::walk(&layer, &prepare::lower(record)?);
    let left = left.map_err(|error| LaunchError::failed(&error))?;
    record.n_changed = left.changes.len();
    if left.changes.is_empty() {
        record.work = WorkState::Committed;
        if left.refused.is_empty() {
            // What comes next is compared with the project as it is now.
            let discarded = layer.discard();
            discarded.map_err(|error| LaunchError::failed(&error))?;
        }
    }
    let merged = LaunchEvent::Merged {
        sandbox: Box::new(record.clone()),
    };
    log::at(location).record(SystemClock.now_ms(), &[merged])
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "given to `map_err`, which hands its error over"
)]
fn refused(error: ApplyError) -> LaunchError {
    match &error {
        ApplyError::Pattern { .. } => LaunchError::new(
            LaunchErrorKind::Usage,
            error.to_string(),
            "patterns are paths in the project, with `*`, `?`, `[…]` and `**`.",
        ),
        _ => LaunchError::failed(&error),
    }
}

/// Removes a sandbox with all it holds; what git can keep is kept under a rescue ref first.
///
/// Returns the lines that bring back what was kept.
///
/// # Errors
/// When it is in use, or something could not be removed.
pub fn discard(
    grants: &HostGrants,
    location: &SandboxPaths,
    now_ms: i64,
) -> Result<Vec<String>, LaunchError> {
    let record = known(location)?;
    let held = location.hold("kapi sandbox discard")?;
    let kept = removal::retire(grants, location, &record, now_ms)?;
    pruned::record(location.state_dir(), [location])?;
    remove(location, &record)?;
    drop(held);
    Ok(kept)
}

/// Removes a sandbox's files; the caller holds it and has kept what is to be kept.
pub(crate) fn remove(location: &SandboxPaths, record: &SandboxRecord) -> Result<(), LaunchError> {
    if record.made == WorkspaceKind::Layer {
        // Waits for whatever is still mounted.
        drop(prepare::open_layer(location)?);
    }
    let status_dir = location.sandboxes().status_dir();
    let listed = status::list(&status_dir).map_err(|error| LaunchError::failed(&error))?;
    for (path, file) in listed {
        let name = record.project.file_name().unwrap_or_default();
        if file.agent_id == record.id && file.project == name.to_string_lossy() {
            status::forget(&path).map_err(|error| LaunchError::failed(&error))?;
        }
    }
    let began = location.began(&record.project);
    for path in [location.worktree(), began, location.dir()] {
        owned_dir::wipe(&path).map_err(|error| LaunchError::failed(&error))?;
    }
    Ok(())
}

pub(crate) fn changed_of(walk: &LayerWalk) -> Vec<ChangedPathView> {
    let word = |kind| match kind {
        LayerChangeKind::Added => "added",
        LayerChangeKind::Modified => "modified",
        LayerChangeKind::Mode => "mode",
        LayerChangeKind::Type => "type",
        LayerChangeKind::Deleted => "deleted",
        LayerChangeKind::Replaced => "replaced",
    };
    let changes = walk.changes.iter();
    changes
        .map(|change| changed(&change.path, word(change.kind)))
        .collect()
}

pub(crate) fn left_out_of(walk: &LayerWalk) -> Vec<String> {
    let refused = walk.refused.iter();
    refused
        .map(|refused| format!("{}: {}", refused.path.display(), refused.why))
        .collect()
}
