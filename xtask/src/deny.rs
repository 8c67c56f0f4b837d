//! Licences, advisories, bans and sources of every dependency, through cargo-deny.
//!
//! Stands beside the gate: it needs the advisory database, which an offline machine cannot have.

use std::path::Path;

use anyhow::bail;

use crate::tool::{ToolCommand, find};

/// Runs cargo-deny over the workspace.
///
/// # Errors
/// When it is not installed, or finds something.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    if find("cargo-deny").is_none() {
        bail!("find cargo-deny: install it with `cargo install --locked cargo-deny`");
    }
    ToolCommand::new(root, "cargo", &["deny", "--locked", "check"]).run()
}
