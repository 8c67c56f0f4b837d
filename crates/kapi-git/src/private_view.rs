//! A throw-away git directory for an agent to use inside its sandbox.
//!
//! `git status`, `diff`, `log`, `add` and `commit` work in it, and nothing of it reaches the
//! repository: objects are borrowed, everything else is its own. It carries none of the person's
//! configuration, remotes or other branches. Only `own_commits.rs` reads it back, as something hostile.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::author::Author;
use crate::command::GitError;
use crate::id::CommitId;
use crate::owned_dir::{self, DirError, failed};
use crate::reachable::{ReachableError, ReachableStore};
use crate::ref_name::shown_name;
use crate::repository::Repository;
use crate::repository::index_file::{FileTime, IndexEntry, IndexFile};
use crate::scratch::{config_text, copy_info, quoted};

/// What an agent sees of a file's owner, number and device is not what the host sees, so git inside
/// must not take it for a change.
pub const VIEW_CONFIG: &str = "[core]\n\tcheckStat = minimal\n\ttrustctime = false\n";

/// The view to make.
#[derive(Debug, Clone, Copy)]
pub struct PrivateViewPlan<'a> {
    /// The directory to fill: missing, empty, or made by an earlier view (and then wiped).
    pub to: &'a Path,
    /// Where it will be inside the sandbox.
    pub inside: &'a Path,
    /// Where each of the object directories that are lent, [`Repository::object_dirs`] or
    /// [`ReachableStore::object_dirs`], will be inside the sandbox, read-only.
    pub objects_inside: &'a [PathBuf],
    /// The files it shows.
    pub shown: &'a PrivateFiles<'a>,
    /// The commit HEAD is at: the base, or the candidate of the turn before.
    pub commit: &'a CommitId,
    /// The identity of commits made inside.
    pub author: &'a Author,
}

/// The files that a view shows, and the branch they seem to be on.
#[derive(Debug, Clone)]
pub struct PrivateFiles<'a> {
    /// The branch that HEAD is at, without `refs/heads/`; one that is held back is shown as any other.
    pub branch: &'a str,
    /// The commit the branch started at.
    pub base: &'a CommitId,
    /// The directory with the files.
    pub work_tree: &'a Path,
    /// An index of them, which spares the first `git status` inside reading every one.
    pub index: Option<PathBuf>,
    /// An index of exactly what the shown commit has, over files that nobody has changed since.
    pub exact_index: Option<PathBuf>,
    /// The command that names what differs from that index, as git runs it inside.
    pub monitor: Option<String>,
}

/// A view that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateView {
    /// The git directory, to be mounted writable at `PrivateViewPlan::inside`.
    pub git_dir: PathBuf,
    /// A file to be mounted read-only over the workspace's `.git`.
    pub link: PathBuf,
    /// Variables git needs inside, because its files may seem to be somebody else's there.
    pub environment: Vec<(OsString, OsString)>,
}

/// A view that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PrivateViewError {
    /// A name or address that a configuration file cannot carry.
    #[error("use {text:?} as the author of commits")]
    Author {
        /// The name or address.
        text: String,
    },
    /// A file or directory could not be read or written.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// The objects of later commits could not be packed.
    #[error(transparent)]
    Reachable(#[from] ReachableError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Repository {
    /// Makes a private git directory that shows a work tree at `commit`, in which nothing is
    /// readable but what `commit` and the base reach.
    ///
    /// Besides the branch it has the ref `refs/kapi/base`. `plan.objects_inside` says where each of
    /// the store's object directories will be. What `commit` has beyond the base goes into the view
    /// itself. Remove it with [`owned_dir::discard`].
    pub fn private_view(
        &self,
        plan: &PrivateViewPlan<'_>,
        store: &ReachableStore,
    ) -> Result<PrivateView, PrivateViewError> {
        let identity = identity_text(plan.author)?;
        let beside = owned_dir::prepare(plan.to)?;
        let dir = plan.to;
        for part in [
            "hooks",
            "info",
            "objects/info",
            "objects/pack",
            "refs/heads",
            "refs/tags",
        ] {
            owned_dir::create(&dir.join(part))?;
        }
        let monitor = plan.shown.monitor.as_ref();
        let monitor = monitor.map(|line| format!("[core]\n\tfsmonitor = {line}\n"));
        let monitor = monitor.unwrap_or_default();
        let config = [config_text(self), VIEW_CONFIG.to_owned(), monitor, identity].concat();
        owned_dir::write(&dir.join("config"), config.as_bytes())?;
        let branch = shown_name(plan.shown.branch);
        owned_dir::write(
            &dir.join("HEAD"),
            format!("ref: refs/heads/{branch}\n").as_bytes(),
        )?;
        let base = plan.shown.base;
        let refs = format!(
            "# pack-refs with: sorted \n{} refs/heads/{branch}\n{base} refs/kapi/base\n",
            plan.commit
        );
        owned_dir::write(&dir.join("packed-refs"), refs.as_bytes())?;
        for name in ["exclude", "attributes"] {
            copy_info(self, dir, name)?;
        }
        self.write_index(plan)?;
        self.lend(plan, store)?;
        // Last, so that the commands above see the repository's objects at their real place.
        let mut alternates = Vec::new();
        for objects in plan.objects_inside {
            alternates.extend_from_slice(quoted(objects).as_bytes());
            alternates.push(b'\n');
        }
        owned_dir::write(&dir.join("objects/info/alternates"), &alternates)?;
        let link = beside.join("link");
        let mut text = b"gitdir: ".to_vec();
        text.extend_from_slice(plan.inside.as_os_str().as_bytes());
        text.push(b'\n');
        owned_dir::write(&link, &text)?;
        fs::set_permissions(&link, Permissions::from_mode(0o444))
            .map_err(failed("set permissions of", &link))?;
        let environment = [
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "safe.directory"),
            ("GIT_CONFIG_VALUE_0", "*"),
        ];
        let environment = environment
            .map(|(name, value)| (name.into(), value.into()))
            .to_vec();
        Ok(PrivateView {
            git_dir: dir.to_path_buf(),
            link,
            environment,
        })
    }

    /// Tells the view where history ends, and gives it what is not lent.
    fn lend(
        &self,
        plan: &PrivateViewPlan<'_>,
        store: &ReachableStore,
    ) -> Result<(), PrivateViewError> {
        if *plan.commit != store.base {
            self.pack_beyond(&plan.to.join("objects"), plan.commit, &store.base)?;
        }
        let lines = store.shallow.iter().map(|commit| format!("{commit}\n"));
        let shallow: String = lines.collect();
        if !shallow.is_empty() {
            owned_dir::write(&plan.to.join("shallow"), shallow.as_bytes())?;
        }
        Ok(())
    }

    fn write_index(&self, plan: &PrivateViewPlan<'_>) -> Result<(), PrivateViewError> {
        let index = plan.to.join("index");
        if let Some(exact) = &plan.shown.exact_index {
            return fs::copy(exact, &index)
                .map(drop)
                .map_err(|error| failed("copy", exact)(error).into());
        }
        if self.lend_index(plan, &index)? {
            return Ok(());
        }
        let call = || {
            let objects = self
                .object_dirs()
                .first()
                .map_or(Path::new("/nonexistent"), |dir| dir);
            self.git()
                .call(plan.to, "read-tree")
                .env("GIT_DIR", plan.to)
                .env("GIT_WORK_TREE", plan.shown.work_tree)
                .env("GIT_OBJECT_DIRECTORY", objects)
                .own_lock(plan.to.join("index.lock"))
                .not_synced()
        };
        if let Some(cache) = plan.shown.index.as_ref().filter(|cache| cache.is_file()) {
            fs::copy(cache, &index).map_err(failed("copy", cache))?;
            if call().args(["-m", plan.commit.as_str()]).exit()?.code == 0 {
                return Ok(());
            }
        }
        call().arg(plan.commit.as_str()).done()?;
        Ok(())
    }

    /// Gives the view the person's index if its files are shown and it holds nothing but them.
    ///
    /// It costs a copy then, and spares the first `git status` inside reading every file.
    fn lend_index(&self, plan: &PrivateViewPlan<'_>, to: &Path) -> Result<bool, PrivateViewError> {
        if plan.shown.work_tree != self.top_level() {
            return Ok(false);
        }
        let from = self.git_dir().join("index");
        let Some(index) = IndexFile::read(&from, self.object_format()) else {
            return Ok(false);
        };
        let is_ordinary = |entry: IndexEntry<'_>| !entry.is_assumed() && !entry.is_left_out();
        let is_lent = index.has_only(&[b"TREE", b"EOIE", b"IEOT"])
            && index.tree().as_deref() == Some(self.tree_of(plan.commit)?.as_str())
            && index.entries().all(is_ordinary);
        if !is_lent {
            return Ok(false);
        }
        owned_dir::write(to, &index.bytes)?;
        // Git takes the file's time as "checked at"; a later one would hide later changes.
        let FileTime {
            seconds,
            nanoseconds,
        } = index.written;
        let parts = u64::try_from(seconds)
            .ok()
            .zip(u32::try_from(nanoseconds).ok());
        let written = parts.map(|(seconds, nanoseconds)| Duration::new(seconds, nanoseconds));
        let written = SystemTime::UNIX_EPOCH + written.unwrap_or_default();
        let set = fs::File::open(to).and_then(|file| file.set_modified(written));
        set.map_err(failed("set the time of", to))?;
        Ok(true)
    }
}

fn identity_text(author: &Author) -> Result<String, PrivateViewError> {
    let mut text = String::from("[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[user]\n");
    for (key, value) in [("name", &author.name), ("email", &author.email)] {
        if value.is_empty()
            || value.contains(['"', '\\', '<', '>'])
            || value.contains(char::is_control)
        {
            return Err(PrivateViewError::Author {
                text: value.clone(),
            });
        }
        text.push_str(&["\t", key, " = \"", value, "\"\n"].concat());
    }
    Ok(text)
}
