//! Which frozen bases may be trusted: those made since the machine was started.
//!
//! Their files are not synced, so a power cut may have taken any of them. Knows nothing of what is in
//! the files.

use std::fs;
use std::path::Path;

/// The directory of files, and the note of the boot, in the directory of a base.
pub(super) const FILES: &str = "files";
pub(super) const BOOT: &str = "boot";
/// What the kernel calls the time since it was started.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Tells whether a directory holds the files of a commit, made since the machine was started.
pub(super) fn is_whole(dir: &Path) -> bool {
    let made = fs::read(dir.join(BOOT)).unwrap_or_default();
    !made.is_empty() && made == id() && dir.join(FILES).is_dir()
}

/// Returns what tells this boot from others.
pub(super) fn id() -> Vec<u8> {
    fs::read(BOOT_ID).unwrap_or_else(|_| b"unknown\n".to_vec())
}
