//! The branch of a task's work: held back under a ref of Kapi's until the task has ended well, so that
//! nobody meets it in `git branch` before; then the person's.
//!
//! Where it did not end well, the work stays where it is held.

use std::collections::BTreeMap;

use kapi_git::id::CommitId;
use kapi_git::ref_name::{HELD_REFS, is_held, shown_name};
use kapi_git::repository::Repository;
use kapi_git::rescue::batch::Refs;
use kapi_launch::branch::local;
use kapi_launch::error::LaunchError;
use kapi_launch::paths::SandboxId;
use kapi_run::repository_session::RepositorySession;
use kapi_sys::cancel::Cancel;

use super::Performer;
use super::setup::branch_names;
use super::travel::{Lack, failed};
use crate::rules::task::{AttemptChanges, End, KernelTask};

/// Digits of a project's key that tell its tasks from those of another queue of the repository.
const KEY_DIGITS: usize = 12;

/// Returns the digits by which the refs of a project's tasks are told from those of another queue.
pub(super) fn queue_digits(project_key: &str) -> &str {
    let from = project_key.len().saturating_sub(KEY_DIGITS);
    project_key.get(from..).unwrap_or_default()
}

/// Returns the name under which an attempt's branch is held back.
pub(super) fn name(project_key: &str, attempt: &SandboxId, branch: &str) -> String {
    format!("{}{}/{branch}", of_queue(project_key), attempt.as_str())
}

/// Returns what the names of all branches begin with that are held back for a project's tasks.
pub(super) fn of_queue(project_key: &str) -> String {
    format!("{HELD_REFS}{}-", queue_digits(project_key))
}

/// Returns the branches that are held back for a task of a project.
pub(super) fn of_task(
    repository: &Repository,
    project_key: &str,
    task: &KernelTask,
) -> Result<BTreeMap<String, CommitId>, LaunchError> {
    let begins = format!("{}{}-", of_queue(project_key), task.id);
    let all = repository.refs_at(HELD_REFS.trim_end_matches('/'));
    let all = all
        .map_err(|error| LaunchError::failed(&error))?
        .into_iter();
    Ok(all.filter(|(name, _)| name.starts_with(&begins)).collect())
}

impl Performer<'_> {
    /// Gives the work of a task that ended well its own branch. May be repeated.
    pub(super) fn give_branch(
        &self,
        task: &KernelTask,
        end: &End,
        work: &mut AttemptChanges,
    ) -> Result<(), Lack> {
        let held = work.branch.clone().filter(|name| is_held(name));
        let (End::Completed, Some(held), Some(commit)) = (end, held, &work.commit) else {
            return Ok(());
        };
        let tip = CommitId::parse(commit).map_err(|error| failed(&error))?;
        let root = self.project.layout.root();
        let repo = RepositorySession::open(&self.grants, root, &Cancel::new());
        let repo = repo.map_err(|failure| format!("failed to {}", failure.message))?;
        let repository = &repo.repository;
        let mut names = vec![shown_name(&held).to_owned()];
        names.extend(branch_names(self, task));
        // One that was cut off may have made it.
        let made = names
            .iter()
            .find(|name| local(repository, name).as_ref() == Some(&tip));
        let branch = match made {
            Some(made) => made.clone(),
            None => {
                let landed = repository.land_aside(names.into_iter(), &tip);
                match landed.map_err(|error| failed(&error))? {
                    Some(landed) => landed,
                    // Somebody has taken all of them since: it stays where it is.
                    None => return Ok(()),
                }
            }
        };
        if local(repository, &held).as_ref() == Some(&tip) {
            let going = BTreeMap::from([(held, tip)]);
            let dropped = repository.drop_refs(&Refs(going.clone()), &going);
            dropped.map_err(|error| failed(&error))?;
        }
        work.branch = Some(branch);
        Ok(())
    }
}
