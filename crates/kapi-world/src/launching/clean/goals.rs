//! Worktrees and working files of goals that have ended.
//!
//! What a goal committed stays: its branch and its refs are not touched. A worktree goes only when
//! its files are those of the goal's last commit.

use std::path::PathBuf;

use kapi_git::owned_dir;
use kapi_sys::cancel::Cancel;

use super::{Fate, Thing, What};
use crate::book::Book;
use crate::launching::error::{Kind, LaunchError};
use crate::launching::look::size;
use crate::place::Place;
use crate::workshop::{self, Workshop};

/// A goal, as far as cleaning up needs to know it.
#[derive(Debug, Clone)]
pub struct GoalFiles {
    /// Its id.
    pub name: String,
    /// Where its files are.
    pub place: Place,
    /// The last commit with its work, or its base.
    pub known: String,
    /// Why nothing of it may go, if the caller knows a reason.
    pub stays: Option<String>,
}

/// Looks at goals and says what of them would go.
#[must_use]
pub fn survey(book: &Book, goals: &[GoalFiles]) -> Vec<Thing> {
    let with_files = goals
        .iter()
        .filter(|goal| goal.place.worktree.exists() || goal.place.scratch.exists());
    let things = with_files.map(|goal| Thing {
        what: What::Goal,
        name: goal.name.clone(),
        project: Some(goal.place.project.clone()),
        path: goal.place.worktree.clone(),
        bytes: size(&goal.place.worktree) + size(&goal.place.scratch),
        fate: match (goal.stays.clone(), unsaved(book, goal)) {
            (Some(why), _) | (None, Ok(Some(why))) => Fate::Stays(why),
            (None, Err(error)) => Fate::Stays(format!("failed to {}", error.message)),
            (None, Ok(None)) => {
                Fate::Goes("its goal has ended and all its work is committed".to_owned())
            }
        },
    });
    things.collect()
}

/// Removes the worktree and the working files of a goal; looks once more before.
///
/// # Errors
/// When they hold uncommitted work by now, or cannot be removed.
pub fn remove(book: &Book, goal: &GoalFiles) -> Result<(), LaunchError> {
    if let Some(why) = goal.stays.clone().or(unsaved(book, goal)?) {
        return Err(LaunchError::new(
            Kind::Denied,
            why,
            "it changed while it was looked at.",
        ));
    }
    let failed = |error: &dyn std::error::Error| LaunchError::failed(error);
    let workshop = Workshop::open(book, &goal.place.project, &Cancel::new())?;
    let part = workshop::ref_part(&goal.place.ref_name)?;
    workshop
        .repository
        .remove_worktree(&part, &goal.place.worktree)
        .map_err(|error| failed(&error))?;
    let scratch: &PathBuf = &goal.place.scratch;
    owned_dir::wipe(scratch).map_err(|error| failed(&error))
}

/// Returns what a worktree holds that is in no commit.
fn unsaved(book: &Book, goal: &GoalFiles) -> Result<Option<String>, LaunchError> {
    let workshop = Workshop::open(book, &goal.place.project, &Cancel::new())?;
    let part = workshop::ref_part(&goal.place.ref_name)?;
    let known = workshop::commit_id(&goal.known)?;
    let repository = &workshop.repository;
    let found = repository
        .find_workspace(&part, &goal.place.worktree)
        .map_err(|error| LaunchError::failed(&error))?;
    let Some(workspace) = found else {
        return Ok(goal.place.worktree.exists().then(|| {
            "its worktree is none of this repository's, so nobody knows what is in it".to_owned()
        }));
    };
    let unsaved = repository
        .unsaved_tree(&workspace, &known)
        .map_err(|error| LaunchError::failed(&error))?;
    Ok(unsaved.map(|_| "its worktree holds uncommitted work".to_owned()))
}
