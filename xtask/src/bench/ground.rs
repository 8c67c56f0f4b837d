//! The file system that trees and layers lie on: a new one of their own where the host lets us make one.
//!
//! A file system that has seen many deletions makes files at a fraction of its speed, and not
//! evenly; what is compared here would be its past. Without the right to mount, they lie on the disk
//! that builds use, and the tables say so.

use std::fs;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::output::talk;
use crate::tool::ToolCommand;

/// Bytes of the new file system; only what is written takes room.
const BYTES: u64 = 24 << 30;
/// A tree, a worktree, a copy and the smallest tree, in files and directories.
const INODES_PER_FILE: u32 = 5;

/// Where trees are made.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) directory: PathBuf,
    pub(super) is_new: bool,
}

impl Ground {
    /// Makes a place for trees of up to so many files in an empty scratch directory.
    pub(super) fn new(scratch: &Path, n_files: u32) -> anyhow::Result<Self> {
        let directory = scratch.join("trees");
        fs::create_dir_all(&directory)
            .with_context(|| format!("create {}", directory.display()))?;
        let mounted = mount(&scratch.join("trees.img"), &directory, n_files);
        if let Err(error) = &mounted {
            talk(&format!(
                "Trees are made on the disk that builds use: {error:#}"
            ));
        }
        Ok(Self {
            directory,
            is_new: mounted.is_ok(),
        })
    }

    /// Returns what tables say about it.
    pub(super) fn note(&self) -> &'static str {
        if self.is_new {
            "On a new ext4 file system of its own."
        } else {
            "On the disk that builds use."
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if self.is_new {
            release(&self.directory);
        }
    }
}

/// Unmounts what an earlier run that was killed left mounted in a scratch directory.
pub(super) fn release_leftover(scratch: &Path) {
    let directory = scratch.join("trees");
    let shown = directory.to_string_lossy();
    let reported = ToolCommand::new(Path::new("/"), "mountpoint", &["-q", &shown]).read();
    if reported.is_ok() {
        release(&directory);
    }
}

fn release(directory: &Path) {
    let shown = directory.to_string_lossy();
    let reported = ToolCommand::new(Path::new("/"), "umount", &[&shown]).read();
    if let Err(error) = reported {
        talk(&format!("warning: {error:#}"));
    }
}

fn mount(image: &Path, directory: &Path, n_files: u32) -> anyhow::Result<()> {
    let file = File::create(image).with_context(|| format!("create {}", image.display()))?;
    file.set_len(BYTES)
        .with_context(|| format!("size {}", image.display()))?;
    let inodes = n_files
        .saturating_mul(INODES_PER_FILE)
        .max(100_000)
        .to_string();
    let (image, directory) = (image.to_string_lossy(), directory.to_string_lossy());
    // Tables that are written later, in the background, would be measured too.
    let lazy = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";
    let mkfs = ["-q", "-F", "-N", &inodes, "-E", lazy, &image];
    ToolCommand::new(Path::new("/"), "/usr/sbin/mkfs.ext4", &mkfs).read()?;
    let mount = ["-o", "loop", &image, &directory];
    ToolCommand::new(Path::new("/"), "mount", &mount).read()?;
    Ok(())
}
