//! The files that say what the kernel of a project does: loops, profiles, rules, settings.
//!
//! Only notices that one of them is another one now, by name, size and time of its last change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::kernel::ProjectKernel;

/// Directories of a project, or of one that lies in it, whose files say something.
const ANYWHERE: [&str; 4] = [".pi", ".pi/loops", ".pi/agents", ".claude/agents"];
/// The same of the project's own state.
const OWN: [&str; 1] = [".ilchul/loops"];
/// Files beside others that change for other reasons.
const SINGLE: [&str; 2] = ["policy.yaml", "config.toml"];
/// The most names of one directory that are looked at.
const NAMES_MAX: usize = 8_192;

/// What is known of the files.
#[derive(Debug)]
pub(super) struct FileNotices {
    directories: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
    known: Option<BTreeMap<PathBuf, (u64, i64, i64)>>,
}

impl FileNotices {
    /// Begins with nothing known.
    pub(super) fn new(kernel: &ProjectKernel<'_>) -> Self {
        let root = kernel.project.layout.root();
        let person = kernel.context.config_path.parent();
        let person = person.map(Path::to_path_buf).unwrap_or_default();
        let state = kernel.project.layout.state_dir();
        let mut directories: BTreeSet<PathBuf> = OWN.iter().map(|dir| root.join(dir)).collect();
        let cwd = &kernel.context.cwd;
        let above = cwd.ancestors().filter(|dir| dir.starts_with(root));
        for dir in above.chain([root]) {
            directories.extend(ANYWHERE.iter().map(|name| dir.join(name)));
        }
        directories.insert(person.join("agents"));
        let locations = [state, person];
        let files = locations
            .iter()
            .flat_map(|location| SINGLE.iter().map(|name| location.join(name)))
            .collect();
        Self {
            directories,
            files,
            known: None,
        }
    }

    /// Returns the directories in which something happens when one of them changes.
    pub(super) const fn directories(&self) -> &BTreeSet<PathBuf> {
        &self.directories
    }

    /// Tells whether a file is another one than at the last call; the first time, always.
    pub(super) fn has_changed(&mut self) -> bool {
        let now = self.look();
        let has_changed = self.known.as_ref() != Some(&now);
        self.known = Some(now);
        has_changed
    }

    fn look(&self) -> BTreeMap<PathBuf, (u64, i64, i64)> {
        let listed = self.directories.iter().flat_map(|dir| {
            let entries = fs::read_dir(dir).into_iter().flatten().flatten();
            entries.take(NAMES_MAX).map(|entry| entry.path())
        });
        let files = listed.chain(self.files.iter().cloned());
        let seen = files.filter_map(|path| {
            let found = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
            let what = (found.len(), found.mtime(), found.mtime_nsec());
            Some((path, what))
        });
        seen.collect()
    }
}
