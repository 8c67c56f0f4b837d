//! Worktrees and working files of goals and workflows that have ended.
//!
//! What one committed stays: its branch and its refs are not touched, but for the branch of a workflow's
//! task, which nobody merges. A worktree goes only when its files are those of the last commit; that of a workflow also only when what is checked out in the
//! person's repository holds the work of its branch.

use std::path::PathBuf;
use std::{fs, io};

use kapi_check::perform::dependencies::snapshot;
use kapi_git::id::{CommitId, RefPart};
use kapi_git::owned_dir;
use kapi_git::rescue::{RescueError, RescueName};
use kapi_run::goal_paths::GoalPaths;
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session::RepositorySession;
use kapi_run::{failure, repository_session};

use super::known::{KnownRepositories, KnownRepository, RepositoryQuestions};
use super::{CleanAction, CleanTarget, TargetKind};
use crate::error::{LaunchError, LaunchErrorKind};
use crate::look::size;

/// The directory below the scratch in which it is tried whether a merge would bring anything.
const MERGE_DIRECTORY: &str = "merge-tried";

/// Whose files they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAttribution {
    /// A goal's.
    Goal,
    /// A goal's that worked on a task of a workflow: what it made is in the workflow's branch, and its
    /// commits stay under its own refs.
    Task {
        /// Its branch, which goes with its worktree.
        branch: String,
    },
    /// A workflow's.
    Workflow {
        /// Its branch, if it came to one.
        branch: Option<String>,
    },
}

/// A goal or workflow, as far as cleaning up needs to know it.
#[derive(Debug, Clone)]
pub struct GoalFiles {
    /// Whose they are.
    pub whose: FileAttribution,
    /// Its id.
    pub name: String,
    /// Where its files are.
    pub location: GoalPaths,
    /// The last commit with its work, or its base.
    pub known: String,
    /// The commit it begins at, whose objects its sandboxes are lent.
    pub base: String,
    /// Why nothing of it may go, if the caller knows a reason.
    pub stays: Option<String>,
}

impl GoalFiles {
    const fn what(&self) -> TargetKind {
        match self.whose {
            FileAttribution::Goal | FileAttribution::Task { .. } => TargetKind::Goal,
            FileAttribution::Workflow { .. } => TargetKind::Workflow,
        }
    }
}

/// Looks at goals and says what of them would go.
#[must_use]
pub fn survey(grants: &HostGrants, goals: &[GoalFiles]) -> Vec<CleanTarget> {
    let with_files = goals
        .iter()
        .filter(|goal| goal.location.worktree.exists() || goal.location.scratch.exists());
    let with_files: Vec<&GoalFiles> = with_files.collect();
    let in_doubt = with_files.iter().filter(|goal| goal.stays.is_none());
    let known = repositories(grants, in_doubt.copied());
    let things = with_files.into_iter().map(|goal| CleanTarget {
        what: goal.what(),
        name: goal.name.clone(),
        project: Some(goal.location.project.clone()),
        path: goal.location.worktree.clone(),
        bytes: size(&goal.location.worktree) + size(&goal.location.scratch),
        disposition: disposition(&known, goal),
    });
    things.collect()
}

/// Asks the repositories of goals, once each.
fn repositories<'a>(
    grants: &HostGrants,
    goals: impl Iterator<Item = &'a GoalFiles>,
) -> KnownRepositories {
    let mut questions = RepositoryQuestions::default();
    for goal in goals {
        let project = &goal.location.project;
        questions.compared(project, &goal.known);
        if let FileAttribution::Workflow {
            branch: Some(branch),
        } = &goal.whose
        {
            questions.branch(project, branch, &goal.known);
            questions.scratch(project, goal.location.scratch.join(MERGE_DIRECTORY));
        }
    }
    KnownRepositories::asked(grants, &questions)
}

fn disposition(known: &KnownRepositories, goal: &GoalFiles) -> CleanAction {
    let why = match goal.stays.clone() {
        Some(why) => Ok(Some(why)),
        None => holds(known, goal),
    };
    match why {
        Ok(Some(why)) => CleanAction::Stays(why),
        Err(error) => CleanAction::Stays(format!("failed to {}", error.message)),
        Ok(None) => CleanAction::Goes(
            match &goal.whose {
                FileAttribution::Goal => "its goal has ended and all its work is committed",
                FileAttribution::Task { .. } => {
                    "its workflow has ended and its commits are kept under refs/kapi"
                }
                FileAttribution::Workflow { .. } => {
                    "its workflow has ended and all its work is merged"
                }
            }
            .to_owned(),
        ),
    }
}

/// Removes the worktree and the working files of a goal or workflow; looks once more before.
///
/// # Errors
/// When they hold work by now that is nowhere else, or cannot be removed.
pub fn remove(grants: &HostGrants, goal: &GoalFiles) -> Result<(), LaunchError> {
    let known = repositories(grants, std::iter::once(goal));
    if let Some(why) = goal.stays.clone().or(holds(&known, goal)?) {
        return Err(LaunchError::new(
            LaunchErrorKind::Denied,
            why,
            "it changed while it was inspected.",
        ));
    }
    let failed = |error: &dyn std::error::Error| LaunchError::failed(error);
    let repo = &known.ground(&goal.location.project)?.repo;
    let part = repository_session::ref_part(&goal.location.ref_name)?;
    repo.repository
        .remove_worktree(&part, &goal.location.worktree)
        .map_err(|error| failed(&error))?;
    if let FileAttribution::Task { branch } = &goal.whose {
        remove_branch(repo, &part, branch)?;
    }
    let scratch: &PathBuf = &goal.location.scratch;
    owned_dir::wipe(scratch).map_err(|error| failed(&error))?;
    let goals = scratch.parent().unwrap_or(scratch);
    snapshot::sweep(goals).map_err(LaunchError::from)
}

/// Removes the branch of a task's goal; one that somebody moved or checked out is theirs, and stays.
fn remove_branch(
    repo: &RepositorySession,
    goal: &RefPart,
    branch: &str,
) -> Result<(), LaunchError> {
    let failed = |error: &dyn std::error::Error| LaunchError::failed(error);
    let name = format!("refs/heads/{branch}");
    let found = repo.repository.refs_at(&name);
    let found = found.map_err(|error| failed(&error))?;
    let Some((_, tip)) = found.into_iter().find(|(other, _)| *other == name) else {
        return Ok(());
    };
    let rescue = RescueName {
        name: goal,
        date: &repository_session::ref_part("task")?,
    };
    match repo.repository.remove_branch(goal, branch, &tip, rescue) {
        Ok(_)
        | Err(
            RescueError::Moved { .. }
            | RescueError::NotOurs { .. }
            | RescueError::CheckedOut { .. },
        ) => Ok(()),
        Err(error) => Err(failed(&error)),
    }
}

/// Removes the private homes of a goal that has ended: no session of theirs goes on, and a copy of the
/// person's log-in may lie in them.
///
/// # Errors
/// When one cannot be removed; [`remove`] tries again.
pub fn remove_homes(location: &GoalPaths) -> Result<(), LaunchError> {
    let listed = match fs::read_dir(&location.scratch) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failure::file("list", &location.scratch, &error).into()),
    };
    for entry in listed.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("home-") || name.ends_with("-home") {
            owned_dir::wipe(&entry.path()).map_err(|error| LaunchError::failed(&error))?;
        }
    }
    Ok(())
}

/// Returns what would be missed if the files went.
fn holds(known: &KnownRepositories, goal: &GoalFiles) -> Result<Option<String>, LaunchError> {
    let ground = known.ground(&goal.location.project)?;
    let at = repository_session::commit_id(&goal.known)?;
    let FileAttribution::Workflow {
        branch: Some(branch),
    } = &goal.whose
    else {
        return unsaved(ground, goal, &at);
    };
    // The person may have gone on with the branch, so it is looked at as it is now.
    let at = ground.tip(branch).unwrap_or(&at);
    if !ground.is_merged(at)? {
        return Ok(Some(format!(
            "its branch {branch} is not merged into the current checkout"
        )));
    }
    unsaved(ground, goal, at)
}

/// Returns what a worktree holds that is in no commit.
fn unsaved(
    ground: &KnownRepository,
    goal: &GoalFiles,
    known: &CommitId,
) -> Result<Option<String>, LaunchError> {
    let part = repository_session::ref_part(&goal.location.ref_name)?;
    let repository = &ground.repo.repository;
    let found = repository
        .find_workspace(&part, &goal.location.worktree)
        .map_err(|error| LaunchError::failed(&error))?;
    let Some(workspace) = found else {
        return Ok(goal.location.worktree.exists().then(|| {
            "its worktree does not belong to this repository, so its content is unknown".to_owned()
        }));
    };
    let has_unsaved = repository
        .has_unsaved(&workspace, known)
        .map_err(|error| LaunchError::failed(&error))?;
    Ok(has_unsaved.then(|| "its worktree contains uncommitted work".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kapi_run::goal_paths::GoalPaths;

    use super::remove_homes;

    #[test]
    fn homes_go_and_what_else_a_goal_keeps_stays() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let location = GoalPaths {
            project: at("project"),
            ref_name: "1".to_owned(),
            worktree: at("worktree"),
            runs: at("runs"),
            hidden: at("hidden"),
            scratch: at("scratch"),
            stores: at("stores"),
        };
        remove_homes(&location).unwrap();
        for dir in [
            "home-claude/.claude",
            "judge-home",
            "verify-home",
            "verify",
            "agent-git",
        ] {
            fs::create_dir_all(location.scratch.join(dir)).unwrap();
        }
        fs::File::create(
            location
                .scratch
                .join("home-claude/.claude/.credentials.json"),
        )
        .unwrap();
        remove_homes(&location).unwrap();
        let names = fs::read_dir(&location.scratch).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["agent-git", "verify"]);
    }
}
