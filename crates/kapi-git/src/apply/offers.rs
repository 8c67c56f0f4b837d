//! What an overlay layer changed, as offers to the project below it.
//!
//! A layer tells only what is different now; what a path was when the sandbox began is left to
//! the change times of the project's own files. Reads names and types, never content.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::beneath::{OpenTree, PathContent};
use super::{ApplyError, ApplyOffer, BaseState, ByteSource, Moment, PATHS_MAX, SandboxState};
use crate::id::CommitId;
use crate::layer::walk::{LayerChangeKind, LayerWalk};
use crate::owned_dir::{self, DirError, failed};

/// A layer and what it was put over.
#[derive(Debug, Clone, Copy)]
pub struct LayerOffers<'a> {
    /// The directory that the overlay wrote to.
    pub upper: &'a Path,
    /// The project that it was mounted over.
    pub project: &'a Path,
    /// When the sandbox began, by [`mark_beginning`].
    pub began: Moment,
    /// The commit that was checked out then, for merging texts.
    pub base: Option<&'a CommitId>,
}

/// Notes in the file `mark` that a sandbox begins, and returns the moment.
///
/// The file is on the project's file system, because only the clock of its change times counts.
pub fn mark_beginning(mark: &Path) -> Result<Moment, DirError> {
    owned_dir::wipe(mark)?;
    let made = File::create_new(mark).map_err(failed("create", mark))?;
    let found = made.metadata().map_err(failed("inspect", mark))?;
    let moment = Moment {
        seconds: found.ctime(),
        nanoseconds: found.ctime_nsec(),
    };
    let text = format!("{} {}\n", moment.seconds, moment.nanoseconds);
    owned_dir::replace(mark, text.as_bytes())?;
    Ok(moment)
}

/// Returns the moment noted in the file `mark`; `None` when there is no such note.
///
/// A note that was cut by a crash is none: nothing ran in that sandbox.
#[must_use]
pub fn beginning(mark: &Path) -> Option<Moment> {
    let text = fs::read_to_string(mark).ok()?;
    let (seconds, nanoseconds) = text.strip_suffix('\n')?.split_once(' ')?;
    Some(Moment {
        seconds: seconds.parse().ok()?,
        nanoseconds: nanoseconds.parse().ok()?,
    })
}

/// Returns the offers that a layer's changes come to, for [`super::apply`].
///
/// What the walk refused is not offered. A file that the host removed meanwhile and the agent
/// changed counts as new: a layer does not tell that it was there.
pub fn layer_offers(
    from: &LayerOffers<'_>,
    walk: &LayerWalk,
) -> Result<Vec<ApplyOffer>, ApplyError> {
    let upper = OpenTree::open(from.upper)?;
    let project = OpenTree::open(from.project)?;
    let mut offers = Vec::new();
    for change in &walk.changes {
        let path = &change.path;
        match change.kind {
            LayerChangeKind::Deleted => offers.push(from.offer(path, SandboxState::Absent)),
            LayerChangeKind::Replaced => {
                offers.extend(from.hidden_below(path, &upper, &project)?);
            }
            LayerChangeKind::Added => {
                let new = from.now(path, &upper)?;
                let old = BaseState::Absent;
                let path = path.clone();
                offers.push(ApplyOffer { path, old, new });
            }
            LayerChangeKind::Modified | LayerChangeKind::Mode | LayerChangeKind::Type => {
                let new = from.now(path, &upper)?;
                offers.push(from.offer(path, new));
            }
        }
    }
    offers.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(offers)
}

impl LayerOffers<'_> {
    fn offer(&self, path: &Path, new: SandboxState) -> ApplyOffer {
        let ancestor = self.base.map(|commit| ByteSource::InCommit {
            commit: commit.clone(),
            path: path.to_path_buf(),
        });
        ApplyOffer {
            path: path.to_path_buf(),
            old: BaseState::AsOf {
                moment: self.began,
                ancestor,
            },
            new,
        }
    }

    fn now(&self, path: &Path, upper: &OpenTree) -> Result<SandboxState, ApplyError> {
        Ok(match upper.look(path)? {
            PathContent::Directory => SandboxState::Directory,
            PathContent::Link { target, .. } => SandboxState::Link { target },
            PathContent::File { mode, .. } => self.file(path, mode),
            // Whatever it has become since the walk, reading it will refuse it.
            PathContent::Nothing | PathContent::Blocked | PathContent::Special => {
                self.file(path, 0o644)
            }
        })
    }

    fn file(&self, path: &Path, mode: u32) -> SandboxState {
        SandboxState::File {
            source: ByteSource::File {
                root: self.upper.to_path_buf(),
                path: path.to_path_buf(),
            },
            mode,
        }
    }

    /// Offers the removal of what a directory that was made anew no longer shows.
    fn hidden_below(
        &self,
        dir: &Path,
        upper: &OpenTree,
        project: &OpenTree,
    ) -> Result<Vec<ApplyOffer>, ApplyError> {
        let mut offers = Vec::new();
        let mut paths = children(project, dir)?;
        while let Some(path) = paths.pop() {
            let (shown, hidden) = (upper.look(&path)?, project.look(&path)?);
            if matches!(shown, PathContent::Nothing | PathContent::Blocked) {
                offers.push(self.offer(&path, SandboxState::Absent));
            } else if shown == PathContent::Directory && hidden == PathContent::Directory {
                paths.extend(children(project, &path)?);
            }
            // What else is still there in the layer is listed by itself if it differs.
            let n_paths = offers.len() + paths.len();
            if n_paths > PATHS_MAX {
                return Err(ApplyError::TooMany { n_paths });
            }
        }
        Ok(offers)
    }
}

fn children(tree: &OpenTree, dir: &Path) -> Result<Vec<PathBuf>, DirError> {
    let names = tree.names(dir)?;
    Ok(names.into_iter().map(|name| dir.join(name)).collect())
}
