//! What a layer holds before anybody worked in it: what covers a person's uncommitted files.
//!
//! Put there so that an agent sees its branch and not them. It differs from the project, and is
//! nobody's work: noted when it is made, so that it can be told from what an agent changed, without
//! git, whatever killed the launch.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use kapi_git::layer::walk::{self, LayerWalk};
use kapi_git::layer::{Layer, Marks};
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;
use sha2::{Digest as _, Sha256};

use super::error::LaunchError;
use super::paths::SandboxPaths;
use super::record::SandboxRecord;

/// The note, in the sandbox's directory.
const NOTE: &str = "masked";
/// Bytes of a note.
const NOTE_BYTES_MAX: u64 = 256;

/// Notes what a layer holds that nobody has worked in yet.
pub(crate) fn note(
    location: &SandboxPaths,
    record: &SandboxRecord,
    layer: &Layer,
) -> Result<(), LaunchError> {
    let walk = walk::walk(layer, &record.project).map_err(|error| LaunchError::failed(&error))?;
    let text = print(layer, &walk);
    let written = RealDisk.write(&location.dir().join(NOTE), text.as_bytes());
    written.map_err(|error| LaunchError::failed(&error))
}

/// Tells whether a layer holds what it held before anybody worked in it, and nothing else.
pub(crate) fn is_all(location: &SandboxPaths, layer: &Layer, walk: &LayerWalk) -> bool {
    let path = location.dir().join(NOTE);
    let is_small = fs::symlink_metadata(&path)
        .is_ok_and(|found| found.is_file() && found.len() <= NOTE_BYTES_MAX);
    let noted = is_small.then(|| fs::read_to_string(&path).ok()).flatten();
    walk.refused.is_empty() && noted.is_some_and(|noted| noted == print(layer, walk))
}

/// Tells the same of a sandbox; what cannot be read may hold anything.
pub(crate) fn is_all_of(location: &SandboxPaths, record: &SandboxRecord) -> bool {
    if !location.dir().join(NOTE).exists() {
        return false;
    }
    let Ok(layer) = Layer::open(&location.layer(), Marks::User, "kapi") else {
        return false;
    };
    walk::walk(&layer, &record.project).is_ok_and(|walk| is_all(location, &layer, &walk))
}

/// Returns what cannot stay the same when anything in the layer is changed: the time of a change to
/// a file is the kernel's to set.
fn print(layer: &Layer, walk: &LayerWalk) -> String {
    let mut digest = Sha256::new();
    for change in &walk.changes {
        digest.update(format!("{:?} {:?}", change.path, change.kind));
        digest.update(seen(&layer.upper().join(&change.path)));
    }
    let digits: Vec<String> = digest
        .finalize()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    digits.concat()
}

fn seen(path: &Path) -> String {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => format!(" {}\n", found.ino()),
        Ok(found) => format!(
            " {} {} {}.{}\n",
            found.ino(),
            found.len(),
            found.ctime(),
            found.ctime_nsec()
        ),
        Err(_) => "\n".to_owned(),
    }
}
