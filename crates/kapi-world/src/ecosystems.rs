//! Reads the table of ecosystems that comes with Kapi.
//!
//! Knows its notation and nothing of what it says.

use kapi_core::goal::outcome::Failure;
use kapi_core::proof::ecosystem::{TABLE, Table};

use crate::failure;

/// Returns the table.
///
/// # Errors
/// When it cannot be read: a fault of this program.
pub fn table() -> Result<Table, Failure> {
    toml::from_str(TABLE).map_err(|error| Failure {
        message: format!("read the table of ecosystems: {}", failure::chain(&error)),
        hint: None,
    })
}
