//! A repository's own settings of an agent's CLI, which are kept out of a run.

use std::path::Path;

use kapi_agent::agent::AgentKind;
use kapi_core::failure::Failure;
use kapi_sandbox::spec::Mount;

use crate::confine::{self, WORKSPACE_INSIDE};
use crate::run_dir::RunDir;

/// Where Gemini's settings of a repository are.
pub const GEMINI_SETTINGS: &str = ".gemini/settings.json";

/// Covers the repository's own settings of a CLI that would run what they name at its start.
///
/// Gemini lets them outrank ours; the others have a switch that the adapter uses.
pub fn settings_hidden(
    kind: &AgentKind,
    workspace: &Path,
    run_dir: &RunDir,
) -> Result<Vec<Mount>, Failure> {
    let relative = Path::new(GEMINI_SETTINGS);
    let is_plain = |path: &Path| !path.is_symlink() && path.exists();
    let is_there = is_plain(&workspace.join(".gemini")) && is_plain(&workspace.join(relative));
    if *kind != AgentKind::Gemini || !is_there {
        return Ok(Vec::new());
    }
    run_dir.keep("no-settings.json", b"{}")?;
    let inside = Path::new(WORKSPACE_INSIDE).join(relative);
    Ok(vec![confine::read_only(
        &run_dir.file("no-settings.json"),
        &inside,
    )])
}
