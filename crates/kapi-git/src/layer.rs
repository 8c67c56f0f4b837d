//! The layer an overlay writes to: what an agent changed over the project's own files.
//!
//! A layer is a directory of Kapi's with the upper and the work directory of an overlay mount.
//! Everything in it is hostile; what lies below is the person's and only read. Mounts nothing.

pub mod changes;
pub mod claim;
pub mod commit;
pub mod error;
pub mod lower;
pub mod names;
pub mod survey;
pub mod walk;

pub(crate) mod beneath;
mod content;
mod direct;
mod ignored;
mod import;
mod index;
mod plan;
mod retouched;
mod staging;
pub(crate) mod store;
mod trees;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use kapi_sys::lock::{Lock, LockError};

use crate::owned_dir::{self, DirError, failed};

/// Where the kernel puts its marks in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// In `user.overlay.*`: mounted with `userxattr`, in a user namespace.
    User,
    /// In `trusted.overlay.*`: mounted by root.
    Trusted,
}

/// A layer that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// Another process uses it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// It has no upper directory.
    #[error("find the layer {}: it no longer exists", path.display())]
    Gone {
        /// The upper directory.
        path: PathBuf,
    },
    /// It holds more than is looked at.
    #[error("inspect {}: it contains more than {} entries", path.display(), survey::ENTRIES_MAX)]
    TooManyEntries {
        /// The upper directory.
        path: PathBuf,
    },
    /// The mount was made with an option that keeps content elsewhere.
    #[error("read {} in a layer: overlay mark {mark:?} is not supported", path.display())]
    Unsupported {
        /// The path in the layer.
        path: PathBuf,
        /// The mark.
        mark: &'static str,
    },
    /// A file or directory could not be read or written.
    #[error(transparent)]
    Dir(#[from] DirError),
}

/// A layer that this process alone uses, until it is dropped.
#[derive(Debug)]
pub struct Layer {
    dir: PathBuf,
    marks: Marks,
    lock: Lock,
}

impl Layer {
    /// Takes the layer at `dir` (absolute, Kapi's own) for `owner`; makes an empty one if missing.
    ///
    /// Two mounts over one upper directory lose work, so a layer in use is an error at once.
    pub fn open(dir: &Path, marks: Marks, owner: &str) -> Result<Self, LayerError> {
        // What an agent made executable with another's rights is nobody's to reach.
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(dir).map_err(failed("create", dir))?;
        let layer = Self {
            dir: dir.to_path_buf(),
            marks,
            lock: Lock::acquire(&dir.join("lock"), owner, 0)?,
        };
        owned_dir::create(&layer.upper())?;
        Ok(layer)
    }

    /// Returns the directory the overlay writes to.
    #[must_use]
    pub fn upper(&self) -> PathBuf {
        self.dir.join("upper")
    }

    /// Returns where the kernel's marks are.
    #[must_use]
    pub fn marks(&self) -> Marks {
        self.marks
    }

    /// Makes an empty work directory for the next mount and returns it.
    ///
    /// A volatile mount leaves a mark in its work directory that makes the kernel refuse the next,
    /// and a directory that only root may enter; both go.
    pub fn fresh_work(&self) -> Result<PathBuf, LayerError> {
        let work = self.dir.join("work");
        owned_dir::wipe(&work)?;
        owned_dir::create(&work)?;
        Ok(work)
    }

    /// Takes what was written at a path out of the layer, so that what lies below is seen there again.
    /// Nothing may have it mounted.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn uncover(&self, path: &Path) -> Result<(), LayerError> {
        Ok(owned_dir::wipe(&self.upper().join(path))?)
    }

    /// Removes the layer with all that is in it.
    pub fn discard(self) -> Result<(), LayerError> {
        for part in ["work", "git", "diff", "staging", "upper"] {
            owned_dir::wipe(&self.dir.join(part))?;
        }
        owned_dir::wipe(&self.dir)?;
        drop(self.lock);
        Ok(())
    }

    /// Returns a directory for what is made from the layer; nothing in it is worth keeping.
    pub(crate) fn part(&self, name: &'static str) -> PathBuf {
        self.dir.join(name)
    }
}
