//! Containers of launchers that were killed.
//!
//! Nothing of anybody's work is in one, so none is precious; whose launcher may live is not touched.

use std::ffi::OsStr;
use std::path::PathBuf;

use kapi_run::failure;
use kapi_run::host_grants::HostGrants;
use kapi_sandbox::podman::leftover::{self, LeftoverContainer};
use kapi_sys::process;

use super::{CleanAction, CleanPlan, CleanTarget, TargetKind};
use crate::error::LaunchError;

/// Lists what podman keeps for launchers that do not live any more; nothing where there is no podman.
pub(super) fn survey(grants: &HostGrants, plan: &CleanPlan) -> Vec<CleanTarget> {
    if process::find_in_path(OsStr::new("podman"), &grants.path_variable()).is_none() {
        return Vec::new();
    }
    match leftover::list() {
        Ok(found) => found.iter().map(|left| thing(left, plan)).collect(),
        Err(error) => {
            let why = format!("failed to {}", failure::chain(&error));
            vec![about(
                "podman".to_owned(),
                PathBuf::new(),
                CleanAction::Stays(why),
            )]
        }
    }
}

/// Removes a container that goes.
pub(super) fn remove(thing: &CleanTarget) -> Result<(), LaunchError> {
    let id = thing.path.to_string_lossy();
    leftover::collect(&id).map_err(|error| LaunchError::failed(&error))
}

fn thing(left: &LeftoverContainer, plan: &CleanPlan) -> CleanTarget {
    let made_ms = left.created_s.saturating_mul(1000);
    let is_younger = plan.used_before_ms.is_some_and(|before| made_ms >= before);
    let disposition = match left.state {
        leftover::LeftoverState::Unknown => {
            CleanAction::Stays("its launcher may still be running elsewhere".to_owned())
        }
        leftover::LeftoverState::Deserted if is_younger => {
            CleanAction::Stays("it was used recently".to_owned())
        }
        leftover::LeftoverState::Deserted => {
            CleanAction::Goes("its launcher was killed".to_owned())
        }
    };
    about(left.run.clone(), PathBuf::from(&left.id), disposition)
}

const fn about(name: String, path: PathBuf, disposition: CleanAction) -> CleanTarget {
    CleanTarget {
        what: TargetKind::Container,
        name,
        project: None,
        path,
        bytes: 0,
        disposition,
    }
}
