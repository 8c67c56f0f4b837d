//! A git directory of Kapi's own for work on files that an agent wrote.
//!
//! Its configuration is written here in full, so no driver, hook or include of the person's or
//! the agent's exists for git to run; only objects are shared with the repository. It has no
//! branches, and nothing in it is worth keeping except the cache in its index.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::command::{GitCall, GitError};
use crate::id::{CommitId, TreeId};
use crate::owned_dir::{self, DirError};
use crate::repository::{ObjectFormat, Repository};

/// A private git directory that stages one directory of files.
#[derive(Debug)]
pub(crate) struct Scratch<'a> {
    repository: &'a Repository,
    dir: PathBuf,
    work_tree: PathBuf,
    objects: Objects,
}

/// Where new objects go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Objects {
    /// Into the repository, for commits that stay.
    Shared,
    /// Into the scratch directory, for trees nobody needs afterwards.
    Private,
}

impl<'a> Scratch<'a> {
    /// Makes or repairs the git directory at `dir`; an index that is already there is kept.
    pub(crate) fn prepare(
        repository: &'a Repository,
        dir: &Path,
        work_tree: &Path,
        objects: Objects,
    ) -> Result<Self, DirError> {
        for part in ["refs", "info", "objects/info"] {
            owned_dir::create(&dir.join(part))?;
        }
        owned_dir::write(&dir.join("HEAD"), b"ref: refs/heads/none\n")?;
        owned_dir::write(&dir.join("config"), config_text(repository).as_bytes())?;
        for name in ["exclude", "attributes"] {
            copy_info(repository, dir, name)?;
        }
        let scratch = Self {
            repository,
            dir: dir.to_path_buf(),
            work_tree: work_tree.to_path_buf(),
            objects,
        };
        owned_dir::wipe(&scratch.index_lock())?;
        Ok(scratch)
    }

    pub(crate) const fn repository(&self) -> &'a Repository {
        self.repository
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.dir.join("index")
    }

    /// Returns the lock file of the index. Only one process works on a scratch directory, under the goal's
    /// lock: one that is there before git runs is what a killed git left.
    fn index_lock(&self) -> PathBuf {
        self.dir.join("index.lock")
    }

    /// Returns a command that sees the files, the private index and the shared objects.
    pub(crate) fn call(&self, subcommand: &str) -> GitCall<'_> {
        let call = self
            .repository
            .git()
            .call(&self.work_tree, subcommand)
            .env("GIT_DIR", &self.dir)
            .env("GIT_WORK_TREE", &self.work_tree)
            .env("GIT_INDEX_FILE", self.index())
            .own_lock(self.index_lock());
        let shared = self.repository.object_dirs().first().map(PathBuf::as_path);
        let shared = shared.unwrap_or(Path::new("/nonexistent"));
        match self.objects {
            Objects::Shared => call.env("GIT_OBJECT_DIRECTORY", shared),
            Objects::Private => call
                .not_synced()
                .env("GIT_OBJECT_DIRECTORY", self.dir.join("objects"))
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(shared)),
        }
    }

    /// Makes the index hold exactly what `commit` holds, keeping the cache of unchanged files.
    pub(crate) fn index_commit(&self, commit: &CommitId) -> Result<(), GitError> {
        if self.index().exists()
            && self
                .call("read-tree")
                .args(["-m", commit.as_str()])
                .exit()?
                .code
                == 0
        {
            return Ok(());
        }
        // No cache, or one that git cannot read (torn by a power cut): this ignores it.
        self.call("read-tree").arg(commit.as_str()).done()
    }

    /// Makes the files exactly what `treeish` holds, whatever was there; ignored files stay.
    pub(crate) fn fill(&self, treeish: &str) -> Result<(), GitError> {
        let fill = || {
            self.call("read-tree")
                .args(["--reset", "-u", treeish])
                .done()
        };
        match fill() {
            Err(GitError::Exit { .. }) if self.index().exists() => {
                self.call("read-tree").args(["--empty"]).done()?;
                fill()
            }
            other => other,
        }
    }

    /// Writes what the index holds as a tree.
    pub(crate) fn write_tree(&self) -> Result<TreeId, GitError> {
        let text = self.call("write-tree").text()?;
        TreeId::parse(&text).map_err(|_malformed| GitError::Unexpected {
            subcommand: "write-tree".to_owned(),
        })
    }
}

/// Returns the configuration of a private git directory, conversions included.
pub(crate) fn config_text(repository: &Repository) -> String {
    let mut text = String::from("[core]\n\tbare = false\n\tfileMode = true\n\tsymlinks = true\n");
    text.push_str("\tignoreCase = false\n");
    for (key, value) in repository.conversions() {
        let is_plain = value.bytes().all(|b| b.is_ascii_alphanumeric());
        if let (Some(name), true) = (key.strip_prefix("core."), is_plain) {
            text.push_str(&["\t", name, " = ", value, "\n"].concat());
        }
    }
    match repository.object_format() {
        ObjectFormat::Sha1 => text.push_str("\trepositoryFormatVersion = 0\n"),
        ObjectFormat::Sha256 => {
            text.push_str("\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = sha256\n");
        }
    }
    text
}

/// Copies `info/<name>` of the repository, or removes the copy when there is none.
pub(crate) fn copy_info(repository: &Repository, dir: &Path, name: &str) -> Result<(), DirError> {
    let to = dir.join("info").join(name);
    let from = repository.common_dir().join("info").join(name);
    if !from.is_file() {
        return owned_dir::wipe(&to);
    }
    let bytes = fs::read(&from).map_err(owned_dir::failed("read", &from))?;
    owned_dir::write(&to, &bytes)
}

/// Returns a path quoted for a list of object directories, where any byte may stand in a path.
pub(crate) fn quoted(path: &Path) -> OsString {
    let mut text = vec![b'"'];
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            text.push(byte);
        } else {
            text.extend_from_slice(format!("\\{byte:03o}").as_bytes());
        }
    }
    text.push(b'"');
    OsString::from_vec(text)
}
