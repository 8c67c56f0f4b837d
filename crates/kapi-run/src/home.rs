//! An agent's private home: the files its CLI wants, put where the agent cannot lead them astray.
//!
//! The agent owns this directory between turns, so nothing in it is trusted.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

use kapi_agent::launch::{AgentLaunch, HomeFile};
use kapi_core::failure::Failure;
use kapi_git::owned_dir;

use crate::failure;
use crate::grant::lending;
use crate::host_grants::HostGrants;

/// Makes a home anew, whatever was left in an earlier one.
pub fn make_anew(path: &Path) -> Result<PathBuf, Failure> {
    owned_dir::wipe(path).map_err(|error| failure::plain(&error))?;
    fs::create_dir_all(path).map_err(|error| failure::file("create", path, &error))?;
    Ok(path.to_path_buf())
}

/// Puts the files a CLI wants into its private home.
pub fn furnish(home: &Path, launch: &AgentLaunch, grants: &HostGrants) -> Result<(), Failure> {
    fs::create_dir_all(home).map_err(|error| failure::file("create", home, &error))?;
    for file in &launch.files {
        write_home_file(home, file)?;
    }
    for relative in &launch.login_files {
        let from = grants.home.join(relative);
        let to = home.join(relative);
        if from.is_file() && !to.exists() {
            let content = fs::read(&from).map_err(|error| failure::file("read", &from, &error))?;
            write_home_file(
                home,
                &HomeFile {
                    path: relative.clone(),
                    content,
                    mode: 0o600,
                },
            )?;
        }
    }
    lending::lend(&grants.grant.home_copies, &grants.home, home)
}

/// Puts a file into a private home, whatever is at its place.
pub fn write_home_file(home: &Path, file: &HomeFile) -> Result<(), Failure> {
    let path = home_path(home, &file.path)?;
    let failed = |error: std::io::Error| failure::file("write", &path, &error);
    // A new file each time: the agent may have left anything here, a link that leads elsewhere too.
    owned_dir::wipe(&path).map_err(|error| failure::plain(&error))?;
    let mut options = fs::OpenOptions::new();
    let mut handle = options
        .write(true)
        .create_new(true)
        .mode(file.mode)
        .open(&path)
        .map_err(failed)?;
    handle.write_all(&file.content).map_err(failed)
}

/// Makes room for a mount in the home: what an agent left in the way, a link or a file, goes.
pub(crate) fn make_capacity(
    home: &Path,
    relative: &Path,
    is_directory: bool,
) -> Result<(), Failure> {
    let path = home_path(home, relative)?;
    let is_in_the_way = fs::symlink_metadata(&path)
        .is_ok_and(|found| found.is_symlink() || found.is_dir() != is_directory);
    if is_in_the_way {
        owned_dir::wipe(&path).map_err(|error| failure::plain(&error))?;
    }
    Ok(())
}

/// Makes the directories that a file of the home needs. Whatever the agent put in their place goes:
/// a link is removed and not followed.
fn home_path(home: &Path, relative: &Path) -> Result<PathBuf, Failure> {
    let mut path = home.to_path_buf();
    let mut components = relative.components().peekable();
    while let Some(component) = components.next() {
        if !matches!(component, Component::Normal(_)) {
            return Err(Failure {
                message: format!("write {} into the agent's home", relative.display()),
                hint: None,
            });
        }
        path.push(component);
        if components.peek().is_none() {
            break;
        }
        if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
            owned_dir::wipe(&path).map_err(|error| failure::plain(&error))?;
            fs::create_dir(&path).map_err(|error| failure::file("create", &path, &error))?;
        }
    }
    Ok(path)
}
