//! Directories into which nobody else may look.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use kapi_core::failure::Failure;

use crate::failure;

/// Makes a directory and its missing parents for the owner's eyes alone.
pub fn make_private(dir: &Path) -> Result<(), Failure> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|error| failure::file("create", dir, &error))
}
