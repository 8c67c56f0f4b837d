//! The person's repository: where it is, what it holds, and how it is read.
//!
//! Everything here only reads. Its index and configuration are never written by any module, and
//! its working files are looked at by [`Repository::dirt`] alone.

pub(crate) mod comparisons;
mod dirt;
pub(crate) mod index_file;
mod person;
mod plain;
pub mod range;
mod settings;
pub(crate) mod suspects;
mod trees;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use self::comparisons::Comparisons;
use self::settings::GitSetting;
use self::trees::CommitTrees;
use crate::command::{Git, GitCall, GitError};
use crate::id::CommitId;
use crate::ref_name::{branch_ref, is_plain_name};

/// The most alternate object directories followed from one repository.
const OBJECT_DIRS_MAX: usize = 32;

/// The longest HEAD that is read without git.
const HEAD_BYTES_MAX: u64 = 4096;

/// A repository that cannot be used, or not as asked.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// No repository at or above the directory.
    #[error("find a git repository at {}", dir.display())]
    NotARepository {
        /// Where it was looked for.
        dir: PathBuf,
    },
    /// A repository without a working tree, or a place inside a git directory.
    #[error("use {}: it has no working tree", dir.display())]
    Bare {
        /// Where it was looked for.
        dir: PathBuf,
    },
    /// A repository without any commit.
    #[error("use {}: it has no commit yet", dir.display())]
    NoCommit {
        /// The repository.
        dir: PathBuf,
    },
    /// A name that is no commit here.
    #[error("find commit {rev:?}")]
    NoSuchCommit {
        /// The name.
        rev: String,
    },
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// A non-bare repository with at least one commit.
#[derive(Debug, Clone)]
pub struct Repository {
    git: Git,
    top_level: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    object_dirs: Vec<PathBuf>,
    format: ObjectFormat,
    settings: Vec<GitSetting>,
    conversions: Vec<(String, String)>,
    /// What switches off each driver that the configuration names.
    disarmed: Vec<(OsString, OsString)>,
    /// The trees of commits that were asked for.
    trees: CommitTrees,
    /// What was found to differ between trees.
    comparisons: Comparisons,
}

/// The hash a repository names its objects by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectFormat {
    /// SHA-1, 40 digits.
    Sha1,
    /// SHA-256, 64 digits.
    Sha256,
}

impl ObjectFormat {
    /// Returns how many hexadecimal digits an id has.
    pub(crate) const fn n_digits(self) -> usize {
        match self {
            Self::Sha1 => 40,
            Self::Sha256 => 64,
        }
    }
}

/// What is in the person's checkout but in no commit, so not in the base either.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dirt {
    /// Paths whose staged content differs from HEAD.
    pub staged: usize,
    /// Paths whose file differs from what is staged.
    pub modified: usize,
    /// Files and directories git does not know.
    pub untracked: usize,
    /// All of them, or the first [`Dirt::NAMES_MAX`]; a directory that git does not know ends in a
    /// slash and stands for all that is in it.
    pub names: Vec<PathBuf>,
}

impl Dirt {
    /// How many names are kept.
    pub const NAMES_MAX: usize = 10_000;

    /// Tells whether everything is committed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.staged == 0 && self.modified == 0 && self.untracked == 0
    }
}

impl Repository {
    /// Finds the repository that `dir` is in.
    pub fn discover(git: &Git, dir: &Path) -> Result<Self, RepositoryError> {
        let repository = match plain::find(dir) {
            Some(found) => Self::ordinary(git, found),
            None => Self::any(git, dir)?,
        };
        match repository.resolve_commit("HEAD") {
            Ok(_head) => Ok(repository),
            Err(RepositoryError::NoSuchCommit { .. }) => Err(RepositoryError::NoCommit {
                dir: repository.top_level,
            }),
            Err(error) => Err(error),
        }
    }

    fn ordinary(git: &Git, found: plain::PlainRepository) -> Self {
        Self {
            git: git.clone(),
            top_level: found.top_level,
            common_dir: found.git_dir.clone(),
            object_dirs: with_alternates(found.git_dir.join("objects")),
            git_dir: found.git_dir,
            format: found.format,
            conversions: settings::conversions(&found.settings),
            disarmed: settings::disarmed(&found.settings),
            settings: found.settings,
            trees: CommitTrees::default(),
            comparisons: Comparisons::default(),
        }
    }

    /// Asks git for everything.
    fn any(git: &Git, dir: &Path) -> Result<Self, RepositoryError> {
        let git_dir = match location(git, dir, &["--absolute-git-dir"]) {
            Ok(found) => found,
            Err(GitError::Exit { stderr, .. }) if stderr.contains("not a git repository") => {
                return Err(RepositoryError::NotARepository {
                    dir: dir.to_path_buf(),
                });
            }
            // Such a directory may be one that an agent made: git is told not to enter it.
            Err(GitError::Exit { stderr, .. }) if stderr.contains("use bare repository") => {
                let dir = dir.to_path_buf();
                return Err(RepositoryError::Bare { dir });
            }
            Err(error) => return Err(error.into()),
        };
        let unexpected = || GitError::Unexpected {
            subcommand: "rev-parse".to_owned(),
        };
        let call = git.call(dir, "rev-parse");
        let call = call.args(["--is-inside-work-tree", "--show-object-format"]);
        let reported = call.text()?;
        let (inside, format) = reported.split_once('\n').ok_or_else(unexpected)?;
        if inside != "true" {
            return Err(RepositoryError::Bare {
                dir: dir.to_path_buf(),
            });
        }
        let format = match format {
            "sha1" => ObjectFormat::Sha1,
            "sha256" => ObjectFormat::Sha256,
            _ => return Err(unexpected().into()),
        };
        let objects = location(git, dir, &["--git-path", "objects"])?;
        let mut repository = Self {
            git: git.clone(),
            top_level: location(git, dir, &["--show-toplevel"])?,
            common_dir: location(git, dir, &["--git-common-dir"])?,
            git_dir,
            object_dirs: with_alternates(objects),
            format,
            settings: Vec::new(),
            conversions: Vec::new(),
            disarmed: Vec::new(),
            trees: CommitTrees::default(),
            comparisons: Comparisons::default(),
        };
        let listed = repository.call("config").args(["-z", "--list"]).bytes()?;
        repository.settings = settings::listed(&listed);
        repository.conversions = settings::conversions(&repository.settings);
        repository.disarmed = settings::disarmed(&repository.settings);
        Ok(repository)
    }

    /// Returns the root of the person's working tree.
    #[must_use]
    pub fn top_level(&self) -> &Path {
        &self.top_level
    }

    /// Returns the git directory that all worktrees of the repository share.
    #[must_use]
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// Returns the object directories: the repository's own, then its alternates.
    #[must_use]
    pub fn object_dirs(&self) -> &[PathBuf] {
        &self.object_dirs
    }

    /// Returns the hash objects are named by.
    #[must_use]
    pub fn object_format(&self) -> ObjectFormat {
        self.format
    }

    /// Returns the commit that `rev` names.
    pub fn resolve_commit(&self, rev: &str) -> Result<CommitId, RepositoryError> {
        let no_such = || RepositoryError::NoSuchCommit {
            rev: rev.to_owned(),
        };
        if rev.starts_with('-') || rev.contains(['\n', '\0']) {
            return Err(no_such());
        }
        if let Some(found) = self.plain_commit(rev)? {
            return found.ok_or_else(no_such);
        }
        let peeled = format!("{rev}^{{commit}}");
        let exit = self
            .call("rev-parse")
            .args(["--verify", "--quiet", &peeled])
            .exit()?;
        if exit.code != 0 {
            return Err(no_such());
        }
        let text = String::from_utf8_lossy(&exit.stdout);
        CommitId::parse(text.trim_end()).map_err(|_malformed| no_such())
    }

    /// Returns the branch HEAD is on, without `refs/heads/`; `None` when it is detached.
    pub fn head_branch(&self) -> Result<Option<String>, GitError> {
        match self.plain_head() {
            Some(Head::Branch(name)) => {
                return Ok(name.strip_prefix("refs/heads/").map(str::to_owned));
            }
            Some(Head::Detached(_)) => return Ok(None),
            None => {}
        }
        let exit = self.call("symbolic-ref").args(["--quiet", "HEAD"]).exit()?;
        if exit.code != 0 {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&exit.stdout);
        Ok(text
            .trim_end()
            .strip_prefix("refs/heads/")
            .map(str::to_owned))
    }

    /// Tells whether `name` may be a branch: the rules of git, and no leading dash.
    pub fn is_valid_branch(&self, name: &str) -> Result<bool, GitError> {
        if name.starts_with('-') || name.contains('\0') || name == "HEAD" {
            return Ok(false);
        }
        if is_plain_name(&branch_ref(name)) {
            return Ok(true);
        }
        let exit = self
            .call("check-ref-format")
            .arg(format!("refs/heads/{name}"))
            .exit()?;
        Ok(exit.code == 0)
    }

    /// Returns a command on the repository's refs and objects; it has no working tree.
    pub(crate) fn call(&self, subcommand: &str) -> GitCall<'_> {
        self.git
            .call(&self.git_dir, subcommand)
            .env("GIT_DIR", &self.git_dir)
            .settings(&self.disarmed)
    }

    /// Returns what was found to differ between trees.
    pub(crate) fn comparisons(&self) -> &Comparisons {
        &self.comparisons
    }

    /// Returns the checkout's own git directory.
    pub(crate) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    pub(crate) fn git(&self) -> &Git {
        &self.git
    }

    pub(crate) fn conversions(&self) -> &[(String, String)] {
        &self.conversions
    }

    pub(crate) fn settings(&self) -> &[GitSetting] {
        &self.settings
    }

    /// Tells whether refs are files under their own names.
    pub(crate) fn has_ref_files(&self) -> bool {
        let value = |key| settings::value(&self.settings, key);
        let is_files = value("extensions.refstorage").is_none_or(|storage| storage == b"files");
        // Otherwise a file may be found by a name that it does not have.
        let is_exact = value("core.ignorecase").is_none_or(|ignores| ignores == b"false");
        let is_shared = value("core.sharedrepository").is_some();
        is_files && is_exact && !is_shared
    }

    /// Returns what HEAD or a branch or ref of ours is at, if there is such a ref; nothing when git
    /// has to say.
    fn plain_commit(&self, rev: &str) -> Result<Option<Option<CommitId>>, GitError> {
        let is_of_commits = rev.starts_with("refs/heads/") || rev.starts_with("refs/kapi/");
        if !self.has_ref_files() {
            return Ok(None);
        }
        let name = match (rev, is_of_commits) {
            ("HEAD", _) => match self.plain_head() {
                Some(Head::Branch(name)) => name,
                Some(Head::Detached(commit)) => return Ok(Some(Some(commit))),
                None => return Ok(None),
            },
            (_, true) if is_plain_name(rev) => rev.to_owned(),
            _ => return Ok(None),
        };
        self.ref_value(&name).map(Some)
    }

    /// Reads HEAD; nothing when git has to.
    fn plain_head(&self) -> Option<Head> {
        self.plain_head_in(&self.git_dir)
    }

    /// Reads the HEAD of one of the repository's worktrees; nothing when git has to.
    pub(crate) fn plain_head_in(&self, git_dir: &Path) -> Option<Head> {
        let text = small_file(&git_dir.join("HEAD"), HEAD_BYTES_MAX)?;
        let text = String::from_utf8(text).ok()?;
        let text = text.strip_suffix('\n')?;
        if let Some(name) = text.strip_prefix("ref: ") {
            let is_branch = name.starts_with("refs/heads/") && is_plain_name(name);
            return is_branch.then(|| Head::Branch(name.to_owned()));
        }
        let commit = CommitId::parse(text).ok()?;
        let is_whole = text.len() == self.format.n_digits();
        is_whole.then_some(Head::Detached(commit))
    }
}

/// What is checked out.
#[derive(Debug)]
pub(crate) enum Head {
    /// A branch, by its full name; perhaps one that has no commit yet.
    Branch(String),
    /// A commit without a branch.
    Detached(CommitId),
}

/// Returns the content of a plain file of at most so many bytes.
pub(crate) fn small_file(path: &Path, bytes_max: u64) -> Option<Vec<u8>> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() || found.len() > bytes_max {
        return None;
    }
    let mut bytes = Vec::new();
    let mut limited = File::open(path).ok()?.take(bytes_max + 1);
    limited.read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= bytes_max).then_some(bytes)
}

/// Returns a path from the bytes git gave.
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

fn location(git: &Git, dir: &Path, question: &[&str]) -> Result<PathBuf, GitError> {
    let call = git.call(dir, "rev-parse").arg("--path-format=absolute");
    let mut bytes = call.args(question).bytes()?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    Ok(path_of(&bytes))
}

fn with_alternates(objects: PathBuf) -> Vec<PathBuf> {
    let mut found = vec![objects];
    let mut idx = 0;
    while let Some(dir) = found.get(idx).cloned() {
        idx += 1;
        let Ok(list) = fs::read(dir.join("info/alternates")) else {
            continue;
        };
        for line in list.split(|&b| b == b'\n') {
            if line.is_empty() || line.starts_with(b"#") || found.len() >= OBJECT_DIRS_MAX {
                continue;
            }
            let Ok(path) = fs::canonicalize(dir.join(path_of(line))) else {
                continue;
            };
            if !found.contains(&path) {
                found.push(path);
            }
        }
    }
    found
}
