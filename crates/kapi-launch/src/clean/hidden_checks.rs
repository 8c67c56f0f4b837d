//! The hidden checks of goals that are gone from their project.
//!
//! Those of a goal that has ended stay: it may be reopened, and is proved by them again.

use std::path::Path;
use std::{fs, io};

use kapi_git::owned_dir;
use kapi_run::failure;

use super::{CleanAction, CleanTarget, TargetKind};
use crate::error::LaunchError;
use crate::look::size;

/// The most goals whose checks are looked at.
const GOALS_MAX: usize = 100_000;

/// Looks at the hidden checks of a project and says which of them would go.
///
/// # Errors
/// When they cannot be listed.
pub fn survey(
    hidden_dir: &Path,
    project: &Path,
    is_goal: &dyn Fn(&str) -> bool,
) -> Result<Vec<CleanTarget>, LaunchError> {
    let listed = match fs::read_dir(hidden_dir) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failure::file("list", hidden_dir, &error).into()),
    };
    let mut things = Vec::new();
    for entry in listed.take(GOALS_MAX) {
        let entry = entry.map_err(|error| failure::file("list", hidden_dir, &error))?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if !is_goal(&name) {
            things.push(CleanTarget {
                what: TargetKind::HiddenChecks,
                name,
                project: Some(project.to_path_buf()),
                path: entry.path(),
                bytes: size(&entry.path()),
                disposition: CleanAction::Goes("its goal no longer exists".to_owned()),
            });
        }
    }
    Ok(things)
}

/// Removes them.
pub(super) fn remove(thing: &CleanTarget) -> Result<(), LaunchError> {
    owned_dir::wipe(&thing.path).map_err(|error| LaunchError::failed(&error))
}
