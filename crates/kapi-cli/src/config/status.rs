//! `[status]`: how progress is shown.

use std::path::PathBuf;

use kapi_settings::setting::Setting;
use serde::Deserialize;

/// `[status]`, from the person's file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct StatusTable {
    /// The table from tool calls to phases.
    pub(super) mapping: Option<Setting<PathBuf>>,
}
