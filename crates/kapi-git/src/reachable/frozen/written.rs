//! Which tracked files may differ from a frozen base: those that the layer over it has touched.
//!
//! Answers git's question what to look at (`core.fsmonitor`), so that it asks the kernel about these
//! alone. Whatever is in doubt is named: a file that is named for nothing costs one look.

use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, fgetxattr, statat};

use crate::layer::beneath::{self, DirectoryRoot};
use crate::layer::lower::names_in;
use crate::repository::ObjectFormat;
use crate::repository::index_file::IndexFile;

/// The most entries of a layer that are looked at: beyond, git looks at everything by itself.
const ENTRIES_MAX: usize = 500_000;
/// The mark of a directory that hides what lies below it.
const OPAQUE: &str = "user.overlay.opaque";
/// What git is told that the answer is of; it is always of everything since the base.
pub const TOKEN: &str = "kapi";

/// Returns the paths of an index that a layer may have changed, by the bytes of their names; nothing
/// when that cannot be told.
///
/// Every file beside which something was made or removed is among them: of a file that was made and
/// removed again nothing is left but its directory.
#[must_use]
pub fn touched(upper: &Path, index: &Path) -> Option<Vec<Vec<u8>>> {
    let formats = [ObjectFormat::Sha1, ObjectFormat::Sha256];
    let index = formats
        .iter()
        .find_map(|format| IndexFile::read(index, *format))?;
    let layer = TouchedPaths::of(upper)?;
    let mut touched = Vec::new();
    let mut last: Option<(&[u8], bool)> = None;
    for entry in index.entries() {
        let path = entry.path();
        let parent = parent(path);
        let is_in_touched = match last {
            Some((known, is_touched)) if known == parent => is_touched,
            _ => layer.has_changed(parent),
        };
        last = Some((parent, is_in_touched));
        if is_in_touched {
            touched.push(path.to_vec());
        }
    }
    Some(touched)
}

/// What is in a layer, by the bytes of the paths.
#[derive(Debug, Default)]
struct TouchedPaths {
    /// Directories: what is directly in them may have changed.
    dirs: BTreeSet<Vec<u8>>,
    /// Whatever hides all that lies below: files, links, marks and opaque directories.
    hiding: BTreeSet<Vec<u8>>,
}

impl TouchedPaths {
    fn of(upper: &Path) -> Option<Self> {
        let root = DirectoryRoot::open(upper).ok()?;
        let mut found = Self::default();
        let mut n_entries = 0;
        let mut waiting = vec![PathBuf::new()];
        while let Some(dir) = waiting.pop() {
            let opened = root.dir(&dir).ok()?;
            let bytes = dir.as_os_str().as_bytes().to_vec();
            if !bytes.is_empty() && is_opaque(&opened) {
                found.hiding.insert(bytes.clone());
            }
            found.dirs.insert(bytes);
            let names = names_in(&opened).ok()?;
            n_entries += names.len();
            if n_entries > ENTRIES_MAX {
                return None;
            }
            for name in names {
                let kind = statat(&opened, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
                let is_directory = beneath::kind(&kind) == FileType::Directory;
                let path = dir.join(&name);
                let hides = (!is_directory).then(|| path.as_os_str().as_bytes().to_vec());
                found.hiding.extend(hides);
                waiting.extend(is_directory.then_some(path));
            }
        }
        Some(found)
    }

    /// Tells whether files directly in a directory may have changed.
    fn has_changed(&self, dir: &[u8]) -> bool {
        let mut at = dir;
        if self.dirs.contains(at) {
            return true;
        }
        while !at.is_empty() {
            if self.hiding.contains(at) {
                return true;
            }
            at = parent(at);
        }
        false
    }
}

fn parent(path: &[u8]) -> &[u8] {
    let at = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
    path.get(..at).unwrap_or_default()
}

fn is_opaque(dir: &OwnedFd) -> bool {
    let mut value = [0; 8];
    match fgetxattr(dir.as_fd(), OPAQUE, &mut value) {
        Ok(_length) => value.first() == Some(&b'y'),
        Err(_none) => false,
    }
}
