//! The directories of one repository's stores: named by commit, complete once they exist.
//!
//! `<commit>` holds packs, `below` (the name of the store under it) and `shallow`; `<commit>-only` is
//! the same of the commit alone, and `<commit>-files-<settings>` holds its files. `making-<name>` is
//! one that is being made; whoever holds the lock may remove it. Knows nothing of git beyond where
//! packs lie.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{CHAIN_MAX, HistoryDepth, ReachableError, ReachableStore, boot};
use crate::id::CommitId;
use crate::owned_dir::{self, DirError, failed};

/// What the name of a store that is not finished begins with.
const UNFINISHED: &str = "making-";

/// The file whose time says when a store was last used.
pub(super) const USED: &str = "used";

/// All stores of one repository; its lock is held.
#[derive(Debug)]
pub(super) struct StoreEntries<'a> {
    pub(super) dir: &'a Path,
}

/// What one store says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoreEntry {
    /// The store whose objects this one needs.
    pub(super) below: Option<String>,
    pub(super) shallow: Vec<CommitId>,
}

/// A time: Unix seconds and nanoseconds.
pub(super) type UsedAt = (i64, i64);

/// A store that was found, with its name.
#[derive(Debug)]
pub(super) struct NamedStore {
    name: String,
    entry: StoreEntry,
}

/// Returns the name of the store of a commit.
pub(super) fn name_of(base: &CommitId, history: HistoryDepth) -> String {
    match history {
        HistoryDepth::Full => base.to_string(),
        HistoryDepth::CommitOnly => format!("{base}-only"),
    }
}

/// Returns the commit that a store's name begins with; none for a name that is not one's.
pub(super) fn commit_of(name: &str) -> Option<CommitId> {
    let (id, rest) = name.split_once('-').unwrap_or((name, ""));
    let is_plain = rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    CommitId::parse(id).ok().filter(|_| is_plain)
}

impl NamedStore {
    pub(super) fn store(
        &self,
        entries: &StoreEntries<'_>,
        base: &CommitId,
        is_new: bool,
    ) -> Result<ReachableStore, ReachableError> {
        self.entry.store_at(&self.name, entries, base, is_new)
    }
}

impl StoreEntry {
    /// Returns the store, and notes that it is in use.
    pub(super) fn store_at(
        &self,
        name: &str,
        entries: &StoreEntries<'_>,
        base: &CommitId,
        is_new: bool,
    ) -> Result<ReachableStore, ReachableError> {
        let mut object_dirs = Vec::new();
        for (part, _) in entries.chain(name)? {
            let dir = entries.dir.join(&part);
            owned_dir::write(&dir.join(USED), b"")?;
            object_dirs.push(dir.join("objects"));
        }
        Ok(ReachableStore {
            object_dirs,
            shallow: self.shallow.clone(),
            base: base.clone(),
            is_new,
        })
    }
}

impl StoreEntries<'_> {
    /// Returns the store of this name if it is whole.
    pub(super) fn find(&self, name: &str) -> Result<Option<NamedStore>, ReachableError> {
        let chain = self.whole_chain(name)?;
        let first = chain.and_then(|chain| chain.into_iter().next());
        Ok(first.map(|(name, entry)| NamedStore { name, entry }))
    }

    /// Returns a store and all below it, if none is missing.
    pub(super) fn whole_chain(
        &self,
        name: &str,
    ) -> Result<Option<Vec<(String, StoreEntry)>>, ReachableError> {
        let chain = self.chain(name)?;
        let mut parts = chain.iter().map(|(part, _)| self.dir.join(part));
        let has_parts =
            parts.all(|part| part.join("objects/pack").is_dir() || boot::is_whole(&part));
        let has_ground = chain.last().is_some_and(|(_, entry)| entry.below.is_none());
        Ok((has_parts && has_ground).then_some(chain))
    }

    /// Returns a store and those below it, as far as they are there.
    pub(super) fn chain(&self, name: &str) -> Result<Vec<(String, StoreEntry)>, ReachableError> {
        let mut chain = Vec::new();
        let mut next = Some(name.to_owned());
        while let Some(name) = next.take() {
            let dir = self.dir.join(&name);
            if chain.len() > CHAIN_MAX || !dir.is_dir() {
                break;
            }
            let entry = read(&dir)?;
            next.clone_from(&entry.below);
            chain.push((name, entry));
        }
        Ok(chain)
    }

    /// Returns every finished store with the time of its last use.
    pub(super) fn list(&self) -> Result<Vec<(String, UsedAt)>, ReachableError> {
        let mut found = Vec::new();
        for name in self.names()? {
            if commit_of(&name).is_none() {
                continue;
            }
            let used = self.dir.join(&name).join(USED);
            // A power cut may have left a store that nobody has used yet.
            let used = fs::symlink_metadata(&used);
            let used_at = used.map_or((0, 0), |used| (used.mtime(), used.mtime_nsec()));
            found.push((name, used_at));
        }
        Ok(found)
    }

    /// Makes the directory that becomes the store of this name.
    pub(super) fn begin(&self, name: &str, parts: &[&str]) -> Result<PathBuf, ReachableError> {
        let making = self.dir.join([UNFINISHED, name].concat());
        owned_dir::wipe(&making)?;
        // One that is there but not whole is of no use to anybody.
        owned_dir::wipe(&self.dir.join(name))?;
        for part in parts {
            owned_dir::create(&making.join(part))?;
        }
        Ok(making)
    }

    /// Makes what was begun the store of this name, durably.
    pub(super) fn finish(
        &self,
        name: &str,
        entry: &StoreEntry,
        parts: &[&str],
    ) -> Result<(), ReachableError> {
        let making = self.dir.join([UNFINISHED, name].concat());
        let below = entry.below.clone().unwrap_or_default();
        owned_dir::replace(&making.join("below"), below.as_bytes())?;
        let lines = entry.shallow.iter().map(|commit| format!("{commit}\n"));
        let shallow: String = lines.collect();
        owned_dir::replace(&making.join("shallow"), shallow.as_bytes())?;
        let sync = |dir: &Path| -> Result<(), DirError> {
            let opened = File::open(dir).map_err(failed("open", dir))?;
            opened.sync_all().map_err(failed("sync", dir))
        };
        for part in parts.iter().map(|part| making.join(part)) {
            sync(&part)?;
            sync(part.parent().unwrap_or(&making))?;
        }
        let done = self.dir.join(name);
        fs::rename(&making, &done).map_err(failed("finish", &done))?;
        Ok(sync(self.dir)?)
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), ReachableError> {
        // Under a name that nobody looks for, so that a crash leaves no store with a part missing.
        let going = self.dir.join([UNFINISHED, name].concat());
        owned_dir::wipe(&going)?;
        let dir = self.dir.join(name);
        fs::rename(&dir, &going).map_err(failed("remove", &dir))?;
        Ok(owned_dir::wipe(&going)?)
    }

    pub(super) fn remove_unfinished(&self) -> Result<(), ReachableError> {
        for name in self.names()? {
            if name.starts_with(UNFINISHED) {
                owned_dir::wipe(&self.dir.join(name))?;
            }
        }
        Ok(())
    }

    fn names(&self) -> Result<Vec<String>, ReachableError> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.dir).map_err(failed("list", self.dir))? {
            let name = entry.map_err(failed("list", self.dir))?.file_name();
            names.push(name.to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }
}

fn read(dir: &Path) -> Result<StoreEntry, ReachableError> {
    let text = |name: &str| -> Result<String, DirError> {
        let path = dir.join(name);
        fs::read_to_string(&path).map_err(failed("read", &path))
    };
    let below = text("below")?;
    let below = commit_of(&below).map(|_| below.clone());
    let shallow = text("shallow")?;
    let shallow = shallow
        .lines()
        .filter_map(|line| CommitId::parse(line).ok());
    Ok(StoreEntry {
        below,
        shallow: shallow.collect(),
    })
}
