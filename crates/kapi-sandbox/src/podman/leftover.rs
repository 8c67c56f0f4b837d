//! Containers of launchers that were killed: found by our label, judged by the lock of their run
//! directory or by the owner that their label names, never by a name.
//!
//! What cannot be judged is listed and stays. Nothing of a person's work is in a container: its
//! mounts are the host's own directories.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::cleanup::{self, MANAGED, RUN_DIRECTORY, ask};
use super::error::PodmanError;
use super::host::PodmanHost;
use super::options::check_name;
use super::owner::{LauncherIdentity, Liveness, OWNER};
use super::run_directory::{self, RunDirectoryState};

/// The label with the name of the run.
const RUN: &str = "kapi.run";

/// A container whose launcher is not known to live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftoverContainer {
    /// Podman's id of it.
    pub id: String,
    /// The run that it was made for.
    pub run: String,
    /// When it was made, in seconds since the epoch.
    pub created_s: i64,
    /// Whether it may be removed.
    pub state: LeftoverState,
    directory: String,
}

/// Whether a container may be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftoverState {
    /// Its launcher is dead.
    Deserted,
    /// Nobody can tell from here whether its launcher lives.
    Unknown,
}

/// A container as podman lists it.
#[derive(Debug, Deserialize)]
struct ListedContainer {
    #[serde(rename = "Id")]
    id: String,
    #[serde(rename = "Created")]
    created_s: i64,
    #[serde(rename = "Labels", default)]
    labels: Option<BTreeMap<String, String>>,
}

/// Lists the containers of ours whose launcher is not known to live.
///
/// # Errors
/// When there is no podman, or it does not answer.
pub fn list() -> Result<Vec<LeftoverContainer>, PodmanError> {
    let host = PodmanHost::observe()?;
    let managed = format!("label={MANAGED}");
    let question = ["ps", "--all", "--filter", &managed, "--format", "json"];
    let answer = ask(&host, "ps", &question)?;
    let listed: Vec<ListedContainer> =
        serde_json::from_str(&answer).map_err(|error| PodmanError::Said {
            command: "ps",
            output: format!("its answer cannot be read: {error}"),
        })?;
    let mut found = Vec::new();
    for one in listed {
        let labels = one.labels.unwrap_or_default();
        let label = |name: &str| labels.get(name).cloned().unwrap_or_default();
        let directory = label(RUN_DIRECTORY);
        let Some(state) = state(&host, &directory, &label(OWNER))? else {
            continue;
        };
        found.push(LeftoverContainer {
            id: one.id,
            run: label(RUN),
            created_s: one.created_s,
            state,
            directory,
        });
    }
    Ok(found)
}

/// Decides about one container; `None` for that of a launcher that lives.
fn state(
    host: &PodmanHost,
    directory: &str,
    owner: &str,
) -> Result<Option<LeftoverState>, PodmanError> {
    match run_directory::state(host, directory)? {
        RunDirectoryState::InUse => return Ok(None),
        RunDirectoryState::Abandoned => return Ok(Some(LeftoverState::Deserted)),
        // Made under another runtime directory, or before this machine was started.
        RunDirectoryState::Missing => {}
    }
    let Some(owner) = LauncherIdentity::parse(owner) else {
        return Ok(Some(LeftoverState::Unknown));
    };
    Ok(match owner.life()? {
        Liveness::Alive => None,
        Liveness::Dead => Some(LeftoverState::Deserted),
        Liveness::OutOfSight => Some(LeftoverState::Unknown),
    })
}

/// Removes a deserted container by its id, with its layers' volumes and its run directory, after a second look.
///
/// # Errors
/// When its launcher may live after all, or podman cannot remove it.
pub fn collect(id: &str) -> Result<(), PodmanError> {
    let host = PodmanHost::observe()?;
    let left = match list()?.into_iter().find(|one| one.id == id) {
        // Somebody else has cleared it away meanwhile.
        None => return Ok(()),
        Some(one) if one.state == LeftoverState::Deserted => one,
        Some(one) => {
            return Err(PodmanError::Refused {
                what: "deserted",
                value: one.id,
                why: "its launcher may still be running elsewhere",
            });
        }
    };
    cleanup::remove_container(&host, &left.directory, &left.run, &|| true)?;
    if check_name(&left.directory).is_ok() {
        cleanup::remove_layers(&host, &left.directory)?;
    }
    run_directory::sweep(&host).map(drop)
}
