//! The commits of a task, between the machines that share a queue: the one it begins at goes to
//! whoever works on it, and the one it ends with comes back.
//!
//! Where the kernel is kept in files nothing travels. A branch here moves only forward and never
//! under anybody's files; what has no branch to go to is kept under a ref of Kapi's.

use std::path::Path;

use kapi_git::id::{CommitId, RefPart};
use kapi_git::repository::Repository;
use kapi_launch::branch::{local, refuse_checked_out};
use kapi_run::failure::chain;
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session::RepositorySession;
use kapi_sys::cancel::Cancel;

use super::Performer;
use crate::record::bundles::{WorkBundle, WorkBundles};
use crate::record::store::KernelStore;
use crate::rules::task::KernelTask;

/// The most parcels that are opened for one commit.
const BUNDLES_MAX: u32 = 4_096;
/// Digits of a project's first commit that are its name.
const NAME_DIGITS: usize = 24;
/// What every branch of a task begins with.
const BRANCHES: &str = "kapi/";

/// Why a commit could not be had or offered, as a sentence without its period.
pub type Lack = String;

/// What became of the commit that a task ended with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitReturn {
    /// There is none, or nothing has to travel.
    Nothing,
    /// It is on this branch.
    Branch(String),
    /// It is here, and on no branch, because its task did not end well.
    HeldBack {
        /// The ref that keeps it.
        reference: String,
    },
    /// It is here, and no branch could be moved to it.
    Aside {
        /// The ref that keeps it.
        reference: String,
    },
}

/// What travels for one project, and the repository it is of.
struct TravelStore {
    repository: Repository,
    bundles: WorkBundles,
}

impl TravelStore {
    /// Opens what is needed; `None` where nothing travels, or there is no repository with a commit.
    fn open(grants: &HostGrants, root: &Path, store: &KernelStore) -> Result<Option<Self>, Lack> {
        let bundles = WorkBundles::open(store).map_err(|error| failed(&error))?;
        let Some(bundles) = bundles.filter(|_| root.join(".git").exists()) else {
            return Ok(None);
        };
        let repo = RepositorySession::open(grants, root, &Cancel::new());
        let repo = repo.map_err(|failure| format!("failed to {}", failure.message))?;
        Ok(Some(Self {
            repository: repo.repository,
            bundles,
        }))
    }

    /// Offers a commit with everything below it that is not offered yet.
    fn send(&self, tip: &CommitId) -> Result<(), Lack> {
        let there = self.bundles.parents(tip.as_str());
        if there.map_err(|error| failed(&error))?.is_some() {
            return Ok(());
        }
        let names = self.bundles.names().map_err(|error| failed(&error))?;
        let known: Vec<CommitId> = names
            .iter()
            .filter_map(|name| CommitId::parse(name).ok())
            .collect();
        let parents = self.repository.nearest(tip, &known);
        let parents = parents.map_err(|error| failed(&error))?;
        let bytes = self.repository.bundle(tip, &parents);
        let work_bundle = WorkBundle {
            parents: parents.iter().map(|id| id.as_str().to_owned()).collect(),
            bytes: bytes.map_err(|error| failed(&error))?,
        };
        let sent = self.bundles.send(tip.as_str(), &work_bundle);
        sent.map_err(|error| failed(&error))
    }

    /// Has a commit here, with everything it builds on, under a ref, whose name is returned.
    fn receive(&self, tip: &CommitId, kept_as: &RefPart) -> Result<String, Lack> {
        let mut open = vec![tip.clone()];
        for _ in 0..BUNDLES_MAX {
            let Some(next) = open.last().cloned() else {
                let kept = self.repository.keep(tip, kept_as);
                return kept.map_err(|error| failed(&error));
            };
            let lacking = self.lacking(&next)?;
            if lacking.is_empty() {
                self.take(&next, kept_as)?;
                open.pop();
            } else {
                open.extend(lacking);
            }
        }
        Err(format!("commit {tip} has too many ancestors to transfer"))
    }

    /// Returns what has to be here before a commit can come.
    fn lacking(&self, tip: &CommitId) -> Result<Vec<CommitId>, Lack> {
        if self.is_here(tip)? {
            return Ok(Vec::new());
        }
        let parents = self.bundles.parents(tip.as_str());
        let parents = parents.map_err(|error| failed(&error))?;
        let parents = parents.ok_or_else(|| nobody_has(tip))?;
        let parsed: Result<Vec<CommitId>, _> =
            parents.iter().map(|name| CommitId::parse(name)).collect();
        let parsed = parsed.map_err(|error| failed(&error))?;
        let here = self.repository.present(&parsed);
        let here = here.map_err(|error| failed(&error))?;
        Ok(parsed.into_iter().filter(|id| !here.contains(id)).collect())
    }

    fn take(&self, tip: &CommitId, kept_as: &RefPart) -> Result<(), Lack> {
        if self.is_here(tip)? {
            return Ok(());
        }
        let work_bundle = self.bundles.receive(tip.as_str());
        let work_bundle = work_bundle.map_err(|error| failed(&error))?;
        let work_bundle = work_bundle.ok_or_else(|| nobody_has(tip))?;
        let taken = self.repository.unbundle(tip, &work_bundle.bytes, kept_as);
        taken.map(drop).map_err(|error| failed(&error))
    }

    fn is_here(&self, tip: &CommitId) -> Result<bool, Lack> {
        let present = self.repository.present(std::slice::from_ref(tip));
        Ok(!present.map_err(|error| failed(&error))?.is_empty())
    }

    /// Moves the branch that the worker named, or one beside it, to the commit.
    fn publish(
        &self,
        task: &KernelTask,
        branch: &str,
        tip: &CommitId,
    ) -> Result<Option<String>, Lack> {
        let beside = format!("{branch}-{:x}", task.submitted_at_ms);
        for name in [branch, beside.as_str()] {
            if self.forward(name, tip)? {
                return Ok(Some(name.to_owned()));
            }
        }
        Ok(None)
    }

    /// Moves a branch forward to the commit; tells whether it is there.
    fn forward(&self, name: &str, tip: &CommitId) -> Result<bool, Lack> {
        let is_valid = self.repository.is_valid_branch(name);
        if !name.starts_with(BRANCHES) || !is_valid.map_err(|error| failed(&error))? {
            return Ok(false);
        }
        let before = local(&self.repository, name);
        if before.as_ref() == Some(tip) {
            return Ok(true);
        }
        if let Some(before) = &before {
            let is_behind = self.repository.is_ancestor(before, tip);
            let is_free = refuse_checked_out(&self.repository, name, Path::new("")).is_ok();
            if !is_behind.map_err(|error| failed(&error))? || !is_free {
                return Ok(false);
            }
        }
        // Whoever was faster has put something there: that is theirs.
        let moved = self.repository.forward_branch(name, before.as_ref(), tip);
        Ok(moved.is_ok() || local(&self.repository, name).as_ref() == Some(tip))
    }
}

/// Returns what tells a project from others, the same in every clone of it.
///
/// # Errors
/// When there is no repository with a commit, or its history is cut short.
pub fn project_name(grants: &HostGrants, root: &Path) -> Result<String, Lack> {
    let repo = RepositorySession::open(grants, root, &Cancel::new());
    let repo = repo.map_err(|failure| format!("failed to {}", failure.message))?;
    let first = repo.repository.first_commit();
    let first = first.map_err(|error| failed(&error))?;
    let first = first.ok_or_else(|| "this is a shallow clone".to_owned())?;
    let digits = first.as_str().get(..NAME_DIGITS);
    Ok(format!("repo-{}", digits.unwrap_or(first.as_str())))
}

/// Offers the commit that a task begins at: the one that is named, or the one that is checked out;
/// where nothing travels, a commit that is checked out is not named either.
///
/// # Errors
/// When it cannot be offered.
pub fn offer_base(
    grants: &HostGrants,
    root: &Path,
    store: &KernelStore,
    named: Option<&str>,
) -> Result<Option<String>, Lack> {
    let Some(station) = TravelStore::open(grants, root, store)? else {
        return Ok(named.map(str::to_owned));
    };
    let head = station.repository.resolve_commit(named.unwrap_or("HEAD"));
    let head = head.map_err(|error| failed(&error))?;
    station.send(&head)?;
    Ok(Some(head.as_str().to_owned()))
}

/// Brings the commit that a task ended with here, and onto its branch. May be repeated.
///
/// # Errors
/// When it cannot be had.
pub fn bring_home(
    grants: &HostGrants,
    root: &Path,
    store: &KernelStore,
    task: &KernelTask,
) -> Result<CommitReturn, Lack> {
    let work = task.report.as_deref().map(|report| &report.work);
    let Some((work, branch, tip)) = work.and_then(|work| {
        let branch = work.branch.as_deref()?;
        Some((work, branch, work.commit.as_deref()?))
    }) else {
        return Ok(CommitReturn::Nothing);
    };
    let Some(station) = TravelStore::open(grants, root, store)? else {
        return Ok(CommitReturn::Nothing);
    };
    let tip = CommitId::parse(tip).map_err(|error| failed(&error))?;
    let reference = station.receive(&tip, &ref_part(&task.id.to_string())?)?;
    if work.is_held_back() {
        return Ok(CommitReturn::HeldBack { reference });
    }
    Ok(match station.publish(task, branch, &tip)? {
        Some(branch) => CommitReturn::Branch(branch),
        None => CommitReturn::Aside { reference },
    })
}

/// Has what an attempt builds on here: the commit the task begins at, and the one that an earlier
/// attempt left for this one to go on with.
pub(super) fn arrive(performer: &Performer<'_>, task: &KernelTask) -> Result<(), Lack> {
    let Some(base) = &task.request.base else {
        return Ok(());
    };
    let root = performer.project.layout.root();
    let Some(station) = TravelStore::open(&performer.grants, root, &performer.store)? else {
        if !performer.store.is_shared() {
            // It is here, or the launch says that it is not.
            return Ok(());
        }
        let location = root.display();
        return Err(format!(
            "there is no git repository in {location} to put commit {base} into"
        ));
    };
    let left = task.report.as_deref();
    let left = left.and_then(|report| report.work.commit.as_ref());
    for (commit, name) in [(Some(base), "base"), (left, "work")] {
        let Some(commit) = commit else { continue };
        let commit = CommitId::parse(commit).map_err(|error| failed(&error))?;
        let kept_as = ref_part(&format!("{}-{name}", task.id))?;
        station.receive(&commit, &kept_as)?;
    }
    Ok(())
}

/// Offers the commit that an attempt left.
pub(super) fn depart(
    performer: &Performer<'_>,
    task: &KernelTask,
    commit: Option<&str>,
) -> Result<(), Lack> {
    let (Some(_), Some(commit)) = (&task.request.base, commit) else {
        return Ok(());
    };
    let root = performer.project.layout.root();
    let Some(station) = TravelStore::open(&performer.grants, root, &performer.store)? else {
        return Ok(());
    };
    let commit = CommitId::parse(commit).map_err(|error| failed(&error))?;
    station.send(&commit)
}

fn ref_part(text: &str) -> Result<RefPart, Lack> {
    RefPart::parse(text).map_err(|error| failed(&error))
}

fn nobody_has(tip: &CommitId) -> Lack {
    format!("commit {tip} is not available here, and no machine has offered it")
}

pub(super) fn failed(error: &dyn std::error::Error) -> Lack {
    format!("failed to {}", chain(error))
}
