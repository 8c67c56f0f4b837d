//! The person's repository: where it is, what it holds, and how it is read.
//!
//! Everything here only reads. Its index and configuration are never written by any module, and
//! its working files are looked at by [`Repository::dirt`] alone.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::command::{Call, Git, GitError};
use crate::id::{CommitId, TreeId};

/// The most alternate object directories followed from one repository.
const OBJECT_DIRS_MAX: usize = 32;

/// Settings that change what a file looks like in the working tree; the only ones of the person's
/// that are carried over to work on a workspace.
const CONVERSIONS: &str = r"^core\.(autocrlf|eol|sharedrepository)$";

/// Settings that name a program for git to run on a file.
const DRIVERS: &str = concat!(
    r"^(filter\..*\.(clean|smudge|process|required)",
    r"|diff\..*\.(command|textconv)|merge\..*\.driver)$"
);

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
    conversions: Vec<(String, String)>,
    /// What switches off each driver that the configuration names.
    disarmed: Vec<(OsString, OsString)>,
}

/// The hash a repository names its objects by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectFormat {
    /// SHA-1, 40 digits.
    Sha1,
    /// SHA-256, 64 digits.
    Sha256,
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
    /// The first of them, at most [`Dirt::NAMES_MAX`].
    pub names: Vec<PathBuf>,
}

impl Dirt {
    /// How many names are kept.
    pub const NAMES_MAX: usize = 10;

    /// Tells whether everything is committed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.staged == 0 && self.modified == 0 && self.untracked == 0
    }
}

impl Repository {
    /// Finds the repository that `dir` is in.
    pub fn discover(git: &Git, dir: &Path) -> Result<Self, RepositoryError> {
        let git_dir = match place(git, dir, &["--absolute-git-dir"]) {
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
        let inside = git
            .call(dir, "rev-parse")
            .arg("--is-inside-work-tree")
            .text()?;
        if inside != "true" {
            return Err(RepositoryError::Bare {
                dir: dir.to_path_buf(),
            });
        }
        let format = match git
            .call(dir, "rev-parse")
            .arg("--show-object-format")
            .text()?
            .as_str()
        {
            "sha1" => ObjectFormat::Sha1,
            "sha256" => ObjectFormat::Sha256,
            _ => {
                return Err(GitError::Unexpected {
                    subcommand: "rev-parse".to_owned(),
                }
                .into());
            }
        };
        let objects = place(git, dir, &["--git-path", "objects"])?;
        let mut repository = Self {
            git: git.clone(),
            top_level: place(git, dir, &["--show-toplevel"])?,
            common_dir: place(git, dir, &["--git-common-dir"])?,
            git_dir,
            object_dirs: with_alternates(objects),
            format,
            conversions: Vec::new(),
            disarmed: Vec::new(),
        };
        repository.read_settings()?;
        match repository.resolve_commit("HEAD") {
            Ok(_head) => Ok(repository),
            Err(RepositoryError::NoSuchCommit { .. }) => Err(RepositoryError::NoCommit {
                dir: repository.top_level,
            }),
            Err(error) => Err(error),
        }
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

    /// Returns the tree of a commit.
    pub fn tree_of(&self, commit: &CommitId) -> Result<TreeId, GitError> {
        let peeled = format!("{commit}^{{tree}}");
        let text = self
            .call("rev-parse")
            .args(["--verify", "--quiet", &peeled])
            .text()?;
        TreeId::parse(&text).map_err(|_malformed| GitError::Unexpected {
            subcommand: "rev-parse".to_owned(),
        })
    }

    /// Tells whether `name` may be a branch: the rules of git, and no leading dash.
    pub fn is_valid_branch(&self, name: &str) -> Result<bool, GitError> {
        if name.starts_with('-') || name.contains('\0') || name == "HEAD" {
            return Ok(false);
        }
        let exit = self
            .call("check-ref-format")
            .arg(format!("refs/heads/{name}"))
            .exit()?;
        Ok(exit.code == 0)
    }

    /// Counts what is in the person's checkout and in no commit.
    ///
    /// Reads only: the index is not refreshed, and no filter of the repository runs, so a file
    /// that a filter would change may be counted as modified.
    pub fn dirt(&self) -> Result<Dirt, GitError> {
        let listed = self
            .git
            .call(&self.top_level, "status")
            .env("GIT_DIR", &self.git_dir)
            .env("GIT_WORK_TREE", &self.top_level)
            .settings(&self.disarmed)
            .args([
                "--porcelain=v1",
                "-z",
                "--no-renames",
                "--untracked-files=normal",
            ])
            .arg("--ignore-submodules=all")
            .bytes()?;
        let mut dirt = Dirt::default();
        for entry in listed.split(|&b| b == 0).filter(|entry| entry.len() > 3) {
            let (marks, path) = entry.split_at(3);
            match marks {
                b"?? " => dirt.untracked += 1,
                [x, y, _] => {
                    dirt.staged += usize::from(*x != b' ');
                    dirt.modified += usize::from(*y != b' ');
                }
                _ => continue,
            }
            if dirt.names.len() < Dirt::NAMES_MAX {
                dirt.names.push(path_of(path));
            }
        }
        Ok(dirt)
    }

    /// Returns a command on the repository's refs and objects; it has no working tree.
    pub(crate) fn call(&self, subcommand: &str) -> Call<'_> {
        self.git
            .call(&self.git_dir, subcommand)
            .env("GIT_DIR", &self.git_dir)
            .settings(&self.disarmed)
    }

    /// Returns the checkout's own git directory.
    pub(crate) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Returns the settings that keep the repository's drivers from running.
    pub(crate) fn disarmed(&self) -> &[(OsString, OsString)] {
        &self.disarmed
    }

    pub(crate) fn git(&self) -> &Git {
        &self.git
    }

    pub(crate) fn conversions(&self) -> &[(String, String)] {
        &self.conversions
    }

    fn read_settings(&mut self) -> Result<(), GitError> {
        let found = self.settings_like(CONVERSIONS)?;
        self.conversions = found
            .into_iter()
            .filter_map(|Setting { key, value }| {
                Some((String::from_utf8(key).ok()?, String::from_utf8(value).ok()?))
            })
            .collect();
        let drivers = self.settings_like(DRIVERS)?;
        self.disarmed = drivers
            .into_iter()
            .map(|Setting { key, .. }| {
                let value = if key.ends_with(b".required") {
                    "false"
                } else {
                    ""
                };
                (OsString::from_vec(key), value.into())
            })
            .collect();
        Ok(())
    }

    fn settings_like(&self, pattern: &str) -> Result<Vec<Setting>, GitError> {
        let exit = self
            .call("config")
            .args(["-z", "--get-regexp", pattern])
            .exit()?;
        if exit.code > 1 {
            return Err(GitError::Exit {
                subcommand: "config".to_owned(),
                code: exit.code,
                stderr: exit.stderr,
            });
        }
        let entries = exit
            .stdout
            .split(|&b| b == 0)
            .filter(|entry| !entry.is_empty());
        let pairs = entries.map(|entry| {
            let mut parts = entry.splitn(2, |&b| b == b'\n');
            let key = parts.next().unwrap_or_default().to_vec();
            // A key alone is git's way of writing "true".
            Setting {
                key,
                value: parts.next().unwrap_or(b"true").to_vec(),
            }
        });
        Ok(pairs.collect())
    }
}

/// One line of the person's configuration.
#[derive(Debug)]
struct Setting {
    key: Vec<u8>,
    value: Vec<u8>,
}

/// Returns a path from the bytes git gave.
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

fn place(git: &Git, dir: &Path, question: &[&str]) -> Result<PathBuf, GitError> {
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
