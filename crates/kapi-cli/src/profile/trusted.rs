//! The files of projects whose content the person trusts, by the hash of it.
//!
//! Kept in the person's state directory, which no sandbox shows. A file that changed by one byte is
//! another content.

use std::path::{Path, PathBuf};

use kapi_store::layout::HomeLayout;
use kapi_sys::disk::{Disk as _, create_dir_durably, replace_durably};
use kapi_sys::real_disk::RealDisk;

use crate::error::Error;

/// Returns the hashes of what is trusted.
pub(crate) fn hashes(home: &Path) -> Result<Vec<String>, Error> {
    let dir = directory(home);
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let names = RealDisk.list(&dir);
    names.map_err(|error| Error::failed(&error))
}

/// Trusts a content; the path says for people which file had it.
pub(crate) fn add(home: &Path, hash: &str, path: &Path) -> Result<(), Error> {
    let dir = directory(home);
    let made = create_dir_durably(&RealDisk, home, &dir);
    made.map_err(|error| Error::failed(&error))?;
    let text = format!("{}\n", path.display());
    let written = replace_durably(&RealDisk, &dir.join(hash), text.as_bytes());
    written.map_err(|error| Error::failed(&error))
}

fn directory(home: &Path) -> PathBuf {
    HomeLayout::new(home).state_dir().join("trusted-profiles")
}
