//! Reads the table of ecosystems that comes with Kapi, once for a process.
//!
//! Knows its notation and nothing of what it says.

use std::sync::OnceLock;

use kapi_core::failure::Failure;
use kapi_run::failure;

use crate::rules::proof::ecosystem::{EcosystemTable, TABLE};
use crate::rules::proof::role::Ecosystems;

/// Returns the table.
///
/// # Errors
/// When it cannot be read: a fault of this program.
pub fn table() -> Result<&'static EcosystemTable, Failure> {
    static READ: OnceLock<Result<EcosystemTable, String>> = OnceLock::new();
    let read = READ.get_or_init(|| toml::from_str(TABLE).map_err(|error| failure::chain(&error)));
    read.as_ref().map_err(|error| Failure {
        message: format!("read the table of ecosystems: {error}"),
        hint: None,
    })
}

/// Returns what its patterns say of the files of a project.
///
/// # Errors
/// When the table cannot be read.
pub(crate) fn rules() -> Result<&'static Ecosystems, Failure> {
    static RULES: OnceLock<Ecosystems> = OnceLock::new();
    let table = table()?;
    Ok(RULES.get_or_init(|| Ecosystems::from(table)))
}
