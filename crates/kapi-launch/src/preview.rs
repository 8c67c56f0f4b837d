//! What a launch would do, told without doing it.
//!
//! Makes, fetches and writes nothing.

use kapi_run::host_grants::HostGrants;
use kapi_status::file::SandboxMode;

use super::branch::RemoteQuery;
use super::decide;
use super::error::{LaunchError, LaunchErrorKind};
use super::inputs::LaunchInputs;
use super::plan::LaunchPlan;
use super::record::WorkspaceKind;

/// What a launch would do.
#[derive(Debug)]
pub struct LaunchPreview {
    /// The chosen mode.
    pub mode: SandboxMode,
    /// How the workspace would be made, as far as is known without asking the remote.
    pub made: WorkspaceKind,
    /// The commit a branch would begin at, likewise.
    pub start: Option<String>,
    /// What the person should know, as sentences.
    pub notes: Vec<String>,
    /// Whether an earlier launch of this id would be gone on with.
    pub goes_on: bool,
}

/// Tells what a launch would do; makes, fetches and writes nothing.
///
/// # Errors
/// With what would keep the launch from starting.
pub fn preview(grants: &HostGrants, plan: &LaunchPlan) -> Result<LaunchPreview, LaunchError> {
    let scene = LaunchInputs::of(grants, plan)?;
    if let Some(owner) = plan.location.holder()? {
        let message = format!(
            "sandbox {} is in use by {owner}",
            plan.location.id().as_str()
        );
        return Err(LaunchError::new(
            LaunchErrorKind::Busy,
            message,
            "wait until it ends.",
        ));
    }
    let decided = decide::decide(grants, plan, &scene, RemoteQuery::Nobody)?;
    Ok(LaunchPreview {
        mode: scene.chosen.mode,
        made: decided.made,
        start: decided.beginning.map(|found| found.start.to_string()),
        notes: decided.notes,
        goes_on: decided.goes_on,
    })
}
