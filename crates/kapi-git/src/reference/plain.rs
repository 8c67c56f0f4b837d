//! Refs that are plain files, read and changed without git.
//!
//! Follows git's own order of doing things, so that both may work in a repository at once. Gives
//! up without a trace whenever something is out of the ordinary; git then does it or says why not.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, AtFlags, CWD, Mode, OFlags, RawMode, fadvise, linkat, open};
use rustix::io::Errno;

use crate::id::CommitId;
use crate::owned_dir::{self, is_absence};
use crate::ref_name::is_plain_name;
use crate::repository::small_file;

/// The largest file of packed refs that is read here.
const PACKED_BYTES_MAX: u64 = 64 << 20;
/// A ref's own file is this long at most: an id and a newline.
const LOOSE_BYTES_MAX: u64 = 65;
/// The most files that are looked at below one name.
const FILES_MAX: usize = 10_000;

/// Where the file lies that new refs are names of: git keeps what helps it to find objects there, and
/// leaves alone what it does not know.
const SEEDS: &str = "objects/info";
/// What its name begins with; the commit follows, so that no two contents ever have one name.
const SEED: &str = "kapi-base-";
/// Nobody writes into the seed: what has other names would change under all of them.
const SEED_MODE: RawMode = 0o444;

/// The refs of a repository that keeps them in files.
#[derive(Debug, Clone, Copy)]
pub(super) struct RefFiles<'a> {
    /// Where all worktrees of the repository keep them.
    pub(super) common_dir: &'a Path,
    /// How many digits an id has.
    pub(super) n_digits: usize,
}

/// One change of a ref, with what it has to be before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RefChange<'a> {
    /// The ref's full name.
    pub(crate) name: &'a str,
    /// What it is; nothing for one that is made.
    pub(crate) from: Option<&'a CommitId>,
    /// What it is to be.
    pub(crate) to: &'a CommitId,
}

impl RefFiles<'_> {
    /// Returns the ref with this full name and those below it, by name; nothing when unsure.
    pub(super) fn at(&self, name: &str) -> Option<BTreeMap<String, CommitId>> {
        if !is_plain_name(name) {
            return None;
        }
        // Loose ones first: packing makes the packed one before the loose one goes.
        let mut loose = BTreeMap::new();
        self.add_loose(name, &mut loose)?;
        let mut found = self.packed_at(&self.packed()?, name)?;
        found.append(&mut loose);
        Some(found)
    }

    /// Returns what the ref with this full name is, if there is one; nothing when unsure.
    pub(super) fn value(&self, name: &str) -> Option<Option<CommitId>> {
        if !is_plain_name(name) {
            return None;
        }
        if let Some(value) = self.loose(&self.common_dir.join(name))? {
            return Some(Some(value));
        }
        Some(self.packed_at(&self.packed()?, name)?.remove(name))
    }

    /// Makes changes; tells whether it did. If not, all or the last of them are still to be made.
    ///
    /// That the commits exist is for the caller to know.
    pub(super) fn change(&self, changes: &[RefChange<'_>]) -> bool {
        self.lock(changes)
            .is_some_and(|locks| locks.settle(changes).is_some())
    }

    /// Makes refs at one commit that can be made again from what is known elsewhere; tells whether it
    /// did, as [`RefFiles::change`] does.
    ///
    /// Nothing is waited for but the first time for a commit: each becomes one more name of a file
    /// whose content is on disk, so a crash may take a ref away, but never leaves a torn one.
    pub(super) fn claim(&self, names: &[&str], to: &CommitId) -> bool {
        let change = |name| RefChange {
            name,
            from: None,
            to,
        };
        let changes: Vec<RefChange<'_>> = names.iter().copied().map(change).collect();
        let claimed = self.lock(&changes).and_then(|locks| {
            let seed = self.seed(to)?;
            locks.name(&seed)
        });
        claimed.is_some()
    }

    /// Takes the locks of refs if all of them are what the changes say.
    fn lock(&self, changes: &[RefChange<'_>]) -> Option<Locks> {
        let mut locks = Locks::default();
        for change in changes {
            if !is_plain_name(change.name) || self.has_log(change.name) {
                return None;
            }
            locks.take(&self.common_dir.join(change.name))?;
        }
        self.are_as_expected(changes)?.then_some(locks)
    }

    /// Returns a file that holds a commit's id and is on disk.
    fn seed(&self, to: &CommitId) -> Option<PathBuf> {
        let dir = self.common_dir.join(SEEDS);
        let seed = dir.join(format!("{SEED}{to}"));
        let content = format!("{to}\n");
        if small_file(&seed, LOOSE_BYTES_MAX).is_some_and(|found| found == content.as_bytes()) {
            return Some(seed);
        }
        owned_dir::create(&dir).ok()?;
        // Those of other commits will hardly be asked for again; the refs keep what they name. Whoever is
        // about to use one takes the longer way.
        for other in fs::read_dir(&dir).ok()? {
            let other = other.ok()?;
            let is_seed = other
                .file_name()
                .as_encoded_bytes()
                .starts_with(SEED.as_bytes());
            if is_seed {
                owned_dir::wipe(&other.path()).ok()?;
            }
        }
        // It has no name until it is on disk, so a crash leaves nothing of it.
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let mut file = File::from(open(&dir, flags, Mode::from_raw_mode(SEED_MODE)).ok()?);
        file.write_all(content.as_bytes()).ok()?;
        file.sync_all().ok()?;
        let nameless = format!("/proc/self/fd/{}", file.as_raw_fd());
        match linkat(CWD, nameless, CWD, &seed, AtFlags::SYMLINK_FOLLOW) {
            // Another process was faster, with the same content.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(_) => return None,
        }
        Some(seed)
    }

    /// Tells whether refs are what the changes say, and whether their names are free of others.
    ///
    /// Their locks are held, and lie in directories, so that no loose ref is above them.
    fn are_as_expected(&self, changes: &[RefChange<'_>]) -> Option<bool> {
        let mut loose = Vec::with_capacity(changes.len());
        for change in changes {
            let mut found = BTreeMap::new();
            self.add_loose(change.name, &mut found)?;
            loose.push(found);
        }
        let packed = self.packed()?;
        let mut is_free = true;
        for (change, mut loose) in changes.iter().zip(loose) {
            let name = change.name;
            let mut found = self.packed_at(&packed, name)?;
            found.append(&mut loose);
            is_free &= found.keys().all(|other| other == name);
            is_free &= found.get(name) == change.from;
            let above = name.match_indices('/').skip(2);
            for above in above.filter_map(|(at, _)| name.get(..at)) {
                is_free &= !self.packed_at(&packed, above)?.contains_key(above);
            }
        }
        Some(is_free)
    }

    /// Tells whether git keeps a log of a ref, which it would add to.
    fn has_log(&self, name: &str) -> bool {
        fs::symlink_metadata(self.common_dir.join("logs").join(name)).is_ok()
    }

    fn add_loose(&self, name: &str, found: &mut BTreeMap<String, CommitId>) -> Option<()> {
        let kind = match fs::symlink_metadata(self.common_dir.join(name)) {
            Ok(at) => at.file_type(),
            Err(error) if is_absence(&error) => return Some(()),
            Err(_) => return None,
        };
        let mut entries = vec![(name.to_owned(), kind)];
        let mut n_seen = 0;
        while let Some((name, kind)) = entries.pop() {
            let path = self.common_dir.join(&name);
            n_seen += 1;
            if n_seen > FILES_MAX || !is_plain_name(&name) {
                return None;
            }
            if kind.is_file() {
                found.insert(name, self.loose_file(&path)?);
                continue;
            }
            for entry in kind.is_dir().then(|| fs::read_dir(&path).ok())?? {
                let entry = entry.ok()?;
                let below = entry.file_name().into_string().ok()?;
                let listed = ([&name, "/", &below].concat(), entry.file_type().ok()?);
                entries.extend((!below.ends_with(".lock")).then_some(listed));
            }
        }
        Some(())
    }

    /// Reads a ref's own file, if it has one.
    fn loose(&self, path: &Path) -> Option<Option<CommitId>> {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() => return Some(None),
            Err(error) if is_absence(&error) => return Some(None),
            Ok(_) | Err(_) => {}
        }
        self.loose_file(path).map(Some)
    }

    fn loose_file(&self, path: &Path) -> Option<CommitId> {
        let text = small_file(path, LOOSE_BYTES_MAX)?;
        self.id(text.strip_suffix(b"\n")?)
    }

    fn packed(&self) -> Option<Vec<u8>> {
        let path = self.common_dir.join("packed-refs");
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Vec::new()),
            Ok(_) | Err(_) => small_file(&path, PACKED_BYTES_MAX),
        }
    }

    /// Returns the ref with this name and those below it, of a list of packed ones.
    fn packed_at(&self, text: &[u8], name: &str) -> Option<BTreeMap<String, CommitId>> {
        let mut found = BTreeMap::new();
        for line in text.split(|&b| b == b'\n') {
            if matches!(line.first(), None | Some(b'#' | b'^')) {
                continue;
            }
            let (id, rest) = line.split_at_checked(self.n_digits)?;
            let listed = rest.strip_prefix(b" ")?;
            let below = listed.strip_prefix(name.as_bytes());
            if below.is_some_and(|below| matches!(below.first(), None | Some(b'/'))) {
                let listed = String::from_utf8(listed.to_vec()).ok()?;
                found.insert(listed, self.id(id)?);
            }
        }
        Some(found)
    }

    fn id(&self, text: &[u8]) -> Option<CommitId> {
        let text = std::str::from_utf8(text).ok()?;
        let id = CommitId::parse(text).ok()?;
        // All zeros is git's way of writing that there is none.
        let is_id = text.len() == self.n_digits && text.bytes().any(|b| b != b'0');
        is_id.then_some(id)
    }
}

/// The lock files of refs that are being changed, which go unless they became the refs.
#[derive(Debug, Default)]
struct Locks {
    held: Vec<(File, PathBuf, PathBuf)>,
}

impl Locks {
    fn take(&mut self, path: &Path) -> Option<()> {
        fs::create_dir_all(path.parent()?).ok()?;
        let mut lock = path.as_os_str().to_owned();
        lock.push(".lock");
        let lock = PathBuf::from(lock);
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).open(&lock).ok()?;
        self.held.push((file, lock, path.to_path_buf()));
        Some(())
    }

    /// Makes every ref one more name of a file, in the order given.
    fn name(self, file: &Path) -> Option<()> {
        let mut paths = self.held.iter().map(|(_, _, path)| path);
        // What is left of refs that were below this name is for git to clear away.
        if paths.clone().any(|path| path.is_dir()) {
            return None;
        }
        paths.try_for_each(|path| fs::hard_link(file, path).ok())
    }

    /// Gives every ref its value: all are on disk before the first has its name.
    fn settle(mut self, changes: &[RefChange<'_>]) -> Option<()> {
        for ((file, _, path), change) in self.held.iter_mut().zip(changes) {
            // What is left of refs that were below this name is for git to clear away.
            if path.is_dir() {
                return None;
            }
            file.write_all(format!("{}\n", change.to).as_bytes()).ok()?;
        }
        // All on their way before the first is waited for, so that a file system with a journal
        // commits it once and not once for each.
        for (file, ..) in &self.held {
            match fadvise(file, 0, None, Advice::DontNeed) {
                // A hint; what has to be on disk is waited for below.
                Ok(()) | Err(_) => {}
            }
        }
        for (file, ..) in &self.held {
            file.sync_all().ok()?;
        }
        // In the order given, so that a crash between them leaves the first ones.
        while !self.held.is_empty() {
            let (_, lock, path) = self.held.first()?;
            fs::rename(lock, path).ok()?;
            drop(self.held.remove(0));
        }
        Some(())
    }
}

impl Drop for Locks {
    fn drop(&mut self) {
        for (_, lock, _) in &self.held {
            // One that stays is removed by whoever finds it stale.
            drop(fs::remove_file(lock));
        }
    }
}
