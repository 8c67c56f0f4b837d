//! Hidden checks: taken over once at approval, out of everyone's way, and named by their hash.
//!
//! The copy is what is run, so a later change to the directory they came from changes nothing.

use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use kapi_core::goal::contract::Hidden;
use kapi_core::goal::outcome::Failure;
use kapi_git::hidden::{check, copy_hidden};
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;
use sha2::{Digest as _, Sha256};

use crate::failure;

/// Returns the contract's description of a directory of checks.
///
/// # Errors
/// When it cannot be read, or holds no file.
pub fn describe(dir: &Path) -> Result<Hidden, Failure> {
    let files = check(dir).map_err(|error| failure::plain(&error))?;
    if files.paths.is_empty() {
        return Err(Failure {
            message: format!("find hidden checks in {}: it holds no file", dir.display()),
            hint: Some("give a directory of files laid out like the repository.".to_owned()),
        });
    }
    let mut hash = Sha256::new();
    for path in &files.paths {
        add_file(&mut hash, dir, path)?;
    }
    Ok(Hidden {
        source: dir.display().to_string(),
        sha256: hash
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        files: u32::try_from(files.paths.len()).unwrap_or(u32::MAX),
    })
}

/// Copies the checks of an approved contract to where they are kept, unless they are there.
///
/// # Errors
/// When they are not the ones that the contract names.
pub fn keep(hidden: &Hidden, kept: &Path) -> Result<(), Failure> {
    if kept.is_dir() && describe(kept).is_ok_and(|found| found.sha256 == hidden.sha256) {
        return Ok(());
    }
    RealDisk
        .create_dir(kept)
        .map_err(|error| failure::plain(&error))?;
    copy_hidden(Path::new(&hidden.source), kept).map_err(|error| failure::plain(&error))?;
    if describe(kept)?.sha256 == hidden.sha256 {
        Ok(())
    } else {
        Err(Failure {
            message: format!(
                "copy hidden checks: {} is not what the contract names",
                hidden.source
            ),
            hint: Some(
                "the directory changed since the contract was drawn up; start again.".into(),
            ),
        })
    }
}

/// Adds a name, whether it is executable or a link, and the content, each with its length.
fn add_file(hash: &mut Sha256, root: &Path, relative: &Path) -> Result<(), Failure> {
    let path = root.join(relative);
    let name = relative.as_os_str().as_bytes();
    let failed = |error: std::io::Error| failure::file("read", &path, &error);
    let metadata = fs::symlink_metadata(&path).map_err(failed)?;
    hash.update((name.len() as u64).to_be_bytes());
    hash.update(name);
    if metadata.is_symlink() {
        let target = fs::read_link(&path).map_err(failed)?;
        hash.update(b"l");
        hash.update((target.as_os_str().len() as u64).to_be_bytes());
        hash.update(target.as_os_str().as_bytes());
        return Ok(());
    }
    hash.update(if metadata.permissions().mode() & 0o111 == 0 {
        b"f"
    } else {
        b"x"
    });
    hash.update(metadata.len().to_be_bytes());
    let mut file = fs::File::open(&path).map_err(failed)?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = file.read(&mut buffer).map_err(failed)?;
        match buffer.get(..count) {
            Some([]) | None => return Ok(()),
            Some(bytes) => hash.update(bytes),
        }
    }
}
