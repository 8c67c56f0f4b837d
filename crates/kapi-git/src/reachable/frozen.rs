//! The files of one commit as an overlay lies over them: made once, shared by every workspace, never
//! changed.
//!
//! A stack of directories, each the difference to the one below, so that the next commit costs what
//! changed in it. The index beside them holds what `stat` says of every file, so that the first
//! `git status` over them reads none. Mounts nothing.

mod difference;
pub mod written;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use kapi_sys::lock::Lock;

use super::ReachableError;
use super::boot::{self, BOOT, FILES};
use super::entry::{StoreEntries, StoreEntry, USED};
use crate::id::CommitId;
use crate::layer::lower::LowerStack;
use crate::layer::store::{ObjectKind, id as object_id};
use crate::owned_dir::{self, failed};
use crate::repository::Repository;
use crate::repository::index_file::IndexFile;
use crate::scratch::{Objects, Scratch, config_text};

/// The most directories of one stack: each costs every look at a file that is not in it.
const STACK_MAX: usize = 8;
/// The most bases of a repository that are kept besides those in use.
const KEPT_MAX: usize = 12;
/// How many digits of the settings' hash a name bears.
const SETTINGS_DIGITS: usize = 8;
/// The index in the directory of a base.
const INDEX: &str = "index";

/// The base to make or find.
#[derive(Debug, Clone, Copy)]
pub struct FrozenPlan<'a> {
    /// Where stores are kept: a directory of Kapi's own for all repositories.
    pub stores: &'a Path,
    /// The commit.
    pub commit: &'a CommitId,
    /// How long to wait for another process that makes one of the same repository.
    pub wait_ms: u64,
}

/// The files of a commit; they stay as long as this is held.
#[derive(Debug)]
pub struct FrozenBase {
    /// The directories.
    pub lower: LowerStack,
    /// An index of exactly these files; to be copied.
    pub index: PathBuf,
    /// The directory of the base, by which it is found again.
    pub dir: PathBuf,
    /// Whether this call made it.
    pub is_new: bool,
    /// Keeps it from being removed.
    held: Vec<File>,
}

impl Repository {
    /// Returns the files of a commit, made if they are not there yet.
    ///
    /// They are what git checks out under today's settings; filters are not run and submodules are
    /// empty directories, as in every workspace. Killed at any time, this leaves nothing that is
    /// taken for a base; after a power cut all are made anew.
    pub fn frozen_base(&self, plan: &FrozenPlan<'_>) -> Result<FrozenBase, ReachableError> {
        let dir = plan.stores.join(self.store_key()?);
        owned_dir::create(&dir)?;
        let owner = "kapi, files for a sandbox";
        let _lock = Lock::acquire(&dir.join("lock"), owner, plan.wait_ms)?;
        super::vanished::note(&dir, &self.resolved_common_dir()?)?;
        let entries = StoreEntries { dir: &dir };
        let settings = self.settings_name()?;
        let name = format!("{}{settings}", plan.commit);
        let is_new = entries.whole_chain(&name)?.is_none();
        if is_new {
            self.make_base(&entries, &name, &settings, plan.commit)?;
        }
        let base = open(&dir.join(&name), is_new)?;
        if is_new {
            remove_oldest(&entries)?;
        }
        base.ok_or_else(|| {
            failed("find", &dir.join(&name))(std::io::ErrorKind::NotFound.into()).into()
        })
    }

    fn make_base(
        &self,
        entries: &StoreEntries<'_>,
        name: &str,
        settings: &str,
        commit: &CommitId,
    ) -> Result<(), ReachableError> {
        let ground = self.ground(entries, settings, commit)?;
        let making = entries.begin(name, &[FILES])?;
        let files = making.join(FILES);
        let git = making.join("git");
        let scratch = Scratch::prepare(self, &git, &files, Objects::Shared)?;
        match &ground {
            Some(ground) => self.add_difference(&scratch, &files, commit, ground)?,
            None => {
                scratch.fill(commit.as_str())?;
                // What the view of the repository is mounted on.
                owned_dir::create(&files.join(".git"))?;
            }
        }
        let (made, index) = (scratch.index(), making.join(INDEX));
        fs::rename(&made, &index).map_err(failed("move", &made))?;
        if let Some(read) = IndexFile::read(&index, self.object_format()) {
            owned_dir::write(&index, &read.with_monitor(written::TOKEN))?;
        }
        owned_dir::wipe(&git)?;
        // A power cut may take any of the files: the next boot trusts none of them.
        owned_dir::write(&making.join(BOOT), &boot::id())?;
        let entry = StoreEntry {
            below: ground.map(|ground| ground.name),
            shallow: Vec::new(),
        };
        entries.finish(name, &entry, &[FILES])
    }

    /// Returns the end of a name: what git would write depends on these settings.
    fn settings_name(&self) -> Result<String, ReachableError> {
        let mut text = config_text(self).into_bytes();
        let attributes = self.common_dir().join("info/attributes");
        match fs::read(&attributes) {
            Ok(bytes) => text.extend(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("read", &attributes)(error).into()),
        }
        let mut digits = object_id(self.object_format(), ObjectKind::Blob, &text);
        digits.truncate(SETTINGS_DIGITS);
        Ok(format!("-files-{digits}"))
    }
}

/// Opens the base in a directory; none when it is not there, or not whole.
pub fn find(dir: &Path) -> Result<Option<FrozenBase>, ReachableError> {
    open(dir, false)
}

fn open(dir: &Path, is_new: bool) -> Result<Option<FrozenBase>, ReachableError> {
    let (Some(parent), Some(name)) = (dir.parent(), dir.file_name()) else {
        return Ok(None);
    };
    let entries = StoreEntries { dir: parent };
    let Some(chain) = entries.whole_chain(&name.to_string_lossy())? else {
        return Ok(None);
    };
    let mut dirs = Vec::new();
    let mut held = Vec::new();
    for part in chain.iter().map(|(part, _)| parent.join(part)) {
        let used = part.join(USED);
        owned_dir::write(&used, b"")?;
        let file = File::open(&used).map_err(failed("open", &used))?;
        file.lock_shared().map_err(failed("lock", &used))?;
        held.push(file);
        dirs.push(part.join(FILES));
    }
    let mut dirs = dirs.into_iter();
    Ok(dirs.next().map(|top| FrozenBase {
        lower: LowerStack::frozen(top, dirs.collect()),
        index: dir.join(INDEX),
        dir: dir.to_path_buf(),
        is_new,
        held,
    }))
}

impl FrozenBase {
    /// Tells how many directories the stack has.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.held.len()
    }
}

/// Tells whether a sandbox lies over a base.
pub(super) fn is_held(dir: &Path) -> bool {
    let used = File::open(dir.join(USED));
    used.is_ok_and(|used| matches!(used.try_lock(), Err(fs::TryLockError::WouldBlock)))
}

/// Removes the bases that were not used for longest, but none in use and nothing that one is made of.
fn remove_oldest(entries: &StoreEntries<'_>) -> Result<(), ReachableError> {
    let mut listed = entries.list()?;
    listed.retain(|(name, _)| name.contains("-files-"));
    listed.sort_by_key(|(_, used_at)| std::cmp::Reverse(*used_at));
    let mut needed = std::collections::BTreeSet::new();
    for (n, (name, _)) in listed.iter().enumerate() {
        if n < KEPT_MAX || is_held(&entries.dir.join(name)) {
            needed.extend(entries.chain(name)?.into_iter().map(|(name, _)| name));
        }
    }
    for (name, _) in listed.iter().filter(|(name, _)| !needed.contains(name)) {
        entries.remove(name)?;
    }
    Ok(())
}
