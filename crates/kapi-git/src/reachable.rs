//! Object stores that hold exactly what one commit reaches, for an agent to borrow.
//!
//! A repository's own object directory holds every branch, stash and unpushed commit; what is
//! lent to a sandbox must not. A store is a chain of packs, each made once and read by many; it
//! is named by its commit, complete as soon as its directory exists, and never changed.

pub mod frozen;
pub mod vanished;

mod boot;
mod entry;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use kapi_sys::lock::{Lock, LockError};

use self::entry::{StoreEntries, StoreEntry};
use crate::command::{GitCall, GitError};
use crate::id::CommitId;
use crate::layer::store::{ObjectKind, id as object_id};
use crate::owned_dir::{self, DirError, failed};
use crate::repository::Repository;

/// The most packs one store may be made of; beyond, one pack is made of all.
const CHAIN_MAX: usize = 8;

/// The most earlier stores that are looked at for a part that can be used again.
const CANDIDATES_MAX: usize = 16;

/// The directories of a store.
const PARTS: [&str; 2] = ["objects/pack", "objects/info"];

/// How much of the past is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HistoryDepth {
    /// Everything that the commit reaches.
    Full,
    /// The commit alone, with its files; to git it looks like a shallow clone.
    CommitOnly,
}

/// The store to make or find.
#[derive(Debug, Clone, Copy)]
pub struct ReachablePlan<'a> {
    /// Where stores are kept: a directory of Kapi's own for all repositories.
    pub stores: &'a Path,
    /// The commit.
    pub base: &'a CommitId,
    /// How much of its past.
    pub history: HistoryDepth,
    /// How long to wait for another process that makes one of the same repository.
    pub wait_ms: u64,
}

/// A store that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReachableStore {
    /// The object directories, to be shown read-only; one is enough for most.
    pub object_dirs: Vec<PathBuf>,
    /// The commits whose parents are left out: what stands in git's `shallow` file.
    pub shallow: Vec<CommitId>,
    /// The commit it is of.
    pub base: CommitId,
    /// Whether this call made it.
    pub is_new: bool,
}

/// A store that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReachableError {
    /// Another process is making one for too long.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file or directory could not be read or written.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Repository {
    /// Returns the store for a commit, made if there is none yet.
    ///
    /// What an earlier store of an ancestor holds is used again, so that the next base costs what
    /// is new in it. Packs are made from the repository and its alternates and depend on neither.
    /// Of a shallow clone it holds what the clone has; of a partial clone, what has been fetched:
    /// nothing is fetched for it.
    pub fn reachable_store(
        &self,
        plan: &ReachablePlan<'_>,
    ) -> Result<ReachableStore, ReachableError> {
        let dir = plan.stores.join(self.store_key()?);
        owned_dir::create(&dir)?;
        let _lock = Lock::acquire(
            &dir.join("lock"),
            "kapi, objects for a sandbox",
            plan.wait_ms,
        )?;
        vanished::note(&dir, &self.resolved_common_dir()?)?;
        let entries = StoreEntries { dir: &dir };
        let name = entry::name_of(plan.base, plan.history);
        if let Some(found) = entries.find(&name)? {
            return found.store(&entries, plan.base, false);
        }
        let earlier = match plan.history {
            HistoryDepth::Full => self.earlier(&entries, plan.base)?,
            HistoryDepth::CommitOnly => None,
        };
        let shallow = match plan.history {
            HistoryDepth::Full => self.shallow_below(plan.base)?,
            HistoryDepth::CommitOnly => vec![plan.base.clone()],
        };
        let made = entries.begin(&name, &PARTS)?;
        let pack = made.join("objects/pack");
        match plan.history {
            HistoryDepth::Full => self.pack_history(&pack, plan.base, earlier.as_ref())?,
            HistoryDepth::CommitOnly => self.pack_commit(&pack, plan.base)?,
        }
        let entry = StoreEntry {
            below: earlier.map(|(name, _)| name),
            shallow,
        };
        entries.finish(&name, &entry, &PARTS)?;
        entry.store_at(&name, &entries, plan.base, true)
    }

    /// Removes the stores that were last used before `used_before` (Unix seconds), but none of
    /// the `kept` commits and nothing that a remaining one is made of.
    ///
    /// Returns how many went. A sandbox that runs reads its store all the time, so `kept` names
    /// the bases of those.
    pub fn prune_stores(
        &self,
        stores: &Path,
        used_before: i64,
        kept: &[CommitId],
    ) -> Result<usize, ReachableError> {
        let dir = stores.join(self.store_key()?);
        if !dir.is_dir() {
            return Ok(0);
        }
        let _lock = Lock::acquire(&dir.join("lock"), "kapi, clean-up", 0)?;
        let entries = StoreEntries { dir: &dir };
        let stale = stale(&entries, used_before, kept)?;
        for name in &stale {
            // A sandbox that runs since long ago may still lie over its files.
            if !frozen::is_held(&dir.join(name)) {
                entries.remove(name)?;
            }
        }
        entries.remove_unfinished()?;
        Ok(stale.len())
    }

    /// Returns the directories that [`Repository::prune_stores`] would remove; removes nothing.
    pub fn stale_stores(
        &self,
        stores: &Path,
        used_before: i64,
        kept: &[CommitId],
    ) -> Result<Vec<PathBuf>, ReachableError> {
        let dir = stores.join(self.store_key()?);
        if !dir.is_dir() {
            return Ok(Vec::new());
        }
        let entries = StoreEntries { dir: &dir };
        let stale = stale(&entries, used_before, kept)?;
        Ok(stale.iter().map(|name| dir.join(name)).collect())
    }

    /// Returns about how many bytes the repository's objects take, alternates included.
    ///
    /// Counts packs only, so that the answer costs nothing: for choosing a [`HistoryDepth`].
    pub fn packed_bytes(&self) -> Result<u64, DirError> {
        let mut n_bytes = 0;
        for objects in self.object_dirs() {
            let dir = objects.join("pack");
            let Ok(packs) = fs::read_dir(&dir) else {
                continue;
            };
            for pack in packs {
                let pack = pack.map_err(failed("list", &dir))?;
                // Gone between the two calls is a pack less.
                n_bytes += pack.metadata().map_or(0, |found| found.len());
            }
        }
        Ok(n_bytes)
    }

    /// Puts what `commit` reaches and `base` does not into an object directory.
    pub(crate) fn pack_beyond(
        &self,
        objects: &Path,
        commit: &CommitId,
        base: &CommitId,
    ) -> Result<(), ReachableError> {
        let pack = objects.join("pack");
        owned_dir::create(&pack)?;
        let wanted = format!("{commit}\n^{base}\n");
        Ok(self
            .pack_objects(&pack)
            .not_synced()
            .arg("--revs")
            .stdin(wanted.into_bytes())
            .done()?)
    }

    /// Returns the nearest earlier store of an ancestor that another pack may be put on.
    fn earlier(
        &self,
        entries: &StoreEntries<'_>,
        base: &CommitId,
    ) -> Result<Option<(String, CommitId)>, ReachableError> {
        let mut listed = entries.list()?;
        listed.sort_by_key(|(_, used_at)| std::cmp::Reverse(*used_at));
        for (name, _) in listed.into_iter().take(CANDIDATES_MAX) {
            // Only a full history bears a plain name. One that is not whole, such as that of this
            // very commit if it is being made, is no ground; nor one that lacks what a shallow
            // clone lacked then.
            let Ok(commit) = CommitId::parse(&name) else {
                continue;
            };
            let Some(chain) = entries.whole_chain(&name)? else {
                continue;
            };
            let is_ground = chain.len() < CHAIN_MAX
                && commit != *base
                && chain.iter().all(|(_, entry)| entry.shallow.is_empty());
            if is_ground && self.has_commit(&commit)? && self.is_ancestor(&commit, base)? {
                return Ok(Some((name, commit)));
            }
        }
        Ok(None)
    }

    fn pack_history(
        &self,
        pack: &Path,
        base: &CommitId,
        earlier: Option<&(String, CommitId)>,
    ) -> Result<(), ReachableError> {
        let mut wanted = format!("{base}\n");
        if let Some((_, commit)) = earlier {
            wanted.push_str(&["^", commit.as_str(), "\n"].concat());
        }
        let call = self.pack_objects(pack).args(["--revs"]);
        let call = if self.is_partial() {
            call.arg("--missing=allow-promisor")
        } else {
            call
        };
        Ok(call.stdin(wanted.into_bytes()).done()?)
    }

    fn pack_commit(&self, pack: &Path, base: &CommitId) -> Result<(), ReachableError> {
        let mut listing =
            self.call("rev-list")
                .args(["--objects", "--no-walk", "--no-object-names"]);
        if self.is_partial() {
            listing = listing.arg("--missing=allow-promisor");
        }
        let listed = listing.arg(base.as_str()).bytes()?;
        Ok(self.pack_objects(pack).stdin(listed).done()?)
    }

    fn pack_objects(&self, pack: &Path) -> GitCall<'_> {
        // Git writes a pack below its object directory and then renames it to where it belongs:
        // both must be on one file system, whatever the repository is on.
        let target = pack.parent().unwrap_or(pack);
        let call = match std::env::join_paths(self.object_dirs()) {
            Ok(sources) => self
                .call("pack-objects")
                .env("GIT_OBJECT_DIRECTORY", target)
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", sources),
            // A path with a colon cannot be told so; there the two must be on one file system.
            Err(_) => self.call("pack-objects"),
        };
        // What is packed already is copied as it is; only loose objects are compared, and briefly.
        call.args(["-q", "--delta-base-offset", "--threads=0", "--window=5"])
            .arg(pack.join("pack"))
    }

    /// Returns those of a shallow clone's boundary commits that `base` reaches.
    fn shallow_below(&self, base: &CommitId) -> Result<Vec<CommitId>, ReachableError> {
        let path = self.common_dir().join("shallow");
        if !path.is_file() {
            return Ok(Vec::new());
        }
        let listed = fs::read_to_string(&path).map_err(failed("read", &path))?;
        let boundary: BTreeSet<&str> = listed.lines().collect();
        let reached = self.call("rev-list").arg(base.as_str()).text()?;
        let reached = reached.lines().filter(|line| boundary.contains(line));
        Ok(reached
            .filter_map(|line| CommitId::parse(line).ok())
            .collect())
    }

    fn is_partial(&self) -> bool {
        self.settings().iter().any(|setting| {
            let key = setting.key.as_slice();
            let is_remote = key.starts_with(b"remote.") && key.ends_with(b".promisor");
            is_remote || key == b"extensions.partialclone"
        })
    }

    /// Returns the name of this repository's directory of stores.
    fn store_key(&self) -> Result<String, ReachableError> {
        let dir = self.resolved_common_dir()?;
        let path = dir.as_os_str().as_bytes();
        let mut key = object_id(self.object_format(), ObjectKind::Blob, path);
        key.truncate(20);
        Ok(key)
    }

    fn resolved_common_dir(&self) -> Result<PathBuf, DirError> {
        let dir = self.common_dir();
        fs::canonicalize(dir).map_err(failed("resolve", dir))
    }
}

/// Returns the stores that nobody has used lately, keeps or needs for another.
fn stale(
    entries: &StoreEntries<'_>,
    used_before: i64,
    kept: &[CommitId],
) -> Result<Vec<String>, ReachableError> {
    let mut needed = BTreeSet::new();
    let mut old = Vec::new();
    for (name, (used_at, _)) in entries.list()? {
        let is_kept = kept.iter().any(|commit| name.starts_with(commit.as_str()));
        if is_kept || used_at >= used_before {
            needed.extend(entries.chain(&name)?.into_iter().map(|(name, _)| name));
        } else {
            old.push(name);
        }
    }
    old.retain(|name| !needed.contains(name));
    Ok(old)
}
