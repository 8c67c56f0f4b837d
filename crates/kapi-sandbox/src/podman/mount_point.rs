//! Makes the mount points that lie in writable directories of the host.
//!
//! Podman's runtime would make them too, but as a user that the host's user cannot clear up after.
//! Follows no link. Knows nothing of podman.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::error::PodmanError;
use super::layout::{BindRights, ContainerEntry, ContainerEntryKind, ContainerLayout, holder};

/// Makes the missing mount points of every entry in a writable mount.
pub(super) fn make_all(layout: &ContainerLayout) -> Result<(), PodmanError> {
    for one in &layout.entries {
        let Some(holder) = holder(one, layout) else {
            continue;
        };
        let rest = one
            .inside
            .strip_prefix(&holder.inside)
            .unwrap_or(Path::new(""));
        let (top, below) = match &holder.kind {
            ContainerEntryKind::Bind {
                host,
                rights: BindRights::Write,
            } => (host, None),
            ContainerEntryKind::Layered { index } => match layout.layers.get(*index) {
                Some((lower, layer)) => (&layer.upper, Some(lower)),
                None => continue,
            },
            ContainerEntryKind::Bind { .. } | ContainerEntryKind::Volume { .. } => continue,
        };
        let below = below.map(PathBuf::as_path);
        make(top, below, rest, is_directory(one))
            .map_err(PodmanError::file("make the mount point", &top.join(rest)))?;
    }
    Ok(())
}

fn is_directory(one: &ContainerEntry) -> bool {
    match &one.kind {
        ContainerEntryKind::Bind { host, .. } => host.is_dir(),
        ContainerEntryKind::Layered { .. } | ContainerEntryKind::Volume { .. } => true,
    }
}

/// Makes the parts of a path that neither the top nor what lies below it has.
fn make(top: &Path, below: Option<&Path>, rest: &Path, last_is_directory: bool) -> io::Result<()> {
    if below.is_some_and(|below| exists(&below.join(rest))) {
        return Ok(());
    }
    let parts: Vec<_> = rest.components().collect();
    let (mut path, mut under) = (top.to_path_buf(), below.map(Path::to_path_buf));
    for (index, part) in parts.iter().enumerate() {
        path.push(part);
        under
            .as_mut()
            .map(|under| under.push(part))
            .unwrap_or_default();
        if exists(&path) {
            continue;
        }
        if index + 1 < parts.len() || last_is_directory {
            // A directory that only the lower one has keeps its mode.
            let mode = under.as_deref().and_then(|under| fs::metadata(under).ok());
            let mode = mode.map_or(0o755, |found| found.permissions().mode() & 0o777);
            DirBuilder::new().mode(mode).create(&path)?;
        } else {
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o644)
                .open(&path)?;
        }
    }
    Ok(())
}

fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}
